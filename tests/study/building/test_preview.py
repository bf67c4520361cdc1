"""A trial that is previewed is the trial that is built."""

from __future__ import annotations

from study.building.preview import preview_trial
from study.conditions import CONDITIONS
from study.plan.draft import StudyDraft
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


def test_more_options_change_nothing_else_of_a_trial(photographs: Photographs) -> None:
    """The oracle is the trial of two options: same images, target and foil, and two classes of the network more.

    Catches a repeated class, a foil that is not among the options, and images that depend on how many there are.
    """
    draft, path = StudyDraft.read(photographs.folder / "photographs.toml"), photographs.folder / "several.toml"
    draft.set("conditions", ["none", "saliency"])
    draft.set("saliency", {"method": "grad_cam"})
    draft.save(path)
    two = preview_trial(path, photographs.home).trial
    draft.set("trials.options", 4)
    draft.save(path)
    four = preview_trial(path, photographs.home).trial
    path.unlink()
    assert two.model_dump(exclude={"options"}) == four.model_dump(exclude={"options"})
    assert (len({*four.options}), {*two.options} - {*four.options}) == (4, set())
