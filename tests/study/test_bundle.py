"""A bundle from a stranger: what its manifest may name."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ForetellError
from study.bundle import MANIFEST, Bundle, canonical
from study.service import Service
from tests.study.participants import MakeBundle

OUTSIDE = ("../../x", "/etc/passwd", "..", "", "a" * 63, "A" * 64, f"../{'a' * 64}", f"{'a' * 64}\n")


def forged(folder: Path, change: Any) -> Path:
    """The manifest changed, and its hash made again, as whoever wrote the bundle could."""
    path = folder / MANIFEST
    content = json.loads(path.read_bytes())
    change(content)
    covered = {key: value for key, value in content.items() if key not in ("study_hash", "environment")}
    content["study_hash"] = hashlib.sha256(canonical(covered)).hexdigest()
    path.write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("where", ["assets", "target", "target_map", "image"])
def test_an_asset_is_named_by_its_hash_and_nothing_else(bundle: MakeBundle, where: str, name: str) -> None:
    """Catches a manifest that has the server read, serve or copy a file outside the bundle."""

    def change(content: dict[str, Any]) -> None:
        shown = content["trials"][0]["assets"]
        if where == "assets":
            content["assets"][name] = 1
        elif where == "image":
            shown["examples"][0]["image"] = name
        else:
            shown[where] = name

    with pytest.raises(ForetellError, match="cannot be read by this version"):
        Bundle(forged(bundle(), change))


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "A", "<b>", "", "x\n"])
def test_a_study_has_a_name_that_is_safe_in_links_and_files(bundle: MakeBundle, name: str) -> None:
    """Catches a study name that leads out of the folder its export is written to."""
    with pytest.raises(ForetellError, match=r"\(name: "):
        Bundle(forged(bundle(), lambda content: content.update(name=name)))


def test_a_forged_manifest_with_sound_names_is_read(bundle: MakeBundle) -> None:
    """Negative control of the tests above: what they change is the names, not the hash."""
    assert Bundle(forged(bundle(), lambda content: content.update(name="other"))).manifest.name == "other"


def first_asset(folder: Path) -> Path:
    return sorted((folder / "assets").iterdir())[0]


@pytest.mark.parametrize("what", ["asset", "assets", "manifest", "beside"])
def test_a_link_that_leads_out_of_the_bundle_is_refused(
    service: Service, bundle: MakeBundle, tmp_path: Path, what: str
) -> None:
    """Catches a bundle by which the server reads, serves or backs up a file that is not of it."""
    folder = bundle()
    inside = {"asset": first_asset(folder), "assets": folder / "assets", "manifest": folder / MANIFEST}
    link = inside.get(what, folder / "notes")
    outside = tmp_path / "outside"
    if what in inside:
        link.rename(outside)
    else:
        outside.write_text("secret")
    link.symlink_to(outside)
    with pytest.raises(ForetellError, match=r"is a link that leads out of its bundle\. Put the file itself there"):
        service.researcher.open_study(folder, per_condition=1)


def test_a_link_made_after_the_opening_is_not_followed(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    """Catches a picture that is checked once and then served from wherever it leads."""
    folder = bundle()
    study = service.researcher.open_study(folder, per_condition=1)
    asset = first_asset(folder)
    (tmp_path / "secret").write_text("secret")
    asset.unlink()
    asset.symlink_to(tmp_path / "secret")
    with pytest.raises(ForetellError, match="leads out of its bundle"):
        service.participant.read_asset(study, asset.stem)


def test_links_that_stay_inside_are_welcome(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    """Negative control: a bundle reached by a link, and a picture by a link within the bundle."""
    folder = bundle()
    asset = first_asset(folder)
    asset.rename(folder / "assets" / "moved")
    asset.symlink_to("moved")
    (tmp_path / "linked").symlink_to(folder)
    study = service.researcher.open_study(tmp_path / "linked", per_condition=1)
    assert service.participant.read_asset(study, asset.stem) == (folder / "assets" / "moved").read_bytes()
