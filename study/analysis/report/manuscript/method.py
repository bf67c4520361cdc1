"""The method section: participants, design, task and analysis, as the plan and the frozen study say.

What Foretell cannot know, such as who the participants were and what they were paid, is left as a bracket to fill in.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from core.names import format_name, lower_first
from study.analysis.models.formula import has_slopes
from study.analysis.models.sentences import alpha_text, coverage_text
from study.analysis.planned.analysis import PlannedAnalysis
from study.analysis.planned.nested import NestedAnalysis
from study.analysis.report.manuscript.adaptive import describe_choice
from study.analysis.report.manuscript.attributes import describe_grids
from study.analysis.report.manuscript.units import describe_coding, describe_references, describe_unit_trials
from study.analysis.responses.accuracies import order
from study.analysis.responses.outcome import LEVEL
from study.analysis.responses.reading import Responses
from study.bundle import TRIAL_TYPES, TYPE_LABELS, Manifest
from study.conditions import CONDITIONS, format_condition
from study.plan.adaptive import adaptive_of
from study.plan.covariates import COVARIATES
from study.plan.orders import count_within, is_within, list_orders
from study.plan.preregistration import FACTORIAL_CONDITIONS
from study.plan.procedure import Blocks, procedure_of
from study.tasks import find_task

RECRUITED = "[Add where and how participants were recruited, their age and gender, what they were paid, and consent.]"
STUDY = "[Add the network, the images and the number of trials: the study was not named in this analysis.]"
SIMULATED = "These participants are simulated: the numbers show what an analysis would look like, and nothing else."
ORDERS = {
    "blocks": "in blocks of one participant for each condition",
    "shuffled": "in one random order of all places",
}


def write_method(
    analysis: NestedAnalysis, data: Responses, plan: PlannedAnalysis | None, manifest: Manifest | None, level: float
) -> dict[str, str]:
    """Write the paragraphs of the method section by their headings; `*` surrounds italics.

    Parameters
    ----------
    level
        The p below which a test counts as evidence.
    """
    design = {"Design and materials": STUDY} if manifest is None else _describe_study(data, manifest)
    return {
        "Participants": _describe_participants(data, plan, manifest),
        **design,
        "Analysis": _describe_analysis(analysis, plan, manifest, level),
    }


def _describe_participants(data: Responses, plan: PlannedAnalysis | None, manifest: Manifest | None) -> str:
    people = data.frame.groupby("condition")["participant"].nunique()
    each = _join([f"{people[name]:,} with {lower_first(format_condition(name))}" for name in order(data.frame)])
    said, everyone = [SIMULATED] if data.has_simulated else [], data.frame["participant"].nunique()
    if len(people) > 1 and (people == everyone).all():
        each = f"each in all {len(people)} conditions"
    said.append(f"The analysis includes {everyone:,} participants ({each}).")
    if plan is not None:
        said += [plan.stopping, *_describe_exclusions(plan)]
    contact = {} if manifest is None else manifest.config.get("contact", {})
    if contact.get("board"):
        approval = f" ({contact['approval']})" if contact.get("approval") else ""
        said.append(f"The study was approved by {contact['board']}{approval}.")
    return " ".join([*said, RECRUITED])


def _describe_exclusions(plan: PlannedAnalysis) -> list[str]:
    """Say what each rule excluded, also where it excluded nothing."""
    rows = plan.exclusions.to_dict("records")
    if not rows:
        return ["No exclusions were planned."]
    each = [
        f"{row['rule']}: {_count(row['people'], 'participant')}, {_count(row['responses'], 'response')}" for row in rows
    ]
    return [f"Excluded ({'; '.join(each)})."]


def _describe_study(data: Responses, manifest: Manifest) -> dict[str, str]:
    """Describe what the manifest holds, whichever version froze it."""
    config, network = manifest.config, manifest.classifier
    return {
        "Design and materials": " ".join(
            [
                *_describe_network(network, manifest.sets),
                *_count_trials(manifest),
                *_describe_sittings(manifest),
                *_describe_conditions(manifest),
            ]
        ),
        "Explanations": describe_references(manifest)
        if data.task.of_units
        else " ".join(_describe_explanations(config, manifest.conditions)),
        "Task": _describe_task(data, manifest),
    }


def _describe_network(network: Mapping[str, Any], sets: Mapping[str, Any]) -> list[str]:
    accuracy = network.get("accuracy", {})
    if "name" not in network:
        return ["[Add the network.]"]
    said = [f"The AI was the image classifier {network['name']}."]
    known = [
        f"{accuracy[role]:.1%} of the {sets[role]['images']:,} {kind} images ({sets[role]['name']})"
        for role, kind in (("standard", "standard"), ("adversarial", "natural adversarial"))
        if role in accuracy and role in sets
    ]
    return [*said, f"It classified {_join(known)} correctly."] if known else said


def _count_trials(manifest: Manifest) -> list[str]:
    trials = manifest.trials
    counts = {kind: sum(trial.trial_type == kind for trial in trials) for kind in TRIAL_TYPES}
    kinds = _join([f"{count} with the {TYPE_LABELS[kind]}" for kind, count in counts.items() if count])
    practice = len(manifest.practice)
    task = find_task(manifest.config)
    told = " with feedback" if task.tells else ""
    before = f", after {_count(practice, 'practice trial')}{told}" if practice else ""
    categories = len({trial.category for trial in trials})
    blocks, adaptive = procedure_of(manifest).blocks, adaptive_of(manifest)
    number = count_within(manifest) if is_within(manifest) else len(trials)
    if task.of_attributes:
        return [*describe_grids(manifest, before)]
    if task.of_units:
        return [*describe_unit_trials(manifest, number, before)]
    if adaptive is not None:
        return [
            f"Each participant responded to {adaptive.trials} trials, chosen by their responses from {len(trials)} of "
            f"{categories} categories ({kinds}){before}.",
            *describe_choice(adaptive),
        ]
    if number < len(trials):
        return [
            f"Each participant responded to {number} trials, drawn from {len(trials)} of {categories} categories "
            f"({kinds}){before}."
        ]
    if blocks is None:
        return [f"Each participant responded to {len(trials)} trials of {categories} categories ({kinds}){before}."]
    drawn = f"drawn for each participant from {len(trials)} of {categories} categories ({kinds})"
    return [f"Each participant responded to {blocks.total} trials, {drawn}{before}.", *_describe_blocks(blocks)]


def _describe_sittings(manifest: Manifest) -> list[str]:
    """Describe several sittings: how many, when, and how trials were divided among them."""
    sittings = procedure_of(manifest).sittings
    if sittings is None:
        return []
    divided = "whole conditions" if is_within(manifest) else "as many of each type, or one more,"
    return [
        f"They took part in {sittings.count} sittings; each could be started {sittings.gap_hours} to "
        f"{sittings.within_hours} hours after the end of the one before, by a personal link. The trials were divided "
        f"at random for each participant, with {divided} in each sitting. Responses of participants who did not "
        "return are included.",
    ]


def _describe_blocks(blocks: Blocks) -> list[str]:
    """Describe training and test, and which of them was analysed."""
    opened = ", and the AI's prediction was shown after the response" if blocks.feedback else ""
    kept = " The training images seen so far stayed available in test." if blocks.reservoir else ""
    return [
        f"They alternated between training and test ({_count(blocks.rounds, 'round')}). In training ({blocks.training} "
        f"trials a round), the explanation of the condition was shown with the image{opened}. In test ({blocks.test} "
        f"trials a round), the image was shown alone in all conditions, without feedback.{kept} No image was in both.",
        "Responses in training were excluded from all analyses.",
    ]


def _describe_conditions(manifest: Manifest) -> list[str]:
    names = [lower_first(format_condition(name)) for name in manifest.conditions]
    if len(names) == 1:
        return [f"All participants were in one condition: {names[0]}."]
    if is_within(manifest):
        return [*_describe_within(manifest, names)]
    how = ORDERS.get(manifest.config.get("allocation", {}).get("order", "blocks"), "")
    return [f"Participants were assigned at random, {how}, to one of {len(names)} conditions: {_join(names)}."]


def _describe_within(manifest: Manifest, names: Sequence[str]) -> Iterator[str]:
    """Describe conditions within participants: their order, and which images each had."""
    number, order = len(list_orders(manifest.conditions)), manifest.config["allocation"].get("order", "blocks")
    how = ORDERS.get(order, "").replace("each condition", "each order")
    yield (
        f"Each participant saw all {len(names)} conditions, one after another: {_join(names)}. Their order followed a "
        f"balanced Latin square of {number} orders, in which each condition is in each position and follows each other "
        f"condition equally often (Williams, 1949). Orders were assigned at random, {how}."
    )
    yield (
        "Each condition had as many trials of each type. Images were divided among the conditions at random, so that "
        "over a block each image was in each condition equally often; no participant saw an image twice. A text before "
        "each condition explained what was shown."
    )


def _describe_explanations(config: Mapping[str, Any], conditions: Sequence[str]) -> list[str]:
    heatmap, teaching, said, unknown = config.get("saliency"), config.get("teaching"), [], []
    if {"saliency", "both"} & set(conditions):
        said += [_describe_heatmap(heatmap)] if heatmap else []
        unknown += [] if heatmap else ["saliency maps"]
    if {"examples", "both"} & set(conditions):
        said += [_describe_teaching(teaching)] if teaching else []
        unknown += [] if teaching else ["examples"]
    of_options = [name for name in conditions if heatmap and CONDITIONS[name].explains_each_option]
    if heatmap and of_options:
        said.append(_describe_class_heatmaps(heatmap))
    others = [name for name in conditions if name not in (*FACTORIAL_CONDITIONS, *of_options)]
    unknown += [lower_first(format_condition(name)) for name in others]
    if unknown:
        said.append(f"[Add how these were made: {_join(unknown)}.]")
    return said or ["No explanations were shown."]


def _describe_class_heatmaps(heatmap: Mapping[str, Any]) -> str:
    return (
        "A heatmap of each class explained the image for this class, whether or not the AI chose it, by the method "
        f"“{format_name(heatmap['method'])}”. Each was drawn on its own scale and shown with the name of its class."
    )


def _describe_heatmap(heatmap: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{name} = {value}" for name, value in heatmap.get("parameters", {}).items())
    made = f"the method “{format_name(heatmap['method'])}”" + (f" ({settings})" if settings else "")
    return f"Saliency maps were computed by {made} and drawn over the image."


def _describe_teaching(teaching: Mapping[str, Any]) -> str:
    return (
        f"Examples were chosen by the teaching policy “{teaching['policy']}” from {teaching['sets']} random sets, for "
        "a model learner of the AI (Folke et al., 2021)."
    )


def _describe_task(data: Responses, manifest: Manifest) -> str:
    question = manifest.texts.get("question", "")
    asked = f"On each trial participants were asked: “{question}” " if question else ""
    chance = data.task.explain_chance()
    if not data.task.is_scored:
        levels = ", ".join(choice.replace("_", " ") for choice in data.task.choices or ())
        return (
            f"{asked}They responded on a scale of {data.task.count} levels ({levels}). No response was right or wrong."
        )
    if data.task.is_written:
        return f"{asked}{describe_coding(manifest)}"
    return f"{asked}A response was correct if {data.task.meaning.partition(':')[0]}. {chance}".strip()


def _describe_analysis(
    analysis: NestedAnalysis, plan: PlannedAnalysis | None, manifest: Manifest | None, level: float
) -> str:
    return " ".join(
        [
            _describe_models(analysis),
            *_describe_covariates(plan),
            *analysis.reduction,
            *_describe_tests(analysis, level),
            f"Contrasts of the largest model are {_name_differences(analysis)}, averaged over its random effects. "
            f"Their {coverage_text(level)} intervals are uncorrected; their *p* values are corrected for the number of "
            "contrasts (Holm, 1979).",
            _describe_plan(plan, manifest),
            f"Foretell made the analysis with Python {platform.python_version()} and glmm {version('glmm')}.",
        ]
    ).replace("Matuschek, Kliegl, Vasishth, Baayen & Bates, 2017", "Matuschek et al., 2017")


def _describe_models(analysis: NestedAnalysis) -> str:
    fixed = _join([f"`{model.formula}` ({name})" for name, model in analysis.models.items()])
    slopes = " (Barr et al., 2013)" if has_slopes(analysis.largest.formula) else ""
    if analysis.largest.family == LEVEL.family:
        return (
            f"The level of a response was analysed by cumulative-logit mixed models{slopes} (McCullagh, 1980), fitted "
            f"by maximum likelihood with the Laplace approximation: {fixed}."
        )
    return (
        f"Whether a response was correct was analysed by logistic mixed models{slopes}, fitted by maximum likelihood "
        f"with the Laplace approximation: {fixed}."
    )


def _name_differences(analysis: NestedAnalysis) -> str:
    if analysis.largest.family == LEVEL.family:
        return "odds ratios of a higher level and differences between mean levels"
    return "differences in accuracy"


def _describe_covariates(plan: PlannedAnalysis | None) -> list[str]:
    names = () if plan is None else plan.plan.covariates
    if not names:
        return []
    each = _join([f"{name} ({COVARIATES[name]})" for name in names])
    return [f"Covariates were standardised over the analysed responses: {each}."]


def _describe_tests(analysis: NestedAnalysis, level: float) -> list[str]:
    if not analysis.tests:
        return []
    said = ["Each model was compared with the one before by a likelihood-ratio test."]
    if any(test.df2 is not None for test in analysis.tests):
        said.append(
            "The statistic divided by its degrees of freedom, and by how much restricted maximum likelihood would "
            "enlarge the error, was compared with the *F* distribution, and contrasts with the *t* distribution, with "
            "approximate denominator degrees of freedom (Satterthwaite, 1946)."
        )
    if len(analysis.tests) > 1 and any(test.p_holm is not None for test in analysis.tests):
        said.append(f"The *p* values of the {len(analysis.tests)} tests were corrected together (Holm, 1979).")
    return [*said, f"Results with *p* < {alpha_text(level)} count as evidence."]


def _describe_plan(plan: PlannedAnalysis | None, manifest: Manifest | None) -> str:
    if plan is None:
        return "The analysis was not planned before the data were collected."
    if manifest is None:
        return "[Say when the analysis plan was written.]"
    return (
        "Models, contrasts, exclusions and sample size were frozen with the study before its first participant (study "
        f"{manifest.study_hash[:12]}, plan {plan.plan.sha256[:12]}). [Add where the plan was registered, if it was.]"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _join(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
