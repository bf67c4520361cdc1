"""A trial that is previewed is the trial that is built."""

from __future__ import annotations

from study.building.preview import preview_trial
from study.conditions import CONDITIONS
from tests.photographs import Photographs


def test_the_preview_shows_the_trial_of_the_build(photographs: Photographs) -> None:
    """The oracle is the built study: same target image, names and examples. Catches a preview by other settings.

    The categories of the build are four of ten; the preview goes through all ten, so one of four is met soon.
    """
    built = {(t.truth, t.trial_type): t for t in photographs.bundle.manifest.trials}
    for number in range(10):
        preview = preview_trial(photographs.folder / "photographs.toml", photographs.home, number=number)
        trial = preview.trial
        if same := built.get((trial.truth, trial.trial_type)):
            break
    assert same is not None
    assert (trial.source, trial.target, trial.alternative) == (same.source, same.target, same.alternative)
    assert [one.source for one in trial.assets.examples] == [one.source for one in same.assets.examples]
    assert trial.assets.target == same.assets.target  # the name of an image is the SHA-256 of its bytes
    for name in preview.config.conditions:
        shown = CONDITIONS[name].shown(trial)
        assert preview.asset(shown.target).is_file()
    assert not list((photographs.home / "cache" / "previews").rglob("manifest.json"))
