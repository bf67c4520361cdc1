"""Sampling units of a deep belief network on the Explore page, against the inquiry itself."""

from __future__ import annotations

from functools import partial

import pytest

from core.units.deep_belief import list_sampled_layers
from core.units.unit import Unit
from dashboard.explore.units.jobs import make_sampling_task
from dashboard.shared import cache
from inquiry.units import sampled_units
from inquiry.units.sampled_units import SampledQuery
from tests.dashboard.views.conftest import settled
from tests.dashboard.views.test_units import captions

UNIT = {"unit": "A channel", "unit.layer": "second", "unit.channel": "40"}
QUICK = {"unit.starts": "2", "unit.steps": "4"}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw after fewer steps than by default."""
    monkeypatch.setattr(sampled_units, "sample_unit", partial(sampled_units.sample_unit, burn_in=30, apart=4))


def offer(app) -> list[str]:
    return list(app.button_group(key="unit.how").options)


def test_a_unit_of_a_deep_belief_network_is_sampled(opened) -> None:
    """Catches the samples of another unit or seed, maximised images in their place, and no word of chains unmixed."""
    link = {"view": "Classes and units", "classifier": "scenes:belief", "unit.how": "Sampled", "seed": "7"}
    app = opened(**link, **UNIT, **QUICK)
    classifier = cache.load_classifier("scenes:belief")
    expected = sampled_units.sample(classifier, SampledQuery("scenes:belief", "second:40", 2, 4, 7))
    names = ["mean", "sample 1", "sample 2", "sample 3", "start 0", "start 1"]
    values = [*expected.activations[:4].tolist(), *expected.reached.tolist()]
    assert captions(app)[:6] == [f"{name}: {value:.3g}" for name, value in zip(names, values, strict=True)]
    error = f"{float(expected.samples.error.max()):.3f} of 1"
    assert any("1,280 images drawn with the unit clamped to 1" in c.value and error in c.value for c in app.caption)
    assert expected.samples.mixing > 1.2  # so few steps do not mix
    assert any(warning.value.startswith("The chains have not mixed") for warning in app.warning)


def test_only_hidden_units_of_a_deep_belief_network_offer_it(opened) -> None:
    """Catches a choice that is refused afterwards, and one that remains for a unit which cannot be sampled."""
    link = {"view": "Classes and units", "classifier": "scenes:belief", "unit.how": "Sampled"}
    app = opened(**link, **UNIT | {"unit.channel": "3"}, **QUICK)
    assert offer(app) == ["Fourier", "MACO", "Pixels", "Sampled"]
    app = settled(app.selectbox(key="unit.layer").select("head").run())
    assert offer(app) == ["Fourier", "MACO", "Pixels"]
    assert not app.error
    assert not app.exception
    assert [caption.split(":")[0] for caption in captions(app)[:2]] == ["start 0", "start 1"]
    assert list_sampled_layers(cache.load_classifier("scenes:belief")) == ("first", "second")
    assert list_sampled_layers(cache.load_classifier("scenes")) == ()


@pytest.mark.parametrize("change", [{"unit": "second:41"}, {"starts": 3}, {"steps": 5}, {"seed": 1}], ids=str)
def test_whatever_samples_depend_on_is_in_their_key(change) -> None:
    """Catches the samples of another unit, or of other settings, from the cache."""
    classifier = cache.load_classifier("scenes:belief")
    asked = {"unit": "second:40", "starts": 2, "steps": 4, "seed": 0}
    unit = {"second:40": Unit(40, "second"), "second:41": Unit(41, "second")}
    keys = [
        make_sampling_task(classifier, unit[own["unit"]], SampledQuery("scenes:belief", **own)).key
        for own in (asked, asked, asked | change)
    ]
    assert keys[0] == keys[1] != keys[2]
