"""Members and roles: what each may really do, in both databases, and what nobody gets around."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from core.errors import ForetellError
from study.collection.access import door
from study.collection.access.accounts import Account
from study.collection.access.permissions import Permission
from study.collection.export import export
from study.collection.psychds import export as export_psychds
from study.collection.researcher import Researcher
from study.participation.refusals import Refusal
from study.plan import studyfiles
from study.plan.draft import StudyDraft
from study.plan.templates import templates
from study.service import Service
from study.store import audit
from tests.conftest import write_bundle
from tests.study.collection.members.conftest import STRANGER, MakeBundle, is_refused


@pytest.mark.usefixtures("database")
def test_acts_and_changes_of_members_stand_under_the_accounts_name(service: Service) -> None:
    """Catches a change of members that is not logged, or under another name."""
    with service:
        owner = service.act_as("owner@example.org")
        owner.set_member("demo", "viewer@example.org", "editor")
        owner.set_member("demo", "viewer@example.org", "editor")
        service.act_as("viewer@example.org").pause_study("demo")
        owner.remove_member("demo", "viewer@example.org")
        rows = service.workspace.store.read(audit.acts)[-3:]
        assert [(row["actor"], row["act"], json.loads(row["detail_json"])) for row in rows] == [
            ("owner@example.org", "changed a member's role",
             {"study": "demo", "account": "viewer@example.org", "role": "editor"}),
            ("viewer@example.org", "paused", {"study": "demo"}),
            ("owner@example.org", "removed a member", {"study": "demo", "account": "viewer@example.org"}),
        ]  # fmt: skip
        assert service.researcher.verify() == []


def test_a_removed_member_and_a_changed_role_lose_access_at_the_next_act(service: Service) -> None:
    """Catches a door that remembers the role with which it was opened."""
    with service:
        held = service.act_as("editor@example.org")
        held.pause_study("demo")
        service.researcher.set_member("demo", "editor@example.org", "viewer")
        with pytest.raises(Refusal, match=r"role in demo is viewer: you may not open, pause.*owner@example\.org"):
            held.resume_study("demo")
        service.researcher.remove_member("demo", "editor@example.org")
        with pytest.raises(Refusal, match="You have no role in a study 'demo'"):
            held.monitor("demo")
        assert held.studies() == []


def test_a_stranger_is_told_the_same_of_a_study_that_exists_and_of_none(service: Service) -> None:
    """Catches a refusal that tells strangers which studies there are, or who owns them."""
    with service:
        stranger = service.act_as(STRANGER)
        said = [str(stranger.explain_refusal(Permission.FOLLOW, name)) for name in ("demo", "none")]
        assert said[0].replace("demo", "none") == said[1]
        assert "@" not in said[0]


@pytest.mark.usefixtures("database")
def test_the_last_owner_stays_also_when_two_remove_each_other(service: Service) -> None:
    """Catches a check outside the transaction: two owners who remove each other would leave none."""
    with service:
        for act in (
            lambda: service.researcher.remove_member("demo", "OWNER@example.org"),
            lambda: service.researcher.set_member("demo", "owner@example.org", "viewer"),
        ):
            with pytest.raises(ForetellError, match=r"owner@example\.org is the last owner of demo"):
                act()
        service.researcher.set_member("demo", "editor@example.org", "owner")
        pair = ("owner@example.org", "editor@example.org")
        start, refused = threading.Barrier(2), []

        def remove(me: str, other: str) -> None:
            start.wait(300)
            try:
                service.act_as(me).remove_member("demo", other)
            except ForetellError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=remove, args=order) for order in (pair, pair[::-1])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        owners = [one.account for one in service.researcher.list_members("demo") if one.role == "owner"]
        assert (len(owners), len(refused)) == (1, 1)


def test_addresses_are_compared_without_case_and_checked(service: Service) -> None:
    """Catches a second membership by other case, which would keep its role when the first is removed."""
    with service:
        service.researcher.set_member("demo", " Viewer@Example.ORG ", "manager")
        roles = {one.account: one.role for one in service.researcher.list_members("demo")}
        assert roles["viewer@example.org"] == "manager"
        assert len(roles) == 5
        for wrong in ("", "viewer", "a@b\u202e.org", "<b>@example.org", "a b@example.org", "a@example.org\n<x>"):
            with pytest.raises(ForetellError, match="not an e-mail address"):
                service.researcher.set_member("demo", wrong, "viewer")
        with pytest.raises(ForetellError, match="role 'king' does not exist"):
            service.researcher.set_member("demo", "a@example.org", "king")  # type: ignore[arg-type]
        with pytest.raises(ForetellError, match="no study 'dem0'"):
            service.researcher.set_member("dem0", "a@example.org", "owner")


def test_an_editor_exports_simulated_responses_only(service: Service, tmp_path: Path) -> None:
    """Catches an export that hands over real responses for the permission to see simulated ones."""
    with service:
        editor = service.act_as("editor@example.org")
        assert export(editor, "demo", tmp_path / "out" / "x.csv", ("sim", "preview")).is_file()
        for modes in (("live",), ("sim", "live")):
            for write, target in ((export, tmp_path / "no" / "x.csv"), (export_psychds, tmp_path / "no")):
                with pytest.raises(Refusal, match="may not see or export its responses"):
                    write(editor, "demo", target, modes)
        assert not (tmp_path / "no").exists()
        with pytest.raises(Refusal):
            editor.responses("demo")


def test_studies_without_members_are_used_as_before_by_whom_they_were_used(tmp_path: Path, bundle: MakeBundle) -> None:
    """Catches an upgrade that locks out those whom the provider logs in, or lets in an account that is new."""
    with Service(tmp_path) as service:
        service.researcher.open_study(bundle(trials=2, practice=0, side=8), 2)
        before = Researcher(service.workspace, Account("ada@example.org", sees_unassigned=True))
        assert before.unblind("demo", "as before") is not None
        with pytest.raises(Refusal):
            before.set_member("demo", "ada@example.org", "owner")  # nobody takes a study of others
        new = service.act_as("new@example.org")
        assert new.studies() == []
        with pytest.raises(Refusal):
            new.monitor("demo")
        with pytest.raises(ForetellError, match="Add its owner first"):
            service.researcher.set_member("demo", "bob@example.org", "viewer")
        service.researcher.set_member("demo", "bob@example.org", "owner")
        with pytest.raises(Refusal):
            before.monitor("demo")


def test_a_new_study_belongs_to_who_makes_it_and_nobody_claims_one_that_exists(service: Service) -> None:
    """Catches a study file that names another study: its owner would then see the other's responses."""
    (template,) = [path for path in templates() if path.stem == "demo"]
    with service:
        editor = service.act_as("editor@example.org")
        made = editor.copy_study(template, "fresh")
        assert [(one.account, one.role) for one in editor.list_members("fresh")] == [("editor@example.org", "owner")]
        pilot = service.act_as("editor@example.org").copy_pilot(made, 1)
        assert door.name_of_file(pilot) == "fresh-pilot"
        assert editor.find_role("fresh-pilot") == "owner"
        service.researcher.set_member("demo", "editor@example.org", "viewer")
        for stolen in ("demo", "other"):
            if stolen == "other":
                write_bundle(service.workspace.home / "bundles" / "other-0123456789ab", name="other", trials=2)
            draft = StudyDraft.read(made)
            draft.set("study.name", stolen)
            with pytest.raises(Refusal):
                editor.save_study_file(made, draft)
            assert door.name_of_file(made) == "fresh"
        service.researcher.set_member("fresh", "owner@example.org", "owner")
        service.researcher.set_member("fresh", "editor@example.org", "editor")
        draft.set("study.name", "hijacked")
        editor.save_study_file(made, draft)
        assert editor.find_role("hijacked") == "editor"
        draft.set("study.name", "fresh")
        editor.save_study_file(made, draft)
        assert is_refused(service.act_as("viewer@example.org").copy_study, template, "mine")
        assert is_refused(service.act_as(STRANGER).copy_study, made, "mine")
        assert not (made.parent / "mine.toml").exists()
        renamed = editor.rename_study(made, "later")
        assert (door.name_of_file(renamed), editor.find_role("later")) == ("later", "editor")
        assert editor.find_role("fresh") is None
    told = [row["act"] for row in service_acts(service.workspace.home)]
    assert told[-1] == "renamed a study"


def service_acts(home: Path) -> list[dict[str, Any]]:
    with Service(home) as service:
        return service.workspace.store.read(audit.acts)


def test_a_study_that_could_not_be_made_is_claimed_by_nobody(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches an owner of a study without a file, for whom nobody else could make it."""

    def fail(*_: Any) -> Path:
        raise ForetellError("The disk is full.")

    (template,) = [path for path in templates() if path.stem == "demo"]
    monkeypatch.setattr(studyfiles, "copy_study", fail)
    with service:
        with pytest.raises(ForetellError, match="disk"):
            service.act_as("editor@example.org").copy_study(template, "fresh")
        assert service.researcher.list_members("fresh") == []
