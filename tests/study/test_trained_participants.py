"""Simulated participants in blocks: what they learn from explanations, and a whole study of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import ForetellError
from dashboard.power.jobs import PowerAnalysis
from study.analysis.exploratory.analysis import AnalysedStudy, compute
from study.analysis.responses.reading import prepare
from study.bundle import MANIFEST, Bundle, Trial, canonical
from study.collection.integrity import find_faults
from study.plan.config import read
from study.plan.simulated_participants import HALFWAY, THEORIES, SimulatedParticipant, sample_mixture
from study.service import Service
from study.simulate import simulate
from study.tasks.predict import TASK
from study.tasks.theory import ShownExplanations
from tests.study.participants import MakeBundle

RECIPE = Path(__file__).parents[2] / "data" / "studies" / "meta-predictor.toml"


def make_trial(relevance: float, gain: float) -> Trial:
    """A trial on which the AI errs, with a heatmap of this relevance and examples with this gain."""
    facts: dict[str, Any] = {"teaching": {"gain": gain}, "saliency": {}, "relevance": relevance}
    assets = {"target": "0", "target_map": "1", "examples": ()}
    return Trial(
        id="t",
        trial_type="adv_incorrect",
        target="fish",
        alternative="boat",
        truth="boat",
        options=("fish", "boat"),
        ai_probability=0.9,
        source="",
        assets=assets,  # type: ignore[arg-type]
        **facts,
    )


@pytest.mark.parametrize(
    ("theory", "shown"),
    [("map_reader", ShownExplanations(saliency=True)), ("bayesian_learner", ShownExplanations(examples=True))],
)
def test_learners_move_from_their_own_belief_to_what_the_explanation_says(
    theory: str, shown: ShownExplanations
) -> None:
    """Closed form: nothing after 0 images, half the way after `HALFWAY`, three quarters after 3 `HALFWAY`.

    Catches test trials answered as if the explanation were shown, or as if nothing had been learned.
    """
    person, trial = SimulatedParticipant(theory, THEORIES[theory](), 0.3), make_trial(0.1, 3.0)
    alone, explained = (person.p_right(TASK, trial, one) for one in (ShownExplanations(), shown))
    assert explained > alone + 0.3
    learned = [person.p_test(TASK, trial, shown, seen) for seen in (0, HALFWAY, 3 * HALFWAY)]
    assert learned == pytest.approx([alone, (alone + explained) / 2, (alone + 3 * explained) / 4])


def teach(folder: Path) -> tuple[Trial, ...]:
    """Give the examples of every trial of a bundle a large gain; return its trials."""
    manifest = Bundle(folder).manifest
    trials = tuple(
        one.model_copy(update={"teaching": one.teaching.model_copy(update={"gain": 5.0})}) for one in manifest.trials
    )
    taught = manifest.model_copy(update={"trials": trials})
    finished = taught.model_copy(update={"study_hash": taught.compute_hash()})
    (folder / MANIFEST).write_bytes(canonical(finished.model_dump(mode="json")))
    return trials


@pytest.mark.parametrize("theory", ["guesser", "belief_projector", "inattentive"])
def test_those_who_ignore_explanations_learn_nothing_from_them(theory: str) -> None:
    """So that their utility is 1. Catches learning by practice, which no theory here has."""
    person, trial = SimulatedParticipant(theory, THEORIES[theory]()), make_trial(0.1, 3.0)
    seen = [person.p_test(TASK, trial, ShownExplanations(True, True), k) for k in (0, 5, 15)]
    assert seen == [person.p_right(TASK, trial, ShownExplanations())] * 3


def test_a_simulated_study_has_a_rising_curve(service: Service, bundle: MakeBundle) -> None:
    """Forty learners through the service, from consent to utility; the examples of every trial teach it well.

    Catches participants who cannot finish blocks, a test trial in which they read an explanation that is not shown,
    and learning that does not reach the results. The accuracies are the expected ones of the theory, within 5 SD of a
    binomial.
    """
    blocks = {"training": 3, "test": 4, "rounds": 4}
    folder = bundle(config={"blocks": blocks}, conditions=("none", "examples"), trials=28, practice=1)
    trials = teach(folder)
    study = service.researcher.open_study(folder, per_condition=1)
    assert simulate(service, study, 40, {"bayesian_learner": 1.0}, 3) == 40 * 29
    assert service.workspace.store.read(lambda db: list(find_faults(db, service.workspace.manifest_of))) == []
    data = prepare(service.researcher.responses(study, ("sim",)))
    assert len(data.frame) == 40 * 16
    result = compute("utility", AnalysedStudy(data))
    rng = np.random.default_rng(0)
    crowd = sample_mixture({"bayesian_learner": 1.0}, 500, rng)
    for name, shown in (("none", ShownExplanations()), ("examples", ShownExplanations(examples=True))):
        made = result.table[(result.table["condition"] == name) & (result.table["measure"] == "Accuracy")]
        assert made["n_training"].tolist() == [3, 6, 9, 12]
        assert set(made["responses"]) == {80}
        for seen, share in zip(made["n_training"], made["estimate"], strict=True):
            p = np.mean([one.p_test(TASK, trial, shown, int(seen)) for one in crowd for trial in trials])
            assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / 80)
    assert result.table.query("measure == 'Utility'")["low"].item() > 1


def test_power_says_that_it_takes_no_blocks() -> None:
    """Catches a sample size computed as if all 36 trials were tests."""
    study = read(RECIPE)
    with pytest.raises(ForetellError, match="of 36 trials in this study's blocks 21 are"):
        PowerAnalysis(study, (10,)).truth()
