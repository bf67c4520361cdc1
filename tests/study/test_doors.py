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
