"""Study files are made, copied, renamed and put away without losing one."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ForetellError
from study.plan import config, studyfiles
from study.plan.draft import StudyDraft
from study.workspace.workspace import ROOT
from tests.conftest import write_bundle

DEMO = ROOT / "data" / "studies" / "demo.toml"


def test_a_copy_is_a_study_of_its_own_with_the_comments_on_its_settings(tmp_path: Path) -> None:
    """Catches comments that are lost, and a study of one's own that says it is the demo."""
    path = studyfiles.copy_study(DEMO, tmp_path, "mine", "My study")
    assert path == tmp_path / "studies" / "mine.toml"
    settings = config.read(path)
    assert (settings.study.name, settings.study.title) == ("mine", "My study")
    text, template = path.read_text(), DEMO.read_text()
    heading = template.partition("[study]")[0]
    assert heading.count("#") == 1
    assert text.startswith("[study]")
    assert text.count("#") == template.count("#") - 1
    assert "nobody is paid" in template
    assert "nobody is paid" not in text
    again = studyfiles.copy_study(path, tmp_path, "again")
    path.write_text(f"# My own words.\n\n{text}")
    assert studyfiles.copy_study(path, tmp_path, "third").read_text().startswith("# My own words.")
    assert again.read_text().startswith("[study]")


def test_a_copy_from_another_folder_finds_its_images(tmp_path: Path) -> None:
    """Catches relative paths that point nowhere from the new folder."""
    (tmp_path / "elsewhere" / "images").mkdir(parents=True)
    text = DEMO.read_text().replace('set = "scenes"\nsplit = "pool"\nsize = 800', 'set = "folder"\npath = "images"')
    (tmp_path / "elsewhere" / "theirs.toml").write_text(text)
    path = studyfiles.copy_study(tmp_path / "elsewhere" / "theirs.toml", tmp_path, "mine")
    assert StudyDraft.read(path).get("sets.pool.path") == str(tmp_path / "elsewhere" / "images")


@pytest.mark.parametrize("name", ["", "My Study", "../x", "-a", "a" * 42, "ä", "a/b", "a.toml", "a\n"])
def test_a_name_that_cannot_be_in_a_link_is_refused(tmp_path: Path, name: str) -> None:
    """Catches a name that leaves the folder of study files."""
    with pytest.raises(ForetellError, match="cannot be in a link"):
        studyfiles.copy_study(DEMO, tmp_path, name)
    assert not list(tmp_path.rglob("*.toml"))


def test_a_name_is_given_once(tmp_path: Path) -> None:
    """Also not that of a built study, an archived one, or one that came with Foretell."""
    first = studyfiles.copy_study(DEMO, tmp_path, "mine")
    write_bundle(tmp_path / "bundles" / "built-0123456789ab", name="built")
    studyfiles.archive_study(studyfiles.copy_study(DEMO, tmp_path, "old"))
    for name in ("mine", "built", "old", "demo"):
        with pytest.raises(ForetellError, match=f"already a study {name}"):
            studyfiles.copy_study(first, tmp_path, name)


def test_a_pilot_is_smaller_and_turned_away_by_the_main_study(tmp_path: Path) -> None:
    """Catches a pilot with the main study's quota or interim analyses, and one whose participants come again."""
    path = studyfiles.copy_study(DEMO, tmp_path, "mine")
    draft = StudyDraft.read(path)
    contrast = {"more": "saliency", "less": "none"}
    plan = {"participants": 40, "stopping": {"contrast": contrast, "looks": [20, 40]}}
    for key, value in plan.items():
        draft.set(f"analysis.{key}", value)
    draft.set("recruiter.exclude", ["earlier"])
    draft.save(path)
    pilot = config.read(studyfiles.copy_pilot(path, tmp_path, 2))
    main = config.read(path)
    assert (pilot.study.name, pilot.allocation.per_condition, pilot.plan.participants) == ("mine-pilot", 2, 2)
    assert pilot.analysis.stopping is None
    assert pilot.trials == main.trials
    assert main.recruiter.exclude == ("earlier", "mine-pilot")
    assert (main.plan.participants, main.analysis.stopping is None) == (40, False)
    with pytest.raises(ForetellError, match="already a study mine-pilot"):
        studyfiles.copy_pilot(path, tmp_path, 2)
    assert config.read(path) == main


def test_a_built_study_keeps_its_name(tmp_path: Path) -> None:
    """Catches a rename that separates a study from its links and responses."""
    path = studyfiles.copy_study(DEMO, tmp_path, "mine")
    moved = studyfiles.rename_study(path, tmp_path, "ours")
    assert config.read(moved).study.name == "ours"
    assert not path.exists()
    write_bundle(tmp_path / "bundles" / "ours-0123456789ab", name="ours")
    with pytest.raises(ForetellError, match="Duplicate it instead"):
        studyfiles.rename_study(moved, tmp_path, "theirs")


def test_the_archive_gives_back_what_it_took(tmp_path: Path) -> None:
    path = studyfiles.copy_study(DEMO, tmp_path, "mine")
    text = path.read_bytes()
    away = studyfiles.archive_study(path)
    assert studyfiles.list_archived(tmp_path) == [away]
    assert studyfiles.restore_study(away) == path
    assert path.read_bytes() == text
    away.parent.mkdir(exist_ok=True)
    away.write_text("another")
    with pytest.raises(ForetellError, match="already a study file"):
        studyfiles.restore_study(away)
    assert path.read_bytes() == text


def test_two_studies_differ_where_their_settings_do(tmp_path: Path) -> None:
    path = studyfiles.copy_study(DEMO, tmp_path, "mine")
    draft = StudyDraft.read(path)
    draft.set("trials.per_type", 3)
    draft.set("analysis.alpha", 0.01)
    draft.save(path)
    found = {one.place: (one.first, one.second) for one in studyfiles.compare_studies(path, DEMO)}
    assert found.pop("texts.consent")[0] is None  # the demo's own, which is in no copy
    assert found == {"study.name": ("mine", "demo"), "trials.per_type": (3, 1), "analysis.alpha": (0.01, None)}
