"""Image sets and networks: who may add, change and remove one, and what the audit trail says of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from core.errors import ForetellError
from core.types import silent
from study.collection import library
from study.collection.researcher import Researcher
from study.participation.refusals import Refusal
from study.service import Service
from study.store import audit
from study.workspace.imagefolders import MOST_BYTES, AddedSet, Entry
from study.workspace.modelfiles import read_lines

ADA, BEN = "ada@example.org", "ben@example.org"
MakeBundle = Callable[..., Path]


def list_entries(side: int = 8) -> list[Entry]:
    content = io.BytesIO()
    Image.new("RGB", (side, side), "red").save(content, "PNG")
    return [Entry(f"red/{i}.png", 0, lambda: io.BytesIO(content.getvalue())) for i in range(2)]


def add(door: Researcher, name: str) -> AddedSet:
    return door.add_image_set(name, list_entries(), silent, MOST_BYTES)


@pytest.fixture
def service(tmp_path: Path, bundle: MakeBundle) -> Service:
    """Two editors of one study, a viewer and a manager of it, and an account without a role."""
    service = Service(tmp_path / "home")
    service.researcher.open_study(bundle(trials=2, practice=0, side=8), 2)
    service.researcher.set_member("demo", "owner@example.org", "owner")
    service.researcher.set_member("demo", ADA, "editor")
    service.researcher.set_member("demo", BEN, "editor")
    service.researcher.set_member("demo", "viewer@example.org", "viewer")
    service.researcher.set_member("demo", "manager@example.org", "manager")
    return service


def list_acts(service: Service) -> list[tuple[str, str, str]]:
    rows = service.workspace.store.read(audit.acts)
    return [
        (row["actor"], row["act"], json.loads(row["detail_json"])["name"])
        for row in rows
        if "image set" in row["act"] or "network" in row["act"]
    ]


def test_a_set_belongs_to_who_added_it(service: Service) -> None:
    """Catches a set that any account removes or renames, and acts that no trail names."""
    with service:
        ada, ben = service.act_as(ADA), service.act_as(BEN)
        assert add(ada, "hers").images == 2
        for act in (lambda: ben.remove_image_set("hers"), lambda: ben.rename_categories("hers", {"red": "blue"})):
            with pytest.raises(Refusal, match=rf"The image set hers belongs to {ADA}, who may change or remove it"):
                act()
        told = service.act_as("nobody@example.org").explain_library_refusal("image set", "hers")
        assert told == "The image set hers belongs to another account, who may change or remove it."
        ada.rename_categories("hers", {"red": "blue"})
        service.researcher.remove_image_set("hers")
        add(ben, "hers")
        ben.remove_image_set("hers")
        assert list_acts(service) == [
            (ADA, "added an image set", "hers"),
            (ADA, "renamed classes of an image set", "hers"),
            ("researcher", "removed an image set", "hers"),
            (BEN, "added an image set", "hers"),
            (BEN, "removed an image set", "hers"),
        ]
        assert service.researcher.verify() == []


def test_a_network_belongs_to_who_added_it_and_files_to_administrators(service: Service) -> None:
    """Catches a viewer who removes an administrator's network, and code that an account adds past the page."""
    with service:
        models = service.workspace.home / "models"
        code = [Entry("net.py", 0, lambda: io.BytesIO(b"def build(): ..."))]
        model = service.researcher.add_network_files(code, "")
        service.act_as(ADA).list_network("resnet18")
        for name in (model, "resnet18"):
            for person in ("viewer@example.org", "nobody@example.org", BEN):
                with pytest.raises(Refusal, match=f"The network {name} belongs to"):
                    service.act_as(person).remove_network(name)
        with pytest.raises(Refusal, match="Only an administrator may do this"):
            service.act_as("owner@example.org").add_network_files(code, "")
        assert read_lines(models) == ["resnet18"]
        assert (models / "net.py").is_file()
        service.act_as(ADA).remove_network("resnet18")
        service.researcher.remove_network(model)
        assert [path.name for path in models.glob("*.py")] == []
        assert len(list_acts(service)) == 4


@pytest.mark.parametrize("person", ["viewer@example.org", "manager@example.org", "nobody@example.org"])
def test_who_makes_no_study_adds_nothing(service: Service, person: str) -> None:
    """Catches an account without a role that fills the disk or lists networks."""
    with service:
        door = service.act_as(person)
        for act in (
            lambda: add(door, "mine"),
            lambda: door.list_network("resnet18"),
            lambda: door.write_class_names("classes", ["cat", "dog"]),
        ):
            with pytest.raises(Refusal, match="Only owners and editors of a study add image sets and networks"):
                act()
        assert not (service.workspace.home / "images").exists()
        assert not (service.workspace.home / "models").exists()


def test_sets_of_before_and_of_the_machine_are_the_administrators(service: Service) -> None:
    """Catches a set without an entry in the audit trail that any account may remove, and a name that leads out."""
    with service:
        home = service.workspace.home
        for name in ("images/old/cat", "bundles/x"):
            (home / name).mkdir(parents=True)
        for name in ("old", "../bundles", "old/cat"):
            with pytest.raises(Refusal, match="belongs to an administrator"):
                service.act_as(ADA).remove_image_set(name)
        for name in ("../bundles", "old/cat", ".", ""):
            with pytest.raises(ForetellError, match="There is no image set"):
                service.researcher.remove_image_set(name)
        service.researcher.remove_image_set("old")
        assert [path.name for path in (home / "bundles").iterdir()] == ["x"]


def test_an_account_has_a_quota_and_an_administrator_none(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches an account that fills the disk by many sets, each within the limit of one."""
    with service:
        ada = service.act_as(ADA)
        one = add(ada, "one").bytes
        assert one == sum(path.stat().st_size for path in (service.workspace.home / "images").rglob("*.png"))
        monkeypatch.setattr(library, "MOST_BYTES", 2 * one)
        add(ada, "two")
        with pytest.raises(ForetellError, match=r"the most that one account may add\. Remove one first"):
            add(ada, "three")
        add(service.act_as(BEN), "his")
        add(service.researcher, "anybody's")
        ada.remove_image_set("one")
        add(ada, "three")
        monkeypatch.setattr(library, "MOST_NETWORKS", 1)
        ada.list_network("resnet18")
        with pytest.raises(ForetellError, match="You have added 1 networks"):
            ada.list_network("resnet34")
