"""The exported file against the service's table, and against what spreadsheets do to it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from core.errors import ForetellError
from study.analysis.responses import reading as responses
from study.collection import psychds
from study.collection.export import DICTIONARY, PARTICIPANTS, export, write_csv
from study.collection.tables import published as theirs
from study.service import Service
from study.simulate import simulate

MakeBundle = Callable[..., Path]
NAMED_BACK = {ours: name for ours, name in theirs.NAMES.items() if ours in responses.REQUIRED + responses.OPTIONAL}


def test_exported_columns_keep_their_names_and_places() -> None:
    """Catches a column that is renamed, moved or lost: scripts of researchers read these files."""
    assert " ".join(DICTIONARY) == (
        "participant mode condition saliency examples trial item trial_type category alternative truth choice correct "
        "rt_ms confidence input resumed n_exposures blur_ms frame_hz dropped_frames clock_ms shown_sha256 study_hash "
        "received_at task ai_correct first_choice first_correct switched first_rt_ms first_confidence "
        "first_received_at level n_classes order block round n_training period previous_condition condition_order "
        "p_learner gain insertion deletion relevance effective_samples ai_probability x y cells region_area distance "
        "peak_distance object_hit brushed pointing iou rank_correlation chance permuted_iou n_levels unit_gap "
        "text code_1 code_2 attribute attribute_position selected exact "
        "difficulty difficulty_level aimed_level target_share chosen_by ability ability_sd sitting"
    )
    assert " ".join(PARTICIPANTS) == (
        "participant mode condition stage check_tries catch_missed excluded reason resumes anticipations slow "
        "blur_ms over_quota minutes clock_offset_ms round_trip_ms questionnaire device study_hash messages responses "
        "other_keys translated clock_jump sittings_ended sitting_times"
    )


def test_the_file_is_the_table(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    study = service.researcher.open_study(bundle(), per_condition=1)
    simulate(service, study, 4, {"guesser": 1.0}, seed=1)
    path = export(service.researcher, study, tmp_path / "out" / "responses.csv", modes=("sim",))
    pd.testing.assert_frame_equal(pd.read_csv(path), service.researcher.responses(study, ("sim",)), check_dtype=False)
    assert json.loads((path.parent / "data-dictionary.json").read_text()) == DICTIONARY


def test_simulated_people_are_left_out_unless_asked_for(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    study = service.researcher.open_study(bundle(), per_condition=1)
    simulate(service, study, 1, {"guesser": 1.0}, seed=1)
    assert len(pd.read_csv(export(service.researcher, study, tmp_path / "responses.csv"))) == 0


def test_formulas_are_disarmed_and_numbers_are_not(tmp_path: Path) -> None:
    """The list of leading characters is that of OWASP's page on CSV injection."""
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "plain", 'a "quoted", text', "ünïcode"]
    frame = pd.DataFrame({"text": texts, "number": [-1.5] * len(texts)})
    write_csv(frame, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    assert [row[0] for row in rows] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", *texts[5:]]
    assert {row[1] for row in rows} == {"-1.5"}


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("layout", ["a.csv", "a.parquet", "psych-ds"])
def test_what_is_exported_and_read_again_has_the_same_hash(
    service: Service, bundle: MakeBundle, tmp_path: Path, layout: str, published: bool
) -> None:
    """Catches a value that a format rounds, a column that it loses, a name that is mapped wrongly."""
    study = service.researcher.open_study(bundle(), per_condition=1)
    simulate(service, study, 4, {"guesser": 1.0}, seed=1)
    if layout == "psych-ds":
        psychds.export(service.researcher, study, tmp_path / layout, ("sim",), published=published)
        path = tmp_path / layout / "data" / "study-demo_desc-responses_data.csv"
    else:
        path = export(service.researcher, study, tmp_path / layout, ("sim",), published=published)
    again = responses.read(path, NAMED_BACK if published else None)
    assert again.sha256 == responses.prepare(service.researcher.responses(study, ("sim",))).sha256
    changed = again.frame.assign(rt_ms=again.frame["rt_ms"] + 1e-9)
    assert responses.prepare(changed).sha256 != again.sha256


def test_a_psych_ds_folder_describes_every_column_of_its_files(
    service: Service, bundle: MakeBundle, tmp_path: Path
) -> None:
    """The rules of Psych-DS 1.0 that can be checked: names, required fields, every column among the variables."""
    study = service.researcher.open_study(bundle(), per_condition=1)
    simulate(service, study, 2, {"guesser": 1.0}, seed=1)
    folder = psychds.export(service.researcher, study, tmp_path / "set", ("sim",))
    told = json.loads((folder / "dataset_description.json").read_text())
    assert (told["@context"], told["@type"], told["name"]) == ("https://schema.org/", "Dataset", "demo")
    variables = {variable["name"] for variable in told["variableMeasured"]}
    files = sorted((folder / "data").iterdir())
    assert [path.name for path in files] == ["study-demo_desc-people_data.csv", "study-demo_desc-responses_data.csv"]
    columns = {name for path in files for name in pd.read_csv(path).columns}
    assert columns == variables == {*DICTIONARY, *PARTICIPANTS}
    assert all(variable["description"] for variable in told["variableMeasured"])


def test_published_names_are_in_the_dictionary_too(service: Service, bundle: MakeBundle, tmp_path: Path) -> None:
    study = service.researcher.open_study(bundle(), per_condition=1)
    path = export(service.researcher, study, tmp_path / "x.csv", published=True)
    told = json.loads((tmp_path / "data-dictionary.json").read_text())
    assert list(told) == list(pd.read_csv(path).columns)
    assert {"subject_id", "prediction_type", "target_category", "rt", "trial_index"} <= set(told)
    assert {name for name, about in told.items() if about["name"] == "Foretell"} == set(DICTIONARY) - set(theirs.NAMES)


def test_published_columns_mean_what_the_published_analysis_takes_them_for(
    service: Service, bundle: MakeBundle, tmp_path: Path
) -> None:
    """Catches ``correct`` as 0 and 1: there it is the AI's answer. The lines are those of the authors' own analysis."""
    study = service.researcher.open_study(bundle(), per_condition=1)
    simulate(service, study, 4, {"guesser": 1.0}, seed=1)
    ours = service.researcher.responses(study, ("sim",))
    frame = pd.read_csv(export(service.researcher, study, tmp_path / "x.csv", ("sim",), published=True))
    correct_response = (frame["correct"] == frame["response"]).astype(int)
    choice_category = frame["target_category"].where(correct_response == 1, frame["other_category"])
    assert list(correct_response) == list(ours["correct"]) == list(frame["correct_response"])
    assert list(choice_category) == list(ours["choice"])
    assert list(choice_category == frame["ground_truth"]) == list(ours["choice"] == ours["truth"])
    assert set(frame.loc[ours["examples"] == 0, "examples_condition"]) == {"no_examples"}
    assert set(frame.loc[ours["saliency"] == 1, "highlights_condition"]) == {"highlights"}


def test_a_file_that_is_no_parquet_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(ForetellError, match=r"x\.parquet is not a Parquet file"):
        responses.read(tmp_path / "x.parquet")
