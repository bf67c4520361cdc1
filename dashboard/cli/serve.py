"""``serve``: the demo study and the pages, in the browser."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import threading
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashboard.cli.terminal import Bars, say
from study.plan.mixture import MIXTURE, parse_mixture

if TYPE_CHECKING:
    from study.service import Service

HOST = "127.0.0.1"
SIMULATED = 80


def serve(
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8501,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = HOST,
    browser: Annotated[bool, typer.Option(help="Open the browser when the server is ready.")] = True,
    demo: Annotated[bool, typer.Option(help="Build and fill the demo study first, if it does not exist.")] = True,
) -> None:
    """Build the demo study, fill it with simulated participants, and serve everything on 127.0.0.1.

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
    link = url + _prepare(demo)
    say(f"Foretell is at {url} (Ctrl-C stops it)")
    if link != url:
        say(f"No password is set. This link opens the researcher's pages once: {link}")
    if browser:
        threading.Thread(target=_open_browser, args=(port, link), daemon=True).start()
    import uvicorn

    os.chdir(ROOT)  # Streamlit reads .streamlit/config.toml from the working directory
    from dashboard.server.listening import settings

    uvicorn.run("dashboard.app:app", host=host, port=port, **settings())


def _prepare(demo: bool) -> str:
    """Check the workspace and fill the demo study; return the path of a login link, or "" where none is needed."""
    from study.service import Service
    from study.workspace.workspace import home

    with Service(home()) as service:
        service.workspace.require_sound()  # one sentence says what is missing, before anything is written
        if demo:
            _demo(service)
        has_administrator = {"password", "sso"} & set(service.access.ways())
        return "" if has_administrator else service.access.login_link()


def _demo(service: Service) -> None:
    """Build, open and fill the demo study with simulated participants, unless that is done already."""
    from study.workspace.provenance import code_digest
    from study.workspace.workspace import ROOT, database, home

    study_file = ROOT / "data" / "studies" / "demo.toml"
    done = home() / "demo.done"
    mark = hashlib.sha256(code_digest().encode() + str(database(home())).encode() + study_file.read_bytes()).hexdigest()
    # Verifying the bundle itself would load torch, the network and the images: seconds at every start.
    opened = any(study.name == study_file.stem for study in service.researcher.studies())
    whole = opened and any((home() / "bundles").glob("demo-*/manifest.json"))
    if whole and done.is_file() and done.read_text() == mark:
        return
    _fill(service, study_file)
    done.write_text(mark)


def _fill(service: Service, study_file: Path) -> None:
    from study.building.build import build
    from study.simulate import simulate
    from study.workspace.workspace import home

    with Bars() as progress:
        bundle = build(study_file, home(), progress)
        places = int(bundle.manifest.config["allocation"]["per_condition"])
        name = service.researcher.open_study(bundle.folder, places)
        simulate(service, name, SIMULATED, parse_mixture(MIXTURE), 0, progress)


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


def _open_browser(port: int, url: str) -> None:
    for _ in range(100):
        with contextlib.closing(socket.socket()) as probe:
            if probe.connect_ex((HOST, port)) == 0:
                webbrowser.open(url)
                return
        time.sleep(0.1)
