"""The record of a training: what a network has learned after each epoch, and how.

Arpit et al. 2017 (arXiv:1706.05394): a network that memorises has more images near a decision boundary (section 3.3)
and a loss that is sensitive to more of its training images (section 3.2) than one that learns what images share.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from core.errors import ForetellError
from core.faithfulness.randomisation import copy_with_network, reinitialise_classifier
from core.network.classifier import Classifier
from core.network.device import draw_seed, exact_arithmetic
from core.robustness.attacks import compute_loss_gradient
from core.robustness.boundary import critical_samples
from core.robustness.frequencies import components
from core.training.modifications import Examples
from core.types import Progress, silent


@dataclass(frozen=True)
class TrainingSettings:
    """How a network is trained and measured.

    Attributes
    ----------
    epochs, batch, rate
        Passes over the training images, images of a step, and the learning rate of Adam, which stays the same.
    radius
        How far each pixel may change for a critical sample, as a share of the range from black to white.
    steps
        Steps of the search for critical samples (Langevin adversarial sample search) at most.
    cut
        The highest of the low spatial frequencies, in cycles per image.
    """

    epochs: int = 100
    batch: int = 16
    rate: float = 2e-3
    radius: float = 1 / 255
    steps: int = 10
    cut: float = 8.0


@dataclass(frozen=True)
class TrainingMoment:
    """A network in training.

    Attributes
    ----------
    epoch
        Passes over the training images so far.
    training, training_true
        Number of training images whose prediction is the label trained on, and whose prediction is the true one.
    held_out, coarse, fine
        Number of held-out images predicted correctly, and of their low and of their high spatial frequencies alone.
    critical
        Number of held-out images with another prediction within the radius: a lower bound.
    sensitivity
        Mean over the training images of the loss sensitivity, in units of the network's input.
    gini
        Its Gini coefficient over the training images.
    """

    epoch: int
    training: int
    training_true: int
    held_out: int
    coarse: int
    fine: int
    critical: int
    sensitivity: float
    gini: float


def record_training(
    classifier: Classifier,
    training: Examples,
    held_out: Examples,
    settings: TrainingSettings,
    *,
    generator: torch.Generator,
    progress: Progress = silent,
) -> list[TrainingMoment]:
    """Train a copy of the network from random weights, and measure it before and after chosen epochs.

    Every layer with parameters is drawn again and trained, a fixed filter too; the classifier is not changed. The loss
    sensitivity of an image is the mean over the moments so far of the L1 norm of the loss's gradient by the image
    (Arpit et al. 2017, section 3.2, who average over all updates).

    Raises
    ------
    ForetellError
        Settings that no training can have, fewer than two images, a network that cannot be trained, or a loss that is
        no longer a number.
    """
    _refuse_settings(settings, training, held_out)
    learner = _Learner(classifier, training, settings, generator)
    moments: list[TrainingMoment] = []
    chosen = list_epochs(settings.epochs)
    total = torch.zeros(len(training.labels), dtype=torch.float64)
    for epoch in range(settings.epochs + 1):
        if epoch:
            learner.train_epoch()
        if epoch in chosen:
            network = learner.freeze()
            total += measure_loss_sensitivity(network, training)
            moments.append(_measure(network, training, held_out, settings, epoch, total / (len(moments) + 1)))
        progress(epoch, settings.epochs, "epochs")
    return moments


def list_epochs(epochs: int) -> list[int]:
    """List the epochs after which a network is measured: before the first, then after 1, 2, 4, 8, ... and the last."""
    epochs_to_record, step = {0, epochs}, 1.0
    while step < epochs:
        epochs_to_record.add(round(step))
        step *= 2
    return sorted(epochs_to_record)


def measure_loss_sensitivity(classifier: Classifier, examples: Examples) -> Tensor:
    """Measure g_x = ‖∂L/∂x‖₁ (N,) of each image's cross-entropy (Arpit et al. 2017, section 3.2), float64."""
    gradient = compute_loss_gradient(classifier, examples.inputs, examples.labels, silent)
    return gradient.double().abs().flatten(1).sum(1)


def compute_gini(values: Tensor) -> float:
    """Compute the Gini coefficient of values (N,) that are not negative.

    G = Σ (2i − N − 1) x_i / (N Σ x_i) over the values in ascending order (Gini 1913): 0 where all are equal, also where
    all are 0, and (N − 1)/N where all but one are 0.
    """
    ordered = values.double().sort().values
    total, n = float(ordered.sum()), len(ordered)
    ranks = 2 * torch.arange(1, n + 1, dtype=torch.float64) - n - 1
    return float((ranks * ordered).sum()) / (n * total) if total > 0 else 0.0


def _measure(
    network: Classifier,
    training: Examples,
    held_out: Examples,
    settings: TrainingSettings,
    epoch: int,
    sensitivity: Tensor,
) -> TrainingMoment:
    said = network.logits(training.inputs).argmax(1)
    parts = (held_out.inputs, *components(held_out.inputs, settings.cut))
    whole, coarse, fine = (int((network.logits(part).argmax(1) == held_out.labels).sum()) for part in parts)
    near = critical_samples(network, held_out.inputs, radius=settings.radius, steps=settings.steps)
    return TrainingMoment(
        epoch,
        training=int((said == training.labels).sum()),
        training_true=int((said == training.true).sum()),
        held_out=whole,
        coarse=coarse,
        fine=fine,
        critical=int(near.critical.sum()),
        sensitivity=float(sensitivity.mean()),
        gini=compute_gini(sensitivity),
    )


class _Learner:
    """A network in training, from random weights; what training draws (dropout) is drawn from the generator's seed."""

    def __init__(
        self, classifier: Classifier, training: Examples, settings: TrainingSettings, generator: torch.Generator
    ) -> None:
        self._classifier, self._training, self._settings, self._draws = classifier, training, settings, generator
        with reinitialise_classifier(classifier, generator).exclusive() as module:
            self._module = module.requires_grad_(True)
        if classifier.layout == torch.channels_last:  # about twice as fast on processors
            self._module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._optimiser = torch.optim.Adam(self._module.parameters(), settings.rate)

    def train_epoch(self) -> None:
        """Take one step for each batch; a last batch of one image is left out, which batch norm cannot take."""
        self._module.train()
        order = torch.randperm(len(self._training.labels), generator=self._draws)
        with torch.random.fork_rng(devices=[]), exact_arithmetic(self._classifier.device), torch.enable_grad():
            torch.manual_seed(draw_seed(self._draws))
            for rows in order.split(self._settings.batch):  # type: ignore[no-untyped-call]
                if len(rows) > 1:
                    self._step(self._training.inputs[rows], self._training.labels[rows])
        self._module.eval()

    def _step(self, inputs: Tensor, labels: Tensor) -> None:
        device, layout = self._classifier.device, self._classifier.layout
        try:
            x = inputs.to(device, copy=True, memory_format=layout)
            loss = cross_entropy(self._module(x), labels.to(device))
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            said = str(error).partition("\n")[0]
            raise ForetellError(
                f"{self._classifier.name} cannot be trained ({said}): give a network of plain PyTorch modules."
            ) from error
        if not torch.isfinite(loss):
            raise ForetellError(
                f"The loss of {self._classifier.name} is no longer a number at a learning rate of "
                f"{self._settings.rate:g}: choose a smaller rate."
            )
        self._optimiser.step()

    def freeze(self) -> Classifier:
        """Return a classifier with the weights as they are now."""
        module: nn.Module = copy.deepcopy(self._module).eval().requires_grad_(False)
        return copy_with_network(self._classifier, module, "in training")


def _refuse_settings(settings: TrainingSettings, training: Examples, held_out: Examples) -> None:
    if settings.epochs < 1 or settings.batch < 2 or settings.rate <= 0 or settings.steps < 1:
        raise ForetellError(
            f"epochs={settings.epochs}, batch={settings.batch}, rate={settings.rate:g}, steps={settings.steps}: a "
            "training has at least 1 epoch, batches of 2 images or more, a rate above 0, and a search at least 1 step."
        )
    if min(len(training.labels), len(held_out.labels)) < 2:
        raise ForetellError(
            f"{len(training.labels)} training and {len(held_out.labels)} held-out images: give at least 2 of each."
        )
