"""A participant's request reaches nothing that is a researcher's."""

from __future__ import annotations

import ast
from pathlib import Path

from dashboard.server import api
from study.participation.participant import Participant
from study.service import Service

RESEARCHERS = ("unblind", "set_password", "open_study", "monitor", "exclude", "load_participants", "login_link")


def test_the_door_of_participants_has_no_researchers_function(tmp_path: Path) -> None:
    """Catches a service of one object, through which a handler of the participant's page reached `unblind`."""
    with Service(tmp_path) as service:
        for name in RESEARCHERS:
            assert hasattr(service.researcher, name) or hasattr(service.access, name), name
            assert not hasattr(service.participant, name)
        kept = vars(service.participant).values()
        assert not any(isinstance(value, type(service) | type(service.researcher)) for value in kept)


def test_the_routes_of_participants_are_given_that_door_only() -> None:
    """Catches a route that takes the whole service: all of them work with what `_run_guarded` hands over."""
    tree = ast.parse(Path(api.__file__).read_text(encoding="utf-8"))
    doors = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("get_service()")
    }
    assert doors == {"participant"}
    assert "Service" not in vars(api)
    assert vars(api)["Participant"] is Participant


DASHBOARD = Path(api.__file__).parents[1]
PAGES = [path for path in DASHBOARD.rglob("*.py") if path.parts[-2] not in ("cli", "notebook")]
SHORTCUTS = {"researcher", "act_as", "workspace", "store", "identities"}
WRITERS = {"copy_study", "copy_pilot", "rename_study", "archive_study", "restore_study", "save"}
ASKED = {"ways", "provider"}
"""What pages may ask of the logins' door."""


def find_shortcuts(source: str) -> set[str]:
    """What a page could use to get around the researcher's door, with its permissions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and node.id in ("Service", "OpenWorkspace"):
            found.add(node.id)
        if not isinstance(node, ast.Attribute) or ast.unparse(node) == "contact.researcher":
            continue
        owner = ast.unparse(node.value)
        writes = node.attr in WRITERS and (owner == "studyfiles" or "draft" in owner.lower())
        logs_in = owner.endswith(".access") and node.attr not in ASKED
        if node.attr in SHORTCUTS or writes or logs_in:
            found.add(f"{owner}.{node.attr}")
    return found


def test_pages_have_the_door_of_their_login_and_no_other() -> None:
    """Catches a page that reads responses as an administrator, or writes a study file past its permission."""
    found = {path.relative_to(DASHBOARD).as_posix(): find_shortcuts(path.read_text(encoding="utf-8")) for path in PAGES}
    assert found.pop("shared/service.py")  # where the one door is opened
    server = {name: found.pop(name) for name in list(found) if name.startswith("server/")}
    assert not any(SHORTCUTS & set(one.split(".")[-1:]) for shortcuts in server.values() for one in shortcuts)
    assert {name: shortcuts for name, shortcuts in found.items() if shortcuts} == {
        "app.py": {"service.get_service().workspace"}  # the clock and the ends of the chains
    }


def test_the_search_for_shortcuts_can_find_them() -> None:
    """Catches a search that finds nothing whatever a page does."""
    for source in (
        "service.get_service().researcher.responses('demo')",
        "get_acting_researcher().workspace.store.read(f)",
        "studyfiles.rename_study(a, b, c)",
        "draft.save(path)",
        "service.get_service().access.login_link()",
        "Service(home())",
        "service.get_service().act_as('ada@example.org')",
    ):
        assert find_shortcuts(source), source
