"""The documentation as a website, where it has been built (``python foretell.py docs``): files of this machine only."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from starlette.responses import RedirectResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from study.workspace.workspace import ROOT

SITE = ROOT / "docs" / "_build"


class _Site(StaticFiles):
    """The files of the website; where there is none, the page Help with the same guide."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not (Path(str(self.directory)) / "index.html").is_file():
            guide = scope["path"].rpartition("/docs/")[2].removesuffix(".html")
            asked = "" if guide in ("", "index") else f"?guide={quote(guide)}"
            return await RedirectResponse(f"/help{asked}", 303)(scope, receive, send)
        await super().__call__(scope, receive, send)


def routes(site: Path = SITE) -> list[Mount]:
    """Return the route of the website."""
    return [Mount("/docs", _Site(directory=site, html=True, check_dir=False))]
