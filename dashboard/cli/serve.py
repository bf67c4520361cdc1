"""``serve``: the pages in the browser, and the demo study in the background."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import time
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from dashboard.cli.terminal import say

if TYPE_CHECKING:
    from dashboard.shared.jobs import Job

HOST = "127.0.0.1"
EVERYWHERE = {"0.0.0.0": HOST, "::": "::1"}
POLL_S = 0.1


def serve(
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8501,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = HOST,
    browser: Annotated[bool, typer.Option(help="Open the browser when the server is ready.")] = True,
    demo: Annotated[bool, typer.Option(help="Prepare the demo study in the background, if it does not exist.")] = True,
) -> None:
    """Serve everything on 127.0.0.1; the demo study is built and filled with simulated participants meanwhile.

    The researcher's pages need a login: a password, a provider, or (without either) the link printed here.

    Example: python foretell.py serve --port 8600 --no-browser
    """
    from study.collection.access.provider import provider_of
    from study.participation.prolific import signatures_of
    from study.workspace.workspace import ROOT, home

    _refuse_used_port(host, port)
    provider_of(home())  # a wrong file is said here, in one sentence
    signatures_of(home())
    url = f"http://{host if ':' not in host else f'[{host}]'}:{port}"
    link = url + _prepare()
    say(f"Foretell is at {url} (Ctrl-C stops it)")
    if link != url:
        say(f"No password is set. This link opens the researcher's pages once: {link}")
    if browser or demo:
        threading.Thread(target=_continue, args=(host, port, link if browser else None, demo), daemon=True).start()
    import uvicorn

    os.chdir(ROOT)  # Streamlit reads .streamlit/config.toml from the working directory
    from dashboard.server.listening import settings

    uvicorn.run("dashboard.app:app", host=host, port=port, **settings())


def _prepare() -> str:
    """Check the workspace; return the path of a login link, or "" where none is needed."""
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        service.workspace.require_sound()  # one sentence says what is missing, before anything is written
        has_administrator = {"password", "sso"} & set(service.access.ways())
        return "" if has_administrator else service.access.login_link()


def _continue(host: str, port: int, link: str | None, demo: bool) -> None:
    """Once the server listens, open the browser at ``link``, if any, and prepare the demo in the background."""
    while not _is_listening(EVERYWHERE.get(host, host), port):
        time.sleep(POLL_S)
    if link is not None:
        webbrowser.open(link)
    if demo:
        from dashboard.shared.demo import start

        _report(start())


def _report(job: Job | None) -> None:
    """Say when the demo is begun and ready, or why it is not; a line each."""
    if job is None:
        return
    say("Preparing the demo study in the background; its progress is on the page Home.")
    while not job.wait(POLL_S):
        pass
    if job.state == "done":
        say("The demo study is ready.")
    elif job.state == "failed":
        say(f"The demo study is not ready. {job.error}", error=True)


def _refuse_used_port(host: str, port: int) -> None:
    from core.errors import ForetellError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.closing(socket.socket(family)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                remedy = f"Port {port} is in use. Stop the program that uses it, or choose another: --port {port + 1}."
            else:
                remedy = f"Cannot listen at {host}:{port} ({error.strerror}). Choose another --host or --port."
            raise ForetellError(remedy) from None


def _is_listening(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
        return True
    return False
