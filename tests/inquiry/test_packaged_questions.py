"""Questions that an installed package brings, where they fail."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pandas as pd
import pytest

from core.errors import ForetellError
from core.registry import Plugin
from inquiry.layers import QUESTIONS
from inquiry.layers.inspection import LayerQuery
from inquiry.layers.question_files import ask_question
from inquiry.layers.record import Topic, record_of


class Stop(Exception):
    """A run is cancelled."""


def broken(inspected, progress):
    raise KeyError("seed")


def listless(inspected, progress):
    return [1]


def patient(inspected, progress, *, rows: int = 2):
    progress(1, 2, "waiting")
    return pd.DataFrame({"row": range(rows)})


@pytest.fixture(autouse=True)
def installed(monkeypatch) -> None:
    plugins = {
        one.__name__: Plugin(one.__name__, "carried 1.0", EntryPoint(one.__name__, f"{__name__}:{one.__name__}", "x"))
        for one in (broken, listless, patient)
    }
    monkeypatch.setitem(QUESTIONS.__dict__, "plugins", plugins)


def asked(question: str, **parameters: str) -> SimpleNamespace:
    return SimpleNamespace(request=LayerQuery(question, parameters=parameters))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("broken", "The question broken of the package carried 1.0 failed: KeyError: 'seed'. Repair that package."),
        ("listless", "The question listless of the package carried 1.0 returned list: it must return"),
    ],
)
def test_a_packages_question_that_fails_is_one_sentence(question: str, said: str) -> None:
    """Catches a traceback, or "Unexpected KeyError" that names no culprit."""
    with pytest.raises(ForetellError, match=said.replace(".", r"\.")):
        ask_question(asked(question))


def test_a_packages_question_is_asked_with_its_parameters_and_can_be_cancelled() -> None:
    """Catches parameters that are dropped, and a cancelled run that is called a failure of the package."""
    assert len(ask_question(asked("patient", rows="3"))) == 3

    def stop(*_: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        ask_question(asked("patient"), stop)


def test_a_question_without_a_record_has_a_topic_and_no_cost() -> None:
    """Catches a page that fails on a plain function."""
    record = record_of("patient")
    assert (record.topic, record.cost, record.figure) == (Topic.OTHER, None, None)
    assert not record.table.list_shares(["row", ""])
