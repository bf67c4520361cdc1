"""Models of simulated participants: the probability that each predicts the AI on a trial, or accepts its label.

Five theories of participants' behaviour. The guesser has no information. The belief projector assumes that the AI sees
what they see themselves (as Yang, Folke & Shafto, 2021, doi:10.1038/s41598-021-89267-4, found). The reader of
heatmaps does the same until a heatmap shows that the AI relied on something else; the Bayesian learner, until examples
teach them otherwise; the inattentive participant presses a random key on some trials. They serve to test and to plan
studies: their responses are no evidence about humans. `study.analysis.exploratory.cognitive` estimates their parameters
from responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from core.errors import ForetellError
from core.registry import Registry
from study.bundle import Trial
from study.tasks.predict import TASK as PREDICT
from study.tasks.scale import RatingScale
from study.tasks.task import Task
from study.tasks.theory import SWITCH, ShownExplanations, Theory

PARTICIPANT_SD = 0.38
"""Standard deviation between participants, log-odds: the value that reproduces the paper's standard errors."""
HALFWAY = 5
"""Training images after which a simulated participant has learned half of what explanations can teach."""
NODES = 40
"""Nodes of the Gauss-Hermite quadrature over participants."""

THEORIES = Registry(
    "simulated participant",
    {
        "guesser": "study.plan.simulated_participants:Guesser",
        "belief_projector": "study.plan.simulated_participants:BeliefProjector",
        "map_reader": "study.plan.simulated_participants:MapReader",
        "bayesian_learner": "study.plan.simulated_participants:BayesianLearner",
        "inattentive": "study.plan.simulated_participants:Inattentive",
    },
)


@dataclass(frozen=True)
class Guesser:
    """Guess: each option is as likely as the others, whatever is shown, for every participant alike."""

    def p_ai(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:  # noqa: ARG002
        """Return 1/k of k options: one half of two."""
        return 1.0 / len(trial.options)

    def p_accept(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return one half."""
        return self.p_ai(trial, shown, deviation)


@dataclass(frozen=True)
class BeliefProjector:
    """Project one's own belief: respond with the true category, except for lapses. Ignore explanations.

    Attributes
    ----------
    lapse
        Probability of a response other than their own label, in (0, 1).
    """

    lapse: float = 0.1

    def __post_init__(self) -> None:
        _check_lapse(self.lapse)

    def p_ai(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:  # noqa: ARG002
        """Return the probability of predicting what the AI chose."""
        return _p_of_choice(trial, self.project(deviation))

    def p_accept(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return the probability of accepting the AI's label: that of choosing it of the trial's two classes."""
        return self.p_ai(trial, shown, deviation)

    def project(self, deviation: float) -> float:
        """Return the log-odds of responding with their own label if nothing were explained."""
        return float(logit(1.0 - self.lapse)) + deviation


@dataclass(frozen=True)
class MapReader(BeliefProjector):
    """Project one's own belief, but read the heatmap: evidence off the object means that the AI sees something else.

    The log-odds of responding with their own label are logit(1 - lapse) + slope * (relevance - threshold) if a heatmap
    is shown and its relevance is known.

    Attributes
    ----------
    slope
        Log-odds per unit of relevance.
    threshold
        Relevance (share in [0, 1] of the heatmap's evidence on the object) that is neutral.
    """

    slope: float = 10.0
    threshold: float = 0.5

    def p_ai(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return the probability of predicting what the AI chose."""
        return _p_of_choice(trial, self.project(deviation) + self._read(trial, shown))

    def p_accept(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return the probability of accepting the AI's label: evidence off the object speaks against it."""
        own = self.project(deviation)
        return float(expit((own if trial.truth == trial.target else -own) + self._read(trial, shown)))

    def _read(self, trial: Trial, shown: ShownExplanations) -> float:
        """Return what the heatmap says, log-odds: above 0 where the evidence is on the object; 0 without one."""
        return (
            self.slope * (trial.relevance - self.threshold) if shown.saliency and trial.relevance is not None else 0.0
        )


@dataclass(frozen=True)
class BayesianLearner(BeliefProjector):
    """Project one's own belief, but learn from examples as the teacher assumes.

    If examples are shown, the log-odds of predicting the AI are those of their own belief plus weight times the
    teaching gain: the examples' effect on the log-odds of the learner for whom the teacher chose them.

    Attributes
    ----------
    weight
        Share of the gain that they learn: 1 is the ideal learner, 0 ignores examples.
    """

    weight: float = 1.0

    def p_ai(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return the probability of predicting what the AI chose."""
        learned = self.weight * float(trial.teaching.gain or 0.0) * shown.examples
        towards_own = learned if trial.truth == trial.target else -learned
        return _p_of_choice(trial, self.project(deviation) + towards_own)


@dataclass(frozen=True)
class Inattentive(BeliefProjector):
    """Project one's own belief while attending, and press a random key otherwise.

    Attributes
    ----------
    absence
        Share of trials without attention, in (0, 1).
    """

    absence: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_lapse(self.absence)

    def p_ai(self, trial: Trial, shown: ShownExplanations, deviation: float = 0.0) -> float:
        """Return the probability of predicting what the AI chose."""
        at_random = 1.0 / len(trial.options)
        return (1.0 - self.absence) * super().p_ai(trial, shown, deviation) + at_random * self.absence


def _check_lapse(lapse: float) -> None:
    if not 0.0 < lapse < 1.0:
        raise ForetellError(f"A share of {lapse} is not a probability: choose one between 0 and 1.")


def _p_of_choice(trial: Trial, own: float) -> float:
    """Return the probability of predicting the AI, from the log-odds of one's own label (the truth) against another.

    Of k options, by Luce's choice rule (1959, Individual Choice Behavior): one's own label has the weight exp(own) and
    each of the k - 1 others the weight 1, so that an explanation against it does not say which of the others it is.
    """
    others = len(trial.options) - 1
    if trial.truth == trial.target:
        return float(expit(own - np.log(others)))
    return float(expit(-own if others == 1 else -np.logaddexp(own, np.log(others - 1))))


@dataclass(frozen=True)
class ResponseTime:
    """Ex-Gaussian response times: a normal plus an exponential delay.

    Luce (1986), Response Times; Matzke & Wagenmakers (2009), doi:10.3758/PBR.16.5.798.

    Attributes
    ----------
    mu, sigma
        Mean and standard deviation of the normal part, ms.
    tau
        Mean of the exponential part, ms. The mean of the whole is mu + tau.
    fastest
        Shortest possible time, ms: perceiving and pressing takes longer, so shorter draws are raised to it.
    """

    mu: float = 1500.0
    sigma: float = 250.0
    tau: float = 900.0
    fastest: float = 150.0

    def draw(self, rng: np.random.Generator) -> float:
        """Draw a response time, ms."""
        return max(self.fastest, float(rng.normal(self.mu, self.sigma) + rng.exponential(self.tau)))


@dataclass(frozen=True)
class SimulatedParticipant:
    """A simulated participant.

    Attributes
    ----------
    name
        Registered name of the theory.
    deviation
        The participant's own deviation from the theory's tendency, log-odds.
    switch
        In tasks of two steps, the probability that they follow an AI that contradicts their first response, where no
        explanation is shown.
    """

    name: str
    theory: Theory
    deviation: float = 0.0
    switch: float = SWITCH
    response_time: ResponseTime = field(default_factory=ResponseTime)

    def p_right(self, task: Task, trial: Trial, shown: ShownExplanations) -> float:
        """Return the probability that this participant's response to a task is right."""
        return task.p_right(self.theory, trial, shown, self.deviation)

    def p_test(self, task: Task, trial: Trial, shown: ShownExplanations, seen: int) -> float:
        """Return the probability of a right response in test, after so many training images with these explanations.

        It moves from that without explanations to that with the explanations of this image by the share
        seen / (seen + `HALFWAY`): those who ignore explanations learn nothing from them.
        """
        alone, explained = (self.p_right(task, trial, one) for one in (ShownExplanations(), shown))
        return alone + seen / (seen + HALFWAY) * (explained - alone)

    def p_step(self, task: Task, trial: Trial, shown: ShownExplanations, first_right: bool | None) -> float:
        """Return the probability that a response is right: the first of two while ``first_right`` is None."""
        if task.first_step is None:
            return self.p_right(task, trial, shown)
        if first_right is None:
            return task.first_step.p_right(self.theory, trial, self.deviation)
        return task.first_step.p_final(self.theory, trial, shown, self.deviation, self.switch, first_right)


def sample_mixture(
    mixture: Mapping[str, float],
    n: int,
    rng: np.random.Generator,
    *,
    sd: float = PARTICIPANT_SD,
    switch: float = SWITCH,
) -> list[SimulatedParticipant]:
    """Draw n simulated participants.

    Parameters
    ----------
    mixture
        Weight of each theory by registered name; weights need not add up to 1.
    sd
        Standard deviation between participants, log-odds.
    switch
        In tasks of two steps, how often each follows an AI that contradicts them, in [0, 1].

    Raises
    ------
    ForetellError
        An unknown name, a weight that is negative or not finite, weights that sum to zero, or a ``switch`` that is no
        probability.
    """
    if not 0.0 <= switch <= 1.0:
        raise ForetellError(f"switch is {switch}, which is not a probability: choose one from 0 to 1.")
    theories, weights = _resolve(mixture)
    names = rng.choice(list(theories), size=n, p=weights)
    deviations = rng.normal(0.0, sd, size=n)
    return [
        SimulatedParticipant(str(name), theories[str(name)], float(own), switch)
        for name, own in zip(names, deviations, strict=True)
    ]


def compute_expected_accuracy(
    mixture: Mapping[str, float],
    trial: Trial,
    shown: ShownExplanations,
    *,
    sd: float = PARTICIPANT_SD,
    task: Task = PREDICT,
    levels: RatingScale | None = None,
) -> float:
    """Compute the probability of a right response by a participant drawn from the mixture, by quadrature.

    With ``levels`` it is the mean level, of a task in which no response is right or wrong.

    Raises
    ------
    ForetellError
        As `sample_mixture`.
    """
    theories, weights = _resolve(mixture)
    nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
    shares = shares / shares.sum()
    each = np.array([[task.p_right(theory, trial, shown, sd * node) for node in nodes] for theory in theories.values()])
    return float(weights @ (each if levels is None else levels.compute_mean(each)) @ shares)


def _resolve(mixture: Mapping[str, float]) -> tuple[dict[str, Theory], NDArray[np.float64]]:
    """Return the theories by name, and their weights scaled to a sum of 1."""
    theories: dict[str, Theory] = {name: THEORIES[name]() for name in mixture}
    for name, weight in mixture.items():
        if not np.isfinite(weight) or weight < 0:
            raise ForetellError(f"The weight {weight} of {name!r} must be zero or a positive number.")
    weights = np.array(list(mixture.values()), dtype=np.float64)
    if weights.sum() <= 0:
        raise ForetellError(f"The mixture is empty: give a positive weight to one of {', '.join(THEORIES)}.")
    return theories, weights / weights.sum()
