"""Measures of reliance: closed forms, published figures, and files that lack something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from core.errors import ForetellError
from dashboard.cli import main as cli
from study.analysis.exploratory.analysis import EXPLORATORY, AnalysedStudy
from study.analysis.exploratory.reliance import AI, LEAD, describe, tabulate
from study.analysis.responses.decisions import read_decisions
from study.analysis.responses.reading import prepare


def decide(**people: str) -> pd.DataFrame:
    """Decisions between a and b; each word of a participant is first, ai, final, truth."""
    rows = [(who, "none", *word) for who, words in people.items() for word in words.split()]
    return pd.DataFrame(rows, columns=["participant", "condition", "first", "ai", "final", "truth"])


def test_closed_forms() -> None:
    """A participant who never switches, one who always follows, and counts by hand.

    Catches RAIR and RSR exchanged, conditions on the wrong response, participants without such trials who count as 0,
    and an AI that is right for all alike with an interval. By hand: p1 has first wrong and AI right twice, of which one
    final is right, p2 once with a right final and p3 never: RAIR = 2/3 of two participants. The interval of a
    difference: the mean of d = (0, 1, 0, ...) and its ratio standard error, with t of two degrees of freedom.
    """
    kinds = "aaxa abxa abxb aaxb"  # first, ai, final, truth: agree right; disagree, AI wrong; AI right; agree wrong
    never = decide(**{f"p{i}": " ".join(w[:2] + w[0] + w[3] for w in kinds.split()) for i in range(3)})
    follows = decide(**{f"p{i}": " ".join(w[:2] + w[1] + w[3] for w in kinds.split()) for i in range(3)})
    for frame, rair, rsr, switched, over in ((never, 0, 1, 0, 0.5), (follows, 1, 0, 0.5, 1)):
        made = tabulate(frame).set_index("measure")["proportion"]
        assert (made["RAIR"], made["RSR"], made["Switched"], made["Over-reliance"]) == (rair, rsr, switched, over)
        assert made["Under-reliance"] == 0.5 * (1 - rair)
        assert np.isnan(tabulate(frame).set_index("measure").loc[AI, "low"])
    mixed = decide(p1="abbb abab aaaa", p2="abbb abaa aaaa", p3="aaaa aaaa aabb")
    by = tabulate(mixed).set_index("measure")
    assert tuple(by.loc["RAIR", ["participants", "responses", "proportion"]]) == (2, 3, pytest.approx(2 / 3))
    assert tuple(by.loc["RSR", ["participants", "responses", "proportion"]]) == (1, 1, 1.0)
    assert np.isnan(by.loc["RSR", "low"])  # one participant
    changed = np.array([1, 1, 1])  # each has one response that became right, of three
    assert by.loc["Final minus first", "proportion"] == changed.sum() / 9
    assert by.loc["Final minus first", "low"] == pytest.approx(1 / 3)  # nothing varies between participants
    alone = tabulate(decide(p1="aaaa", p2="aaaa")).set_index("measure")
    assert alone.loc["RAIR", "responses"] == 0
    assert "RAIR unknown, without such trials" in describe(alone.reset_index())
    assert "RSR 100.0%." in describe(by.reset_index())  # of one participant


def test_one_step_has_what_needs_no_first_response() -> None:
    """Catches a task in one step without a table, measures of a first response that nobody gave, and the table where
    participants saw no label or named no class. By hand: the AI is wrong twice and followed once, right twice and
    refused once.
    """
    words = ("a a a", "a b a", "b b a", "b a a")  # AI, response, truth
    rows = [("p1", *word.split()) for word in words] + [("p2", *word.split()) for word in words]
    frame = pd.DataFrame(rows, columns=["participant", "category", "choice", "truth"]).assign(
        condition="none", saliency=0, examples=0, trial_type="std_correct", item=list("stuv") * 2
    )
    frame["correct"] = (frame["choice"] == frame["truth"]).astype(int)
    study = AnalysedStudy(prepare(frame.assign(task="reliance_one_step")))
    made = EXPLORATORY["reliance"].compute(study)[0].set_index("measure")
    assert set(made.index) == {"Final response correct", "AI correct", LEAD, "Over-reliance", "Under-reliance"}
    assert list(made.loc[["Over-reliance", "Under-reliance", LEAD], "proportion"]) == [0.5, 0.5, 0.0]
    said = EXPLORATORY["reliance"].explain(study)
    assert "50.0% of responses were correct, where the AI was correct on 50.0% (+0.0 percentage points" in said
    for task in ("predict", "accept_reject"):
        assert not EXPLORATORY["reliance"].needs(AnalysedStudy(prepare(frame.assign(task=task))))


PUBLISHED = {
    "A": ".670 .694 .148 .380 .662",
    "B": ".644 .688 .146 .556 .527",
    "BP": ".652 .694 .122 .496 .609",
    "C": ".689 .710 .145 .534 .540",
}
"""Benz et al., 401 participants: first and final response right, switched, RAIR, RSR."""


def test_published_decisions_give_the_published_figures(real: Path, tmp_path: Path) -> None:
    """9,624 decisions by the command, as a researcher would: every figure to the printed digit.

    Catches rows that are lost, conditions that are exchanged, and proportions over participants instead of responses.
    """
    theirs = pd.read_csv(real / "human" / "two_step_cards.csv")
    theirs["advice"] = np.where(theirs["ai_confidence_red"] > 50, "red", "black")
    theirs.to_csv(tmp_path / "cards.csv", index=False)
    columns = ["--column", "truth=outcome", "--column", "ai=advice"]
    out = tmp_path / "reliance.csv"
    done = CliRunner().invoke(
        cli.build_app(["reliance"]), ["reliance", str(tmp_path / "cards.csv"), *columns, "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    made = pd.read_csv(out).set_index(["condition", "measure"])
    assert made.loc[("A", "Switched"), "participants"] == 100
    for condition, figures in PUBLISHED.items():
        measures = ("First response correct", "Final response correct", "Switched", "RAIR", "RSR")
        mine = [f"{made.loc[(condition, measure), 'proportion']:.3f}"[1:] for measure in measures]
        assert " ".join(mine) == figures, condition


def test_what_a_file_lacks_is_said(tmp_path: Path) -> None:
    """Catches a failure without the culprit, and rows with a missing class that count as wrong."""
    path = tmp_path / "own.csv"
    path.write_text("participant,condition,first,ai,final,answer\np1,none,a,b,,b\np2,none,a,b,b,b\n")
    with pytest.raises(ForetellError, match=r"no column 'truth'. Name yours with --column truth=NAME. It has: part"):
        read_decisions(path)
    with pytest.raises(ForetellError, match="Column 'thruth' is unknown"):
        read_decisions(path, {"thruth": "answer"})
    rows, dropped = read_decisions(path, {"truth": "answer"})
    assert (list(rows["participant"]), dropped) == (["p2"], 1)
    path.write_text("participant,condition,first,ai,final,truth\np1,none,a,,b,b\n")
    with pytest.raises(ForetellError, match="has no row with all of participant"):
        read_decisions(path)
