"""The lesson of a trial: what the Teaching page stands on."""

from __future__ import annotations

import pytest
import torch

from core.teaching.scoring import score_sets
from study.building.lessons import lesson
from study.building.plan import make_planner
from study.network.sources import open_sources
from tests.study.studies import TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lesson")
    (folder / "tiny.toml").write_text(TINY)
    planner = make_planner(open_sources(folder / "tiny.toml"), folder / "cache")
    trial = planner.plan(lambda *_: None).trials[0]
    return planner, trial, lesson(planner, trial.candidate)


def test_the_studys_own_set_is_that_of_its_policy(taught):
    planner, trial, found = taught
    ids = planner.sets["pool"].ids
    own = found.sets["best"]
    assert [found.ids[i] for i in own.indices] == [ids[i] for i in trial.teaching.indices]
    assert own.p_learner == trial.teaching.p_learner
    assert found.sets["unhelpful"].p_learner <= found.sets["random"].p_learner <= own.p_learner
    assert found.sets["greedy"].p_learner >= own.p_learner


def test_beliefs_go_from_the_prior_to_the_set(taught):
    """The last belief is the set's own probability, scored by another computation; each adds one example, by turns."""
    planner, trial, found = taught
    pool, candidate = planner.material.pool.features, trial.candidate
    for policy, beliefs in found.beliefs.items():
        assert [len(belief.examples) for belief in beliefs] == [0, 1, 2, 3, 4]
        chosen = found.sets[policy]
        assert beliefs[0].probability == chosen.p_prior
        assert beliefs[-1].probability == pytest.approx(chosen.p_learner, abs=1e-9)
        assert beliefs[-1].sd < beliefs[0].sd
    indices = torch.tensor([planner.sets["pool"].ids.index(i) for i in found.beliefs["best"][2].examples])
    image = planner.question(candidate).image
    pair = score_sets(planner.prior, pool, indices[None], image, (candidate.target, candidate.alternative), weight=128)
    assert found.beliefs["best"][2].probability == pytest.approx(float(pair), abs=1e-9)


def test_places_keep_the_distances_of_the_learners_covariance(taught):
    """Two axes can only shorten distances; the share they hold is that of the squared ones."""
    planner, trial, found = taught
    question = planner.question(trial.candidate)
    shown = torch.cat([planner.material.pool.features[question.pool], question.image[None]])
    gram = planner.prior.kernel(shown, shown, trial.candidate.target, trial.candidate.alternative)
    whole = gram.diagonal()[:, None] + gram.diagonal() - 2 * gram
    flat = torch.cdist(found.places, found.places) ** 2
    assert bool((flat <= whole + 1e-6 * whole.max()).all())
    assert found.explained == pytest.approx(float(flat.sum() / whole.sum()), rel=1e-6)
    assert found.places.shape == (len(found.ids) + 1, 2)
    assert 2 <= found.targets <= len(found.ids) - 2
