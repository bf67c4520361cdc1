"""The settings of a study file that the page offers, by section: what each is called and what its choices mean."""

from __future__ import annotations

from core.names import format_name
from core.teaching.policies import POLICIES
from dashboard.design.fields import Setting
from study.bundle import TYPE_LABELS
from study.plan.measures import IMAGE_MEASURES
from study.plan.services import SERVICES
from study.tasks import TASKS

TYPES = tuple(TYPE_LABELS.values())
LANGUAGES = {"en": "English", "de": "German"}
STUDY = (
    Setting("study.title", "Title", "What participants read at the top of the first page."),
    Setting("language", "Language of the experiment", names=LANGUAGES),
    Setting(
        "study.task",
        "Task",
        "What participants are asked: to predict the AI, to accept or reject its label, which they see, or to name the "
        "image twice, alone and then with the AI's label and the explanation.",
        names={name: format_name(name) for name in TASKS},
        options=tuple(TASKS),
    ),
)
ADVANCED = (
    Setting("study.seed", "Random seed", "Chooses images and examples. The same seed gives the same study."),
    Setting("display.size", "Side of an image (px)"),
)
CONTACT = (
    Setting("contact.researcher", "Responsible researcher", "Shown with the consent and on every last page."),
    Setting("contact.email", "E-mail address"),
    Setting("contact.board", "Ethics board"),
    Setting("contact.approval", "Approval number"),
)
RESIZE = Setting(
    "classifier.resize",
    "Preprocessing",
    "How an image becomes the network's input: cropped and scaled by the network's own transforms, or squashed as a "
    "whole to the input's size. For networks of torchvision, timm and CLIP.",
    names={"transforms": "The network's own transforms", "whole": "The whole image, squashed to the input"},
)
TRIALS = (
    Setting("trials.per_type", "Trials of each type in each category", f"The trial types are: {'; '.join(TYPES)}."),
    Setting("trials.practice", "Practice trials"),
    Setting(
        "trials.options",
        "Classes to choose from",
        "Of the task Predict: the AI's prediction, its foil, and the next most confusable classes. With more than two, "
        "no condition may show examples.",
    ),
    Setting("trials.levels", "Levels of the scale", "Of the task Rating: 3 to 7; 5 if it is not set."),
    Setting(
        "trials.spread",
        "Balance categories by",
        "A number of categories is chosen evenly over their ranks by the AI's accuracy, or over the accuracy itself.",
        names={"ranks": "rank by accuracy", "accuracy": "accuracy"},
    ),
    Setting(
        "trials.confusion",
        "Errors that choose the foil",
        "The foil of a correct prediction is the category that is most often confused with it.",
        names={"both": "confusions in both directions", "target": "only of the target category"},
    ),
)
STRATA = (
    Setting(
        "trials.strata.measure",
        "Measure",
        "A number for each image, such as how uncertain the AI is about it.",
        names={name: format_name(name) for name in IMAGE_MEASURES},
        options=tuple(IMAGE_MEASURES),
    ),
    Setting("trials.strata.bins", "Strata", "Each stratum gets as many targets as the others, as far as images allow."),
    Setting("trials.strata.candidates", "Images measured per category and type"),
)
BLOCKS = (
    Setting("blocks.training", "Trials of a training block"),
    Setting("blocks.test", "Trials of a test block"),
    Setting("blocks.rounds", "Rounds", "How often a training block and a test block follow each other."),
    Setting("blocks.feedback", "Show the AI's prediction in training", "After the response."),
    Setting("blocks.reservoir", "Training images stay available in test", "With what was shown in training."),
)
SITTINGS = (
    Setting("sittings.count", "Sittings", "2 to 10. Every type of trial needs as many trials."),
    Setting("sittings.gap_hours", "The next one opens after (hours)", "After the end of the one before."),
    Setting("sittings.within_hours", "… and closes after (hours)", "Then the participation ends with what it has."),
    Setting(
        "sittings.codes",
        "Completion codes of all but the last, one per line",
        "Where the service pays for each sitting. The last one has the completion code of the study.",
        lines=2,
    ),
)
HEATMAPS = (
    Setting("saliency.opacity", "Opacity of the heatmap"),
    Setting(
        "saliency.drawing",
        "Colours show",
        names={"evidence": "evidence, faded where it is uncertain", "values": "raw values"},
    ),
    Setting("saliency.common_masks", "The same random masks for all trials", "Makes heatmaps of trials comparable."),
)
TEACHING = (
    Setting(
        "teaching.policy",
        "Examples are chosen by",
        names={name: format_name(name) for name in POLICIES},
        options=tuple(POLICIES),
    ),
    Setting("teaching.threshold", "Learner's probability must exceed", "Used by the policy First."),
)
LEARNER = (
    Setting(
        "teaching.damping",
        "Damping of the prior",
        "Strengthens the learner's prior, which brings the learner closer to the network. 0: none, or as much as the "
        "prior needs to have an inverse.",
    ),
    Setting("teaching.weight", "Weight of an example", "How often it enters the learner's likelihood."),
    Setting("teaching.tries", "Target images tried per trial"),
    Setting("teaching.draws", "Monte Carlo draws of the learner", "0 integrates."),
    Setting("teaching.copies", "Augmented copies of an example"),
)
DEVICE = (
    Setting("device.width", "Smallest window, width (px)"),
    Setting("device.height", "Smallest window, height (px)"),
    Setting("keys.left", "Key for the left name"),
    Setting("keys.right", "Key for the right name"),
    Setting("device.touch", "Allow phones and tablets"),
)
CONSENT = (
    Setting("consent.version", "Version of the consent"),
    Setting("consent.boxes", "Boxes to tick, one per line", "Empty: the two boxes shown in grey.", lines=3),
)
CHECK = (Setting("check.tries", "Attempts at the comprehension check"),)
PACING = (
    Setting("pacing.break_every", "A break every … trials", "0: no breaks. There is none near the end."),
    Setting("pacing.catch", "Attention checks"),
    Setting("pacing.catch_allowed", "Failed attention checks allowed"),
    Setting("pacing.confidence", "Ask for confidence after each response"),
    Setting("pacing.slow_seconds", "Remind after … seconds"),
    Setting("pacing.longest_minutes", "Time limit (minutes)"),
)
RECRUITER = (
    Setting(
        "recruiter.service",
        "Recruitment service",
        "Says how participants arrive and return: the page Studies has the link to enter there.",
        names={"": "none, or another one"} | {name: service.title for name, service in SERVICES.items()},
    ),
    Setting(
        "recruiter.url",
        "Link back, with {code} or {id}",
        "{code} is replaced with the completion code, {id} with the participant's ID at the service. Prolific's is "
        f"known. SONA's: {SERVICES['sona'].link_back}",
    ),
    Setting("recruiter.complete", "Completion code", "Empty: each participant gets a private code."),
    Setting("recruiter.screened", "Code if the check is failed"),
    Setting("recruiter.declined", "Code if consent is refused"),
    Setting("recruiter.retention_days", "Days for which recruiters' IDs are kept"),
    Setting(
        "recruiter.exclude",
        "Studies whose participants are turned away, one per line",
        "Participants are recognised by the ID in their link. Name a pilot here, or an earlier study.",
        lines=3,
    ),
    Setting("pay.currency", "Currency of the bonus"),
    Setting("pay.per_right", "Bonus per correct response (pence, cents)"),
    Setting("pay.most", "Largest bonus (pence, cents)"),
)
WITHIN = Setting(
    "allocation.within",
    "Each participant sees every condition",
    "The trials are divided among the conditions, which follow one another in the orders of a balanced Latin square. "
    "Results test the effect of explanations within participants, and carry-over.",
)
SIZE_WITHIN = Setting(
    "allocation.per_condition",
    "Participants, each in every condition",
    "Places are opened for whole squares, in which each order of the conditions occurs once.",
)
PLAN = (
    Setting("allocation.per_condition", "Participants per condition"),
    Setting(
        "allocation.order",
        "Order in which conditions are assigned",
        "blocks: each next group of participants, one for each condition, gets every condition once. "
        "shuffled: all places in one random order; groups are equal at the end only.",
    ),
    Setting("analysis.alpha", "Significance level (alpha)"),
    Setting(
        "analysis.equivalence",
        "Equivalence bounds (percentage points)",
        "5 or -5, 10: each contrast is also tested for lying between these bounds. Empty: no equivalence tests.",
        placeholder="not set",
    ),
    Setting(
        "analysis.prior_sd",
        "Prior SD of effects (log-odds)",
        "The size of effect that is plausible. Adds to each contrast a Bayes factor for no difference, and is the "
        "prior of effects in Bayesian fits.",
    ),
)
MEANS = (
    Setting(
        "analysis.means.of",
        "Means of",
        "One line for each: saliency * examples | trial_type are those of each condition, compared within each type of "
        "trial.",
        placeholder="saliency * examples | trial_type",
    ),
    Setting(
        "analysis.means.contrasts",
        "Contrasts between them",
        "One line for each: pairwise; reference, each against the first; b - a; or weights, b=1, a=-1/2, c=-1/2.",
    ),
    Setting(
        "analysis.means.adjust",
        "Correction of the contrasts",
        "Within each type of trial, or whatever is after the bar.",
        names={
            "holm": "Holm",
            "tukey": "Tukey (of all pairs)",
            "mvt": "Max-t (intervals that hold together)",
            "none": "None",
        },
    ),
    Setting(
        "analysis.means.scale",
        "Scale of the means",
        "Accuracy, or the mean level of ratings; or log-odds.",
        names={
            "population": "Averaged over the random effects",
            "response": "Where the random effects are 0",
            "link": "Log-odds",
        },
    ),
)
PRIORS = (
    Setting(
        "analysis.priors.intercept_sd",
        "SD of the intercept (log-odds)",
        "Of the log-odds of a correct response where all predictors are at their means. 1.5 is nearly flat as an "
        "accuracy.",
    ),
    Setting(
        "analysis.priors.random_sd",
        "Scale of random effects (log-odds)",
        "Of the half-normal prior of each standard deviation: how much participants, categories and images plausibly "
        "differ.",
    ),
    Setting(
        "analysis.priors.correlation",
        "LKJ parameter of correlations",
        "Of random effects. 1: all correlations are equally likely; more prefers small ones.",
    ),
)
EXCLUSIONS = (
    Setting("analysis.exclusions.fewest_responses", "Exclude participants with fewer responses than"),
    Setting("analysis.exclusions.least_accuracy", "… with accuracy below, where the AI is right"),
    Setting("analysis.exclusions.fastest_ms", "A response is too fast below (ms)"),
    Setting("analysis.exclusions.most_fast", "… with a larger share of responses that are too fast"),
    Setting("analysis.exclusions.slowest_ms", "Exclude responses slower than (ms)"),
)
