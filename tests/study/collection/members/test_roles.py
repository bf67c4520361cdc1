"""What each role may do, and that every function has a rule."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.collection.access import door
from study.collection.access.permissions import DOOR, ROLES, Role
from study.collection.researcher import Researcher
from study.plan.draft import StudyDraft
from study.service import Service
from study.store import audit
from tests.study.collection.members.conftest import ADDRESSES, STRANGER, MakeBundle, is_refused

EVERYBODY = frozenset(ROLES)

DESIGNERS = frozenset({"owner", "editor"})

RECRUITERS = frozenset({"owner", "manager"})

RATERS = frozenset({"owner", "editor", "rater"})

OWNER = frozenset({"owner"})
LIBRARY = frozenset(
    {
        "find_file_limits",
        "explain_adding_refusal",
        "require_adding",
        "explain_library_refusal",
        "add_image_set",
        "rename_categories",
        "remove_image_set",
        "list_network",
        "write_class_names",
        "remove_network",
    }
)
"""Functions that check who added an item: `tests/study/collection/test_library.py`."""

ALLOWED: dict[str, frozenset[Role]] = {
    "monitor": EVERYBODY,
    "load_interim_status": EVERYBODY,
    "is_blinded": EVERYBODY,
    "list_members": EVERYBODY,
    "begin_preview": frozenset({"owner", "editor", "manager"}),
    "load_preview_entry": frozenset({"owner", "editor", "manager"}),
    "add_study": DESIGNERS,
    "open_study": DESIGNERS,
    "close_study": DESIGNERS,
    "pause_study": DESIGNERS,
    "resume_study": DESIGNERS,
    "set_access": frozenset({"owner", "editor", "manager"}),
    "personal_links": frozenset({"owner", "editor", "manager"}),
    "release_quota_place": RECRUITERS,
    "withdraw_participant": RECRUITERS,
    "collect_subject_data": RECRUITERS,
    "send_message": RECRUITERS,
    "list_messages": RECRUITERS,
    "list_sitting_links": RECRUITERS,
    "exclude": RECRUITERS,
    "exclusions": RECRUITERS,
    "bonus": RECRUITERS,
    "reconcile": RECRUITERS,
    "responses": OWNER,
    "load_participants": OWNER,
    "log_export": OWNER,
    "unblind": OWNER,
    "replay": OWNER,
    "run_interim_analysis": OWNER,
    "load_interim_analyses": OWNER,
    "count_exclusions": OWNER,
    "load_coding": RATERS,
    "code_texts": RATERS,
    "load_coding_progress": EVERYBODY,
    "is_agreement_open": EVERYBODY,
    "open_agreement": OWNER,
    "remove_rater": OWNER,
    "save_study_file": DESIGNERS,
    "copy_pilot": DESIGNERS,
    "rename_study": DESIGNERS,
    "archive_study": DESIGNERS,
    "restore_study": DESIGNERS,
    "start_build": DESIGNERS,
    "start_simulation": DESIGNERS,
    "set_member": OWNER,
    "remove_member": OWNER,
    "make_member_link": OWNER,
    "add_network_files": frozenset(),
    "list_accounts": frozenset(),
    "make_account_link": frozenset(),
    "revoke_account_link": frozenset(),
    "remove_account": frozenset(),
    "note": frozenset(),
    "move_bundles": frozenset(),
    "verify": frozenset(),
    "last_response": frozenset(),
    "confirm_time": frozenset(),
    "receipt": frozenset(),
}
"""Written from the description of the roles in the guide, not from the table under test."""


def make_calls(folder: Path, study_hash: str, file: Path) -> dict[str, tuple[Any, ...]]:
    """One real call of each function: arguments that fit, whether or not the call then succeeds."""
    study = "demo"
    list_ = pd.DataFrame({"Participant id": ["x"], "Status": ["APPROVED"]})
    special: dict[str, tuple[Any, ...]] = {
        "add_study": (folder,),
        "open_study": (folder, 1),
        "begin_preview": (study, None),
        "load_preview_entry": (study,),
        "set_access": (study, "open"),
        "personal_links": (study, ["7"]),
        "release_quota_place": (study, "P0", "why"),
        "withdraw_participant": (study, "P0", "why"),
        "collect_subject_data": (study, "P0", "why"),
        "send_message": (study, "Hello", "P0"),
        "exclude": (study, "P0", "why"),
        "reconcile": (study, list_),
        "log_export": (study, ("live",), 1),
        "unblind": (study, "why"),
        "replay": (study, "P0"),
        "load_interim_analyses": (study_hash,),
        "count_exclusions": (study_hash,),
        "code_texts": (study, {"x": "matches"}),
        "remove_rater": (study, "Bo", "why"),
        "save_study_file": (file, StudyDraft(file.read_text())),
        "copy_pilot": (file, 1),
        "rename_study": (file, "another"),
        "archive_study": (file,),
        "restore_study": (file,),
        "start_build": (file,),
        "start_simulation": (study, 1),
        "set_member": (study, "new@example.org", "viewer"),
        "remove_member": (study, "nobody@example.org"),
        "make_member_link": (study, "viewer@example.org"),
        "add_network_files": ([], ""),
        "list_accounts": (),
        "make_account_link": ("viewer@example.org",),
        "revoke_account_link": ("viewer@example.org",),
        "remove_account": ("viewer@example.org",),
        "note": ("did", {}),
        "move_bundles": ({},),
        "verify": (),
        "last_response": (),
        "confirm_time": (),
        "receipt": ("x",),
    }
    return {name: special.get(name, (study,)) for name in ALLOWED}


@pytest.mark.usefixtures("database")
def test_what_each_role_may_do(service: Service, tmp_path: Path, bundle: MakeBundle) -> None:
    """Catches a permission given to a role that should not have it, in either database, for the call itself."""
    folder, study_hash = bundle(trials=2, practice=0, side=8), service.researcher.studies()[0].study_hash
    file = tmp_path / "demo.toml"
    with service:
        found: dict[str, frozenset[str]] = {name: frozenset() for name in ALLOWED}
        for role, address in [*ADDRESSES.items(), ("stranger", STRANGER)]:
            file.write_text('[study]\nname = "demo"\n')
            for name, arguments in make_calls(folder, study_hash, file).items():
                if not is_refused(getattr(service.act_as(address), name), *arguments):
                    found[name] |= {role}
                    file.write_text('[study]\nname = "demo"\n')
        assert found == ALLOWED
        refused = {ADDRESSES["viewer"], STRANGER}  # a refused act leaves no trace that says it was done
        assert [row["act"] for row in service.workspace.store.read(audit.acts) if row["actor"] in refused] == []


def test_every_function_of_the_door_has_a_rule_and_is_checked() -> None:
    """Catches a function that is added to the door without a permission, and one that is not wrapped."""
    public = {name for name, _ in inspect.getmembers(Researcher, inspect.isfunction) if not name.startswith("_")}
    assert public == set(DOOR)
    own = {name for name, rule in DOOR.items() if rule.permission is None}
    own_account = {
        "studies",
        "may",
        "sees",
        "explain_refusal",
        "require",
        "find_role",
        "copy_study",
        "list_coded_studies",
    }
    assert own == {*own_account, "explain_storage_fault", *LIBRARY}
    assert {name for name in public - own if not hasattr(getattr(Researcher, name), "__wrapped__")} == set()
    assert set(ALLOWED) == public - own

    class More(Researcher):
        def peek(self, study: str) -> str:
            return study

    with pytest.raises(TypeError, match="peek"):
        door.guard(More)
