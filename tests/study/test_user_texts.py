"""Every text file that users write is read as their editor saved it: with a byte-order mark, or as UTF-16."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from core.errors import ForetellError
from core.sources.exported import _read_sidecar
from core.sources.local import list_local_models
from core.text import read_lines
from dashboard.cli.recruiting import read_ids
from data.errors import DataError
from data.sets.folder import load
from study.collection.access.door import name_of_file
from study.collection.access.provider import provider_of
from study.locales import read_catalogue
from study.participation.prolific import FILE as PROLIFIC
from study.participation.prolific import Signatures
from study.plan import config
from study.plan.draft import StudyDraft
from study.workspace import folders, modelfiles
from study.workspace.tomlfile import load_toml
from tests.study.studies import TINY

ROOT = Path(__file__).parents[2]
OIDC = """name = "Überall"
issuer = "https://login.example.org"
client_id = "x"
secret_file = "oidc.secret"
address = "https://study.example.org"
people = ["ada@example.org"]
contact = "ada@example.org"
"""
SIGNED = 'address = "https://study.example.org"\nstudies = ["café"]\n'


def _read_images(path: Path) -> Any:
    for name in ("cat/é.png", "dog/b.png"):
        (path.parent / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((2, 2, 3), len(name), dtype=np.uint8)).save(path.parent / "set" / name)
    return load(path=path.parent / "set", images=path).ids


def _read_provider(path: Path) -> Any:
    secret = path.with_name("oidc.secret")
    secret.write_bytes(codecs.BOM_UTF8 + b"secret\r\n")
    secret.chmod(0o600)
    provider = provider_of(path.parent)
    return provider and (provider.name, provider.secret)


FILES: dict[str, tuple[str, str, Callable[[Path], Any], Any]] = {
    "study file": ("mine.toml", TINY + "# é", lambda path: config.read(path).study.name, "tiny"),
    "study file in Design": ("mine.toml", TINY + "# é", lambda path: StudyDraft.read(path).get("study.name"), "tiny"),
    "a study file's name": ("mine.toml", TINY + "# é", name_of_file, "tiny"),
    "prolific.toml": (PROLIFIC, SIGNED, lambda path: load_toml(path, Signatures).studies, ("café",)),
    "oidc.toml": ("oidc.toml", OIDC, _read_provider, ("Überall", "secret")),
    "network.json": ("net.json", '{"categories": ["é", "b"]}', lambda path: _read_sidecar(path).categories, ("é", "b")),
    "class names": ("names.txt", "é\nb\n", lambda path: read_lines(path, "one name per line"), ["é", "b"]),
    "list of images": ("ids.txt", "cat/é.png\n", _read_images, ("cat/é.png",)),
    "ids": ("ids.txt", "007\n-7\n", read_ids, ["007", "-7"]),
    "models.txt": (
        "models.txt",
        "timm:é\nresnet18\n",
        lambda path: modelfiles.read_lines(path.parent),
        ["timm:é", "resnet18"],
    ),
    "models.txt in Explore": ("models.txt", "timm:é\n", lambda path: list_local_models(path.parent, "."), ["timm:é"]),
    "folders.txt": (folders.ALLOWED, "/é\n", lambda path: folders.list_allowed(path.parent), (Path("/é"),)),
    "a language": ("fr.toml", 'a = "é"\n[ui]\n', lambda path: read_catalogue(path.parent, "fr"), {"a": "é"}),
}
"""Name, text, reader and what it finds."""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("kind", FILES)
def test_a_text_is_read_as_an_editor_saved_it(tmp_path: Path, kind: str, encoding: str) -> None:
    """Catches a mark that becomes part of the first name, or makes the file invalid."""
    name, text, read, expected = FILES[kind]
    (tmp_path / name).write_bytes(text.replace("\n", "\r\n").encode(encoding))
    assert read(tmp_path / name) == expected


@pytest.mark.parametrize("content", ["é".encode("latin-1"), codecs.BOM_UTF16_LE + b"x"])
@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "a study file's name"])
def test_what_is_no_utf_8_is_refused_in_one_sentence(tmp_path: Path, kind: str, content: bytes) -> None:
    """Catches a traceback, and a codec's own words."""
    name, _, read, _ = FILES[kind]
    (tmp_path / name).write_bytes(b"# one\n" * (content[:2] != codecs.BOM_UTF16_LE) + content)
    with pytest.raises((ForetellError, DataError)) as refused:
        read(tmp_path / name)
    assert "is not text in UTF-8" in str(refused.value)
    assert "Save it as UTF-8." in str(refused.value)
    assert "codec" not in str(refused.value)


def test_utf_16_without_its_mark_is_refused(tmp_path: Path) -> None:
    """Catches ASCII in UTF-16, which is UTF-8 with a null after each letter."""
    (tmp_path / "names.txt").write_bytes("one\ntwo".encode("utf-16-le"))
    with pytest.raises(ForetellError, match=r"is not text in UTF-8 \(line 1\)\. Save it as UTF-8\."):
        read_lines(tmp_path / "names.txt", "one name per line")


def test_a_marked_study_file_is_shown_and_saved_without_its_mark(tmp_path: Path) -> None:
    """Catches a mark that the text area of Design sends back, where it is no TOML."""
    path = tmp_path / "mine.toml"
    path.write_bytes(TINY.encode("utf-8-sig"))
    page = AppTest.from_string(f"""
from pathlib import Path
from dashboard.design.file import show_text
show_text(Path({str(path)!r}))
""").run()
    assert not page.exception
    assert page.text_area[0].value == TINY


OWN = {
    "core/network/timing.py",
    "core/userfiles.py",
    "dashboard/cli/bench.py",
    "dashboard/cli/concepts.py",
    "dashboard/cli/doctor.py",
    "dashboard/cli/installation.py",
    "dashboard/cli/serve.py",
    "dashboard/explore/debugging/assertions.py",
    "dashboard/home/guides.py",
    "dashboard/pages.py",
    "dashboard/shared/messages.py",
    "data/sets/imagenet_a.py",
    "data/sets/scenes.py",
    "data/sets/wnids.py",
    "inquiry/layers/training/craft_queries.py",
    "study/demo.py",
    "study/plan/typed.py",
}
"""Files that read what Foretell itself wrote."""


def test_no_users_text_is_read_another_way() -> None:
    """Catches a new reader of a user's file that does not know byte-order marks."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("core", "data", "study", "inquiry", "dashboard")
        for path in (ROOT / folder).rglob("*.py")
        if ".read_text(" in path.read_text(encoding="utf-8")
    }
    assert {name for name in found if not name.startswith(("data/scenes/", "data/bars/"))} <= OWN
