"""Who may do what: the permissions of each role, and the permission that each function of the researcher's door needs.

This table is all there is: `study.collection.access.door` enforces it, and refuses a function without an entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

Role = Literal["owner", "editor", "viewer", "manager", "rater"]
"""Role of a member in one study; the database stores these words."""


class Permission(StrEnum):
    """What an account may do in a study; the value completes "may not …"."""

    FOLLOW = "follow its collection"
    PREVIEW = "preview it"
    DESIGN = "design or build it"
    COLLECT = "open, pause or close it"
    ADMIT = "set who may start"
    MANAGE_PARTICIPANTS = "manage its participants"
    SEE_OUTCOMES = "see or export its responses and outcomes"
    MANAGE_MEMBERS = "manage its members"
    CODE = "code its texts"
    ADMINISTER = "administer the workspace"


class RoleRights(NamedTuple):
    """A role: its name on the page, what it may do in words, and its permissions."""

    title: str
    summary: str
    permissions: Set[Permission]


P = Permission
ROLES: Mapping[Role, RoleRights] = {
    "owner": RoleRights(
        "Owner",
        "Everything in the study, including unblinding, export and members",
        frozenset(P) - {P.ADMINISTER},
    ),
    "editor": RoleRights(
        "Editor",
        "Design, build, preview, simulate, open, pause and close; code texts; blinded",
        frozenset({P.FOLLOW, P.PREVIEW, P.DESIGN, P.COLLECT, P.ADMIT, P.CODE}),
    ),
    "viewer": RoleRights(
        "Viewer",
        "The blinded monitor and nothing else",
        frozenset({P.FOLLOW}),
    ),
    "manager": RoleRights(
        "Participant manager",
        "Access, quota, messages, withdrawals, exclusions and pay of participants; blinded",
        frozenset({P.FOLLOW, P.PREVIEW, P.ADMIT, P.MANAGE_PARTICIPANTS}),
    ),
    "rater": RoleRights(
        "Rater",
        "The blinded monitor, and codes of participants' texts",
        frozenset({P.FOLLOW, P.CODE}),
    ),
}


@dataclass(frozen=True)
class AccessRule:
    """What a function of the door needs.

    Attributes
    ----------
    permission
        The permission, or None: the function is about its own account only, or checks who added an item itself.
    of
        The argument that names the study: its name, its hash, the folder of its bundle, the path of its file, or
        "" for the workspace as a whole.
    simulated
        Permission that is enough if the argument ``modes`` names no real participants.
    """

    permission: Permission | None
    of: Literal["study", "study_hash", "bundle_folder", "path", ""] = "study"
    simulated: Permission | None = None


OWN = AccessRule(None)
WORKSPACE = AccessRule(P.ADMINISTER, "")
RESPONSES = AccessRule(P.SEE_OUTCOMES, simulated=P.DESIGN)

DOOR: Mapping[str, AccessRule] = {
    # About the account itself: each tells only what the account may see.
    "studies": OWN,
    "may": OWN,
    "sees": OWN,
    "explain_refusal": OWN,
    "require": OWN,
    "explain_storage_fault": OWN,
    "find_role": OWN,
    # The collection, blinded.
    "monitor": AccessRule(P.FOLLOW),
    "load_interim_status": AccessRule(P.FOLLOW),
    "is_blinded": AccessRule(P.FOLLOW),
    "list_members": AccessRule(P.FOLLOW),
    "begin_preview": AccessRule(P.PREVIEW),
    "load_preview_entry": AccessRule(P.PREVIEW),
    "add_study": AccessRule(P.DESIGN, "bundle_folder"),
    "open_study": AccessRule(P.COLLECT, "bundle_folder"),
    "close_study": AccessRule(P.COLLECT),
    "pause_study": AccessRule(P.COLLECT),
    "resume_study": AccessRule(P.COLLECT),
    # Participants.
    "set_access": AccessRule(P.ADMIT),
    "personal_links": AccessRule(P.ADMIT),
    "release_quota_place": AccessRule(P.MANAGE_PARTICIPANTS),
    "withdraw_participant": AccessRule(P.MANAGE_PARTICIPANTS),
    "collect_subject_data": AccessRule(P.MANAGE_PARTICIPANTS),
    "send_message": AccessRule(P.MANAGE_PARTICIPANTS),
    "list_messages": AccessRule(P.MANAGE_PARTICIPANTS),
    "list_sitting_links": AccessRule(P.MANAGE_PARTICIPANTS),
    "exclude": AccessRule(P.MANAGE_PARTICIPANTS),
    "exclusions": AccessRule(P.MANAGE_PARTICIPANTS),
    "bonus": AccessRule(P.MANAGE_PARTICIPANTS),
    "reconcile": AccessRule(P.MANAGE_PARTICIPANTS),
    # Outcomes.
    "responses": RESPONSES,
    "load_participants": RESPONSES,
    "log_export": RESPONSES,
    "unblind": AccessRule(P.SEE_OUTCOMES),
    "replay": AccessRule(P.SEE_OUTCOMES),
    "run_interim_analysis": AccessRule(P.SEE_OUTCOMES),
    "load_interim_analyses": AccessRule(P.SEE_OUTCOMES, "study_hash"),
    "count_exclusions": AccessRule(P.SEE_OUTCOMES, "study_hash"),
    # Codes of texts, blinded to conditions, participants and the other rater.
    "list_coded_studies": OWN,
    "load_coding": AccessRule(P.CODE),
    "code_texts": AccessRule(P.CODE),
    "load_coding_progress": AccessRule(P.FOLLOW),
    "is_agreement_open": AccessRule(P.FOLLOW),
    "open_agreement": AccessRule(P.SEE_OUTCOMES, simulated=P.DESIGN),
    "remove_rater": AccessRule(P.MANAGE_MEMBERS),
    # Study files. A new study belongs to the account that makes it.
    "save_study_file": AccessRule(P.DESIGN, "path"),
    "copy_study": OWN,
    "copy_pilot": AccessRule(P.DESIGN, "path"),
    "rename_study": AccessRule(P.DESIGN, "path"),
    "archive_study": AccessRule(P.DESIGN, "path"),
    "restore_study": AccessRule(P.DESIGN, "path"),
    "start_build": AccessRule(P.DESIGN, "path"),
    "start_simulation": AccessRule(P.DESIGN),
    # Image sets and networks: each function checks who added the item.
    "find_file_limits": OWN,
    "explain_adding_refusal": OWN,
    "require_adding": OWN,
    "explain_library_refusal": OWN,
    "add_image_set": OWN,
    "rename_categories": OWN,
    "remove_image_set": OWN,
    "list_network": OWN,
    "write_class_names": OWN,
    "add_network_files": WORKSPACE,
    "remove_network": OWN,
    # Members.
    "set_member": AccessRule(P.MANAGE_MEMBERS),
    "remove_member": AccessRule(P.MANAGE_MEMBERS),
    "make_member_link": AccessRule(P.MANAGE_MEMBERS),
    # The workspace as a whole.
    "list_accounts": WORKSPACE,
    "make_account_link": WORKSPACE,
    "revoke_account_link": WORKSPACE,
    "remove_account": WORKSPACE,
    "note": WORKSPACE,
    "move_bundles": WORKSPACE,
    "verify": WORKSPACE,
    "last_response": WORKSPACE,
    "confirm_time": WORKSPACE,
    "receipt": WORKSPACE,
}
"""The permission that each public function of `study.collection.researcher.Researcher` needs."""
