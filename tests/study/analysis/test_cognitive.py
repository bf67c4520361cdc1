"""Parameters of simulated people are recovered from their answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.exploratory import cognitive
from study.bundle import Trial
from study.facts import TeachingFacts
from study.plan import simulated_participants
from study.tasks.theory import ShownExplanations
from tests.study.test_people import trial

TRUE = {
    "guesser": {},
    "belief_projector": {"lapse": 0.15},
    "map_reader": {"lapse": 0.15, "slope": 6.0, "threshold": 0.4},
    "bayesian_learner": {"lapse": 0.2, "weight": 0.6},
    "inattentive": {"lapse": 0.05, "absence": 0.3},
}


def trials() -> dict[str, Trial]:
    rng = np.random.default_rng(1)
    kinds = ("adv_incorrect", "std_incorrect", "std_correct")
    made = [trial(kinds[k % 3], float(rng.uniform())) for k in range(60)]
    return {
        f"i{k}": t.model_copy(update={"id": f"i{k}", "teaching": TeachingFacts(gain=float(rng.normal(1, 1.5)))})
        for k, t in enumerate(made)
    }


def answers(theory: simulated_participants.Theory, known: dict[str, Trial], seed: int) -> pd.DataFrame:
    """Each of 60 people answers every trial, in one of the four conditions."""
    rng, rows = np.random.default_rng(seed), []
    for person in range(60):
        saliency, examples = person % 2, person // 2 % 2
        for item, question in known.items():
            p = theory.p_ai(question, ShownExplanations(bool(saliency), bool(examples)))
            rows.append((f"p{person}", item, saliency, examples, int(rng.random() < p)))
    return pd.DataFrame(rows, columns=["participant", "item", "saliency", "examples", "correct"])


@pytest.mark.parametrize("name", list(TRUE))
def test_parameters_are_recovered(name: str) -> None:
    # Bounds from the spread of the estimate over seeds: about four standard deviations. lapse and absence of the
    # inattentive add up to one rate of errors, so only that rate is asked for.
    known = trials()
    theory = simulated_participants.THEORIES[name](**TRUE[name])
    found = cognitive.fit(answers(theory, known, 5), known, name)
    if name == "inattentive":
        wrong = (1 - found.parameters["absence"]) * found.parameters["lapse"] + found.parameters["absence"] / 2
        assert wrong == pytest.approx(0.7 * 0.05 + 0.15, abs=0.03)
        return
    bounds = {"lapse": 0.03, "slope": 1.0, "threshold": 0.05, "weight": 0.1}
    for parameter, true in TRUE[name].items():
        assert found.parameters[parameter] == pytest.approx(true, abs=bounds[parameter])


def test_the_right_theory_is_told_from_the_others() -> None:
    known = trials()
    for name in ("map_reader", "bayesian_learner", "belief_projector", "guesser"):
        frame = answers(simulated_participants.THEORIES[name](**TRUE[name]), known, 7)
        criteria = {other: cognitive.fit(frame, known, other).aic for other in TRUE if other != "inattentive"}
        best = min(criteria.values())
        assert criteria[name] <= best + 4  # a richer theory that contains it may fit as well, at 2 a parameter


def test_people_beside_theory() -> None:
    known = trials()
    frame = answers(simulated_participants.MapReader(**TRUE["map_reader"]), known, 5)
    table = cognitive.overlay(frame, known, cognitive.fit(frame, known, "map_reader"))
    assert len(table) == 12
    assert table["responses"].sum() == len(frame)
    np.testing.assert_allclose(table["people"], table["theory"], atol=0.08)


def test_cells_have_the_order_of_the_design_and_their_names_are_whole() -> None:
    """Catches cells in the order of the items, drawn upside down, and names that are cut off at the left."""
    known = trials()
    frame = answers(simulated_participants.MapReader(**TRUE["map_reader"]), known, 5)
    table = cognitive.overlay(frame, dict(reversed(known.items())), cognitive.fit(frame, known, "map_reader"))
    assert list(table["cell"][:5]) == [
        *(f"AI wrong (adversarial) with {what}" for what in ("no explanation", "saliency maps", "examples")),
        "AI wrong (adversarial) with both explanations",
        "AI wrong (standard) with no explanation",
    ]
    drawn = cognitive.figure(table, "map_reader")
    assert (drawn.layout.yaxis.automargin, drawn.layout.yaxis.autorange) == (True, "reversed")
    assert [trace.name for trace in drawn.data] == ["Participants", "Heatmap reader"]


def test_refusals() -> None:
    known = trials()
    frame = answers(simulated_participants.Guesser(), known, 5)
    with pytest.raises(ForetellError, match="no column 'item'"):
        cognitive.fit(frame.drop(columns="item"), known, "guesser")
    with pytest.raises(ForetellError, match="1 items that the study does not have: 'i99'"):
        cognitive.fit(frame.replace({"item": {"i3": "i99"}}), known, "guesser")
