"""Responses as a table for the analysis: one row per response to a main trial; correctness is derived, never stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from study.bundle import Manifest
from study.collection.tables.adapted import trace_responses
from study.collection.tables.adaptive_columns import ADAPTED
from study.collection.tables.columns import TEXT, WHOLE, Column, tabulate
from study.collection.tables.places import SCORES, Score, open_permutation
from study.collection.tables.stored import NO_CODES, Codes, StoredResponse, format_time, list_judgements
from study.conditions import CONDITIONS
from study.participation.attributes import find_position
from study.participation.screens import find_order
from study.plan.coding import coding_of
from study.plan.covariates import TRIAL_COVARIATES, Covariate
from study.plan.orders import is_within
from study.plan.procedure import procedure_of
from study.tasks import find_task

LATER, LAST = ("unit_gap",), ("difficulty",)
"""Covariates whose columns come later, after those that exports had before."""


def pseudonym(row: Mapping[str, Any]) -> str:
    """Return the pseudonym of a participant in exported tables."""
    return f"P{row['participant_id'][:16]}"


def _read_covariate(name: str, covariate: Covariate) -> Column[StoredResponse]:
    """Return the column of what was measured of each trial, the same for all participants and conditions."""
    meaning = f"of the trial: {covariate.meaning}; empty where it was not measured"
    return Column(name, meaning, lambda one: covariate.read(one.trial), dtype=float)


def _read_score(score: Score) -> Column[StoredResponse]:
    """Return the column of a place or of one of its scores."""
    dtype = TEXT if score.is_text else float
    return Column(score.name, score.meaning, lambda one: one.scores.get(score.name), unit=score.unit, dtype=dtype)


COLUMNS: tuple[Column[StoredResponse], ...] = (
    Column("participant", "pseudonym of the participant, the same in all their rows", lambda one: pseudonym(one.row)),
    Column("mode", "live: a participant; preview: a researcher's preview; sim: a simulated participant"),
    Column(
        "condition", "condition of the trial: of all of a participant's, or of its period", lambda one: one.condition
    ),
    Column(
        "saliency",
        "whether the condition shows saliency maps",
        lambda one: int(CONDITIONS[one.condition].shows_saliency),
        values="0, 1",
    ),
    Column(
        "examples",
        "whether the condition shows examples",
        lambda one: int(CONDITIONS[one.condition].shows_examples),
        values="0, 1",
    ),
    Column(
        "trial",
        "position of the trial in the participant's order, without practice",
        lambda one: one.row["trial_index"] - one.row["practice"] + 1,
        unit="1 is the first",
    ),
    Column("item", "id of the trial in the frozen study", lambda one: one.trial.id),
    Column(
        "trial_type",
        "kind of trial",
        lambda one: one.trial.trial_type,
        values="adv_incorrect, std_incorrect, std_correct; unit; used, unused",
    ),
    Column(
        "category",
        "class the AI predicted (the target category); of units the unit, LAYER:CHANNEL; of discover the attribute",
        lambda one: one.trial.category,
    ),
    Column(
        "alternative",
        "the foil: the other option, or the first of several (the column order has all); of units the side of the "
        "image that activates the unit less; empty for discover",
        lambda one: one.trial.alternative,
    ),
    Column("truth", "true class of the image; empty for units and attributes", lambda one: one.trial.truth),
    Column(
        "choice",
        "option the participant chose: of predict a class, of accept_reject whether the AI is right, of reliance the "
        "class of the final response, of agreement how confident they are that the AI is right or wrong, of localise "
        "and highlight whether the marked place is in the region of the heatmap, of rating how much they agree with "
        "the statement, of unit_choice and unit_counterfactual the side of the image that activates the unit more, of "
        "name whether the text is correct by the codes of both raters, empty before both; of discover whether they "
        "chose the attribute",
        lambda one: one.choice,
        values="a class; right, wrong; fairly_wrong, somewhat_wrong, somewhat_right, fairly_right; inside, outside; "
        "strongly_disagree, disagree, somewhat_disagree, neither, somewhat_agree, agree, strongly_agree; left, right; "
        "correct, incorrect; selected, unselected",
    ),
    Column(
        "correct",
        "whether the response is correct: of predict, choice equals category; of accept_reject, choice is right where "
        "category equals truth and wrong elsewhere; of reliance, choice equals truth; of agreement, level is 3 or 4 "
        "where category equals truth and 1 or 2 elsewhere; of localise and highlight, choice is inside; of "
        "unit_choice and unit_counterfactual, choice is the side of the image that activates the unit more; of name, "
        "both raters gave the text a code that the study file counts as correct, empty before both; of discover, "
        "choice is selected where trial_type is used and unselected elsewhere. Empty for rating, where nothing is "
        "right or wrong",
        lambda one: one.correct,
        values="0, 1",
    ),
    Column(
        "rt_ms",
        "from the second frame after the images were ready to the response, on the browser's clock",
        unit="ms",
    ),
    Column("confidence", "the participant's confidence, if the study asks", unit="0 guessed, 1 certain", dtype=float),
    Column("input", "input device of the response", values="key, mouse, touch, sim"),
    Column("resumed", "whether the page was reloaded while this trial was on the screen", values="0, 1"),
    Column("n_exposures", "how often the trial was shown to this participant before their response"),
    Column("blur_ms", "how long the page was hidden between onset and response", unit="ms"),
    Column("frame_hz", "refresh rate of the screen as the page measured it", unit="Hz", dtype=float),
    Column("dropped_frames", "late frames between onset and response", dtype=float),
    Column("clock_ms", "smallest step of the browser's clock", unit="ms", dtype=float),
    Column(
        "shown_sha256",
        "SHA-256 over the SHA-256 of every image shown, one per line: target, heatmap, options from left to right, "
        "of the AI's label; then ``label: `` and that label, where the task shows it",
    ),
    Column("study_hash", "SHA-256 of the frozen study the participant took"),
    Column("received_at", "when the server received the response", lambda one: one.received_at, unit="ISO 8601, UTC"),
    Column("task", "what participants were asked: the task of the study file", lambda one: one.task.name),
    Column(
        "ai_correct",
        "whether the AI's prediction is the true class; empty for units and attributes",
        lambda one: int(one.trial.target == one.trial.truth) if one.task.is_of_predictions else None,
        values="0, 1",
    ),
    Column(
        "first_choice",
        "of reliance, the class of the first response, to the image alone; empty in other tasks, as the next five",
        lambda one: one.row["first_choice"] and one.task.name_choice(one.trial, one.row["first_choice"]),
        values="a class",
        dtype=TEXT,
    ),
    Column(
        "first_correct",
        "whether first_choice equals truth",
        lambda one: one.first_correct,
        values="0, 1",
        dtype=WHOLE,
    ),
    Column(
        "switched",
        "whether the final response, choice, is another class than first_choice",
        lambda one: one.row["first_choice"] and int(one.row["first_choice"] != one.row["choice"]),
        values="0, 1",
        dtype=WHOLE,
    ),
    Column("first_rt_ms", "response time of the first response; rt_ms is of the final one", unit="ms", dtype=float),
    Column("first_confidence", "confidence in the first response", unit="0 guessed, 1 certain", dtype=float),
    Column(
        "first_received_at",
        "when the server received the first response",
        lambda one: one.row["first_received_at"] and format_time(one.row["first_received_at"]),
        unit="ISO 8601, UTC",
        dtype=TEXT,
    ),
    Column(
        "level",
        "of agreement, the level of choice on the scale: 1 fairly confident that the AI is wrong, 4 that it is right; "
        "of rating, 1 is the strongest disagreement; empty in other tasks",
        lambda one: one.task.find_level(one.row["choice"]),
        values="1 to 4; 1 to n_levels",
        dtype=WHOLE,
    ),
    Column(
        "n_classes",
        "how many classes participants chose from; chance is one in so many. Empty in tasks whose options are no "
        "classes",
        lambda one: one.task.options if one.task.choices is None else None,
        values="2 to 5",
        dtype=WHOLE,
    ),
    Column(
        "order",
        "of predict with more than two classes, those classes as they were on the screen, from left to right; empty "
        "elsewhere",
        lambda one: find_order(json.loads(one.row["screen_json"])) if one.task.has_several else None,
        values="classes with | between them",
        dtype=TEXT,
    ),
    Column(
        "block",
        "of a study with blocks, the block of the trial: only responses in test are analysed; empty in other studies, "
        "as the next two",
        lambda one: one.place and one.place.kind,
        values="training, test",
        dtype=TEXT,
    ),
    Column(
        "round", "round of the block", lambda one: one.place and one.place.round, unit="1 is the first", dtype=WHOLE
    ),
    Column(
        "n_training",
        "how many training images the participant had seen before the trial",
        lambda one: one.place and one.place.seen,
        dtype=WHOLE,
    ),
    Column(
        "period",
        "of a study within participants, the period of the trial: each has one condition; empty in other studies, as "
        "the next two",
        lambda one: one.period and one.period.number,
        unit="1 is the first",
        dtype=WHOLE,
    ),
    Column(
        "previous_condition",
        "condition of the participant's period before; empty in their first",
        lambda one: one.previous_condition,
        dtype=TEXT,
    ),
    Column(
        "condition_order",
        "the participant's order of conditions",
        lambda one: one.period and one.row["condition"],
        values="conditions with > between them",
        dtype=TEXT,
    ),
    *(_read_covariate(name, covariate) for name, covariate in TRIAL_COVARIATES.items() if name not in (*LATER, *LAST)),
    *(_read_score(score) for score in SCORES),
    Column(
        "n_levels",
        "of rating, how many levels the scale has; empty in other tasks",
        lambda one: None if one.task.is_scored else one.task.count,
        values="3 to 7",
        dtype=WHOLE,
    ),
    *(_read_covariate(name, TRIAL_COVARIATES[name]) for name in LATER),
    Column("text", "of name, what the participant wrote; empty in other tasks, as the next two", dtype=TEXT),
    Column(
        "code_1",
        "of name, the code of the first rater, who began first: a code of the study file; empty before it was given",
        lambda one: one.codes[0],
        dtype=TEXT,
    ),
    Column("code_2", "of name, the code of the second rater", lambda one: one.codes[1], dtype=TEXT),
    Column(
        "attribute",
        "of discover, which has a row for each attribute of a trial, the attribute in words; empty in other tasks, as "
        "the next three",
        lambda one: (one.letter and one.trial.target) or None,
        dtype=TEXT,
    ),
    Column(
        "attribute_position",
        "place of the attribute in the participant's list",
        lambda one: find_position(json.loads(one.row["screen_json"]), one.letter) if one.letter else None,
        unit="1 is the first",
        dtype=WHOLE,
    ),
    Column("selected", "whether the participant chose it", lambda one: one.is_selected, values="0, 1", dtype=WHOLE),
    Column(
        "exact",
        "whether the whole set of the trial is correct: all attributes that the AI uses and no other",
        lambda one: int(one.row["choice"] == "a") if one.letter else None,
        values="0, 1",
        dtype=WHOLE,
    ),
    *(_read_covariate(name, TRIAL_COVARIATES[name]) for name in LAST),
    *ADAPTED,
    Column(
        "sitting",
        "of a study with several sittings, the one in which the trial was; empty in other studies",
        unit="1 is the first",
        read=lambda one: one.sitting,
        dtype=WHOLE,
    ),
)


def response_frame(
    rows: Sequence[Mapping[str, Any]],
    manifests: Mapping[str, Manifest],
    codes: Codes = NO_CODES,
) -> pd.DataFrame:
    """Tabulate responses, one row each; to a trial about attributes, one for each attribute.

    Parameters
    ----------
    rows
        Of `study.store.responses.list_main_responses`.
    manifests
        Those of the bundles, by study hash.
    codes
        Of the two raters of each text.
    """
    trials = {study_hash: {trial.id: trial for trial in one.trials} for study_hash, one in manifests.items()}
    asked = {
        study_hash: (
            find_task(one.config),
            procedure_of(one).blocks is not None,
            is_within(one),
            open_permutation(one),
            coding_of(one),
        )
        for study_hash, one in manifests.items()
    }
    made = tabulate(COLUMNS, list_judgements(rows, trials, asked, codes, trace_responses(rows, manifests)))
    tasks = [task for task, *_ in asked.values()]
    missing = {
        "correct": any(not task.is_scored_at_once for task in tasks),
        "ai_correct": any(not task.is_of_predictions for task in tasks),
    }
    return made.astype({name: WHOLE for name, is_missing in missing.items() if is_missing})
