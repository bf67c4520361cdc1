"""Study files and frozen studies with the names of version 0.2, which work until the next release."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from core.errors import ForetellError
from study.bundle import Bundle
from study.plan.config import StudyConfig, read, read_frozen
from study.plan.draft import StudyDraft
from study.plan.former import PRESENT_NAMES, use_present_strata
from study.plan.measures import IMAGE_MEASURES
from study.plan.preregistration import load_frozen_plan
from study.plan.procedure import procedure_of
from study.workspace.tomlfile import use_present_names
from tests.study.participants import MakeBundle
from tests.study.studies import TINY

FORMER = (
    TINY
    + """
# Breaks and attention checks.
[road]  # short
break_every = 5  # trials

[trials.strata]
measure = "label_doubt"
parameters.judge = "answers"

[analysis.exclusions]
fewest_answers = 7
"""
)
PRESENT = (
    FORMER.replace("[road]", "[pacing]")
    .replace("label_doubt", "label_error")
    .replace('"answers"', '"predictions"')
    .replace("fewest_answers", "fewest_responses")
)
PLAN_HASH = "399fa4b9c20d09635f76ee0c3bf50656bd64039ab70ae3d9acaa4285b82225b7"
"""Of the defaults with these exclusions and 12 participants, by the code of version 0.2."""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def read_silently(path: Path) -> StudyConfig:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read(path)


def test_a_study_file_with_former_names_means_the_same_and_says_their_present_names(tmp_path: Path) -> None:
    """Catches a study file of the last version that is refused or loses a setting, and a change without notice."""
    with pytest.warns(FutureWarning) as notices:
        former = read(write(tmp_path / "former.toml", FORMER))
    assert former == read_silently(write(tmp_path / "present.toml", PRESENT))
    assert (former.pacing.break_every, former.analysis.exclusions.fewest_responses) == (5, 7)
    assert sorted(str(notice.message).split("; ")[0] for notice in notices) == [
        "'answers' is now called 'predictions'",
        "'fewest_answers' is now called 'fewest_responses'",
        "'label_doubt' is now called 'label_error'",
        "'road' is now called 'pacing'",
    ]


def test_a_setting_under_both_names_is_refused(tmp_path: Path) -> None:
    """Catches a former name that wins over the present one, or is ignored."""
    with pytest.raises(ForetellError, match="road: unknown key"):
        read(write(tmp_path / "both.toml", FORMER + "[pacing]\nbreak_every = 9\n"))


def test_a_draft_has_the_present_names_and_is_otherwise_as_it_was() -> None:
    """Catches a page that sets the present name next to the former one, and comments lost in between."""
    assert StudyDraft(FORMER).text == StudyDraft(PRESENT).text
    assert StudyDraft(FORMER).text.replace("\n\n", "\n").split("\n") == PRESENT.replace("\n\n", "\n").split("\n")
    assert StudyDraft(FORMER).get("pacing.break_every") == 5


@pytest.mark.parametrize("text", ["road.catch = 2\n", "road = { catch = 2 }\n", "[road]\ncatch = 2\n"])
def test_every_way_to_write_the_table_is_renamed(text: str) -> None:
    assert StudyDraft(text).get("pacing.catch") == 2


@pytest.mark.parametrize("text", ['title = "The road = long"\n', "# [road]\n", '[sets.pool]\nset = "road"\n'])
def test_other_text_is_left_alone(text: str) -> None:
    assert use_present_names(text, PRESENT_NAMES) == text


def test_a_frozen_study_keeps_its_settings_and_the_hash_of_its_plan(bundle: MakeBundle) -> None:
    """Catches breaks, checks and exclusions that fall back to defaults, and a preregistered plan with another hash."""
    config = {"road": {"break_every": 5}, "analysis": {"exclusions": {"fewest_answers": 7}, "participants": 12}}
    manifest = Bundle(bundle(config=config)).manifest
    plan = load_frozen_plan(manifest)
    assert procedure_of(manifest).pacing.break_every == 5
    assert plan is not None
    assert (plan.exclusions.fewest_responses, plan.sha256) == (7, PLAN_HASH)


@pytest.mark.parametrize("measure", ["doubt", "label_doubt"])
def test_no_former_measure_is_one_of_today(measure: str) -> None:
    """Catches a present name that a study file is told to have been replaced."""
    text = f'[trials.strata]\nmeasure = "{measure}"\n'
    present = StudyDraft(text).get("trials.strata.measure")
    assert present in IMAGE_MEASURES
    assert measure not in IMAGE_MEASURES
    assert use_present_strata({"measure": measure}) == {"measure": present}


def test_frozen_settings_with_former_names_open_without_a_notice(tmp_path: Path) -> None:
    """Catches a notice about a file that nobody can change any more, and strata that are refused."""
    present = read_silently(write(tmp_path / "present.toml", PRESENT))
    settings = present.model_dump(mode="json")
    settings["road"] = settings.pop("pacing")
    settings["trials"]["strata"] |= {"measure": "label_doubt", "parameters": {"judge": "answers"}}
    rules = settings["analysis"]["exclusions"]
    rules["fewest_answers"] = rules.pop("fewest_responses")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_frozen(settings) == present
