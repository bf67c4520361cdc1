"""A real build of a tiny study: what is in the bundle, that it can be trusted, and what happens when it is hurt."""

from __future__ import annotations

import json
import shutil

import pytest

from core.errors import ForetellError
from study.building.build import build, verify
from study.building.stimuli import StimulusStudio
from study.bundle import MANIFEST, REMEDY, TRIAL_TYPES, Bundle
from study.locales import CATALOGUES
from study.plan.texts import complete_texts, texts_of
from study.workspace.workspace import bundle_named, bundles
from tests.study.studies import TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    (folder / "tiny.toml").write_text(TINY)
    return folder, build(folder / "tiny.toml", folder / "home")


@pytest.fixture
def copied(built, tmp_path):
    """A copy of the built workspace that a test may hurt."""
    folder, bundle = built
    shutil.copytree(folder, tmp_path / "copy")
    return tmp_path / "copy", Bundle(tmp_path / "copy" / "home" / "bundles" / bundle.folder.name)


def test_trials_are_of_three_types_matched_on_truth(built):
    trials = built[1].manifest.trials
    assert len(trials) == 9
    for k in range(0, 9, 3):
        three = trials[k : k + 3]
        assert {t.trial_type for t in three} == set(TRIAL_TYPES)
        assert len({t.truth for t in three}) == 1


def test_each_trial_is_what_its_type_says(built):
    for trial in built[1].manifest.trials:
        assert (trial.target == trial.truth) == (trial.trial_type == "std_correct")
        assert trial.truth in trial.options
        assert set(trial.options) == {trial.target, trial.alternative}
        assert [e.category for e in trial.assets.examples] == [trial.target] * 2 + [trial.alternative] * 2
        assert trial.teaching.gain is not None
        assert trial.saliency.relevance_on == "object mask"


def test_the_ais_answer_is_as_often_option_a_as_b(built):
    choices = [trial.ai_choice for trial in built[1].manifest.trials]
    assert abs(choices.count("a") - choices.count("b")) <= 1


def test_no_image_is_used_twice_and_practice_is_apart(built):
    manifest = built[1].manifest
    sources = [trial.source for trial in (*manifest.trials, *manifest.practice)]
    assert len(set(sources)) == len(sources) == 11


def test_a_build_freezes_only_facts_that_are_declared(built):
    """Catches a misspelt fact, which would be frozen and shown on no page: unknown facts are kept for old studies."""
    manifest = built[1].manifest
    for trial in (*manifest.trials, *manifest.practice):
        assert not trial.teaching.model_extra
        assert not trial.saliency.model_extra


def test_assets_tell_nothing_but_their_pixels(built):
    for name in built[1].manifest.assets:
        content = built[1].asset(name).read_bytes()
        assert content[:4] == b"RIFF"
        assert all(chunk not in content for chunk in (b"EXIF", b"XMP ", b"ICCP"))


def test_a_second_build_is_the_same_study_from_scratch_and_from_disk(built, tmp_path):
    folder, bundle = built
    assert build(folder / "tiny.toml", folder / "home").study_hash == bundle.study_hash
    again = build(folder / "tiny.toml", tmp_path / "elsewhere")
    assert again.study_hash == bundle.study_hash
    assert sorted(p.name for p in (again.folder / "assets").iterdir()) == sorted(
        f"{name}.webp" for name in bundle.manifest.assets
    )


def test_every_text_is_frozen_with_the_study(built, monkeypatch):
    """Catches a new version of Foretell that changes what participants of a running study read."""
    texts = texts_of(built[1].manifest)
    assert texts == {**CATALOGUES["en"], "title": "A tiny study"}
    monkeypatch.setitem(CATALOGUES, "en", dict.fromkeys(CATALOGUES["en"], "Other words."))
    assert texts_of(built[1].manifest) == texts


def test_another_seed_is_another_study(built, tmp_path):
    (tmp_path / "other.toml").write_text(TINY.replace("seed = 5", "seed = 6"))
    assert build(tmp_path / "other.toml", tmp_path).study_hash != built[1].study_hash


def test_verify_passes_on_an_untouched_bundle(built):
    assert verify(built[1]) == []


def test_verify_names_the_tampered_file(copied):
    _, bundle = copied
    name = sorted(bundle.manifest.assets)[3]
    path = bundle.asset(name)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    assert verify(bundle) == [f"{path} was changed since the study was frozen. {REMEDY}"]
    path.unlink()
    assert verify(bundle) == [f"{path} is missing. {REMEDY}"]


def test_a_tampered_manifest_is_refused(copied):
    _, bundle = copied
    path = bundle.folder / MANIFEST
    manifest = json.loads(path.read_text())
    trial = manifest["trials"][0]
    trial["target"], trial["alternative"] = trial["alternative"], trial["target"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(ForetellError, match="does not match its study hash"):
        Bundle(bundle.folder)


def test_verify_tells_that_images_render_differently(copied, monkeypatch):
    """A drawing code that changed since the freeze: every byte is still what it was, but it cannot be made again."""
    _, bundle = copied
    monkeypatch.setitem(StimulusStudio.make.__globals__, "scale_of", lambda explanation, i: building_scale())
    faults = verify(bundle)
    assert len(faults) == 1
    assert "11 trial(s) render differently now: t000, t001" in faults[0]


def building_scale():
    from core.drawing.rendering import Scale

    return Scale(0.5, 0.01)


def test_a_damaged_bundle_is_mended_by_building_again(copied):
    folder, bundle = copied
    path = bundle.asset(sorted(bundle.manifest.assets)[0])
    path.write_bytes(b"broken")
    assert build(folder / "tiny.toml", folder / "home").study_hash == bundle.study_hash
    assert verify(bundle, render=False) == []


def test_a_killed_build_goes_on_where_it_was(tmp_path, monkeypatch):
    (tmp_path / "tiny.toml").write_text(TINY.replace("categories = 3", "categories = 1"))

    def stop(done, total, what):
        if what == "explaining trials" and done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "tiny.toml", tmp_path / "home", stop)
    assert bundles(tmp_path / "home") == []
    made = []
    original = StimulusStudio.make
    monkeypatch.setattr(
        StimulusStudio, "make", lambda self, planned, p: made.append(planned.id) or original(self, planned, p)
    )
    bundle = build(tmp_path / "tiny.toml", tmp_path / "home")
    assert made == ["t001", "t002", "p000", "p001"]
    assert len(bundle.manifest.trials) == 3


def test_a_study_is_found_by_name_or_folder(built):
    folder, bundle = built
    assert bundle_named(folder / "home", "tiny").study_hash == bundle.study_hash
    assert bundle_named(folder / "home", str(bundle.folder)).study_hash == bundle.study_hash
    with pytest.raises(ForetellError, match=r"no built study 'tine' .*built: tiny"):
        bundle_named(folder / "home", "tine")


def test_first_above_an_unreachable_threshold_drops_and_says_so(tmp_path):
    text = TINY.replace('policy = "best"', 'policy = "first"\nthreshold = 0.999999')
    (tmp_path / "strict.toml").write_text(text)
    with pytest.raises(ForetellError) as refused:
        build(tmp_path / "strict.toml", tmp_path / "home")
    said = str(refused.value)
    reason = "1 trial(s) dropped: of 1 target image(s) tried 0 could be taught; of the last, none of 20 teaching sets"
    assert said.count(reason) == 9
    assert said.startswith("Every trial was dropped (")
    assert "lower the threshold under [teaching]" in said
    assert not (tmp_path / "home" / "bundles").exists()


def test_the_legend_is_that_of_the_methods_colours(tmp_path):
    """Catches participants who are told that blue is against the choice where nothing is blue."""
    one = TINY.replace("parameters = { samples = 8 }", 'method = "vargrad"\nparameters = { samples = 4 }').replace(
        "categories = 3", "categories = 1"
    )
    (tmp_path / "de.toml").write_text(f'language = "de"\n{one}[texts]\nmap_legend = "meine"\n')
    texts = texts_of(build(tmp_path / "de.toml", tmp_path / "home").manifest)
    assert texts["example_map"] == CATALOGUES["de"]["example_map_varying"] != CATALOGUES["de"]["example_map"]
    assert complete_texts("de", {}, "score_cam")["example_map"] == CATALOGUES["de"]["example_map_support"]
    assert texts["map_legend"] == "meine"
