"""What training adds to the pictures: masks and fills like those of the maps."""

from __future__ import annotations

import torch

from data.scenes.classifier import MEAN, STD, normalise
from data.scenes.train import augment, fills, measure, smooth_masks, train


def test_masks_open_from_a_twentieth_to_nine_tenths() -> None:
    """The soft edge moves the share a little: bounds with a margin of 0.03; catches masks that are empty or full."""
    masks = torch.cat([smooth_masks(50, torch.Generator().manual_seed(k)) for k in range(4)])
    shares = masks.mean((1, 2, 3))
    assert masks.shape == (200, 1, 96, 96)
    assert 0.02 < shares.min() < 0.12
    assert 0.83 < shares.max() < 0.93
    between = ((masks > 0.1) & (masks < 0.9)).float().mean()
    assert between < 0.2  # nearly black and white, as the masks of the maps are


def test_fills_are_mean_black_and_noise() -> None:
    drawn = fills(200, torch.Generator().manual_seed(0))
    black = -torch.tensor(MEAN) / torch.tensor(STD)
    is_black = (drawn == black.view(1, 3, 1, 1)).flatten(1).all(1)
    is_mean = (drawn == 0).flatten(1).all(1)
    assert 0.4 < is_mean.float().mean() < 0.6
    assert 0.15 < is_black.float().mean() < 0.35
    assert (~is_mean & ~is_black).float().mean() > 0.15


def test_half_of_a_batch_is_masked() -> None:
    """A constant picture stays itself under moving and mirroring, so a changed one was masked."""
    x = torch.full((64, 3, 96, 96), 0.5)
    seen = augment(x, torch.Generator().manual_seed(0))
    changed = (seen != 0.5).flatten(1).any(1)
    assert changed.tolist() == [True] * 32 + [False] * 32
    black = -min(MEAN[1] / STD[1], MEAN[0] / STD[0], MEAN[2] / STD[2])
    darkest = seen[:32].amax(1).flatten(1).amin(1)
    assert 3 <= (darkest - black).abs().lt(0.05).sum() <= 13  # about a quarter is filled with black


def two_colours(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (count, 3, 96, 96) of one of two greys each, and which."""
    torch.set_num_threads(1)
    labels = torch.arange(count) % 2
    return (labels.view(-1, 1, 1, 1) * 200 + 20).expand(-1, 3, 96, 96).to(torch.uint8), labels


def test_training_repeats_itself() -> None:
    """The same generator gives the same network, to the bit."""
    pixels, labels = two_colours(64)
    first, second = (train(pixels, labels, generator=torch.Generator().manual_seed(1), epochs=1) for _ in range(2))
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


def test_training_learns() -> None:
    """Two colours, two categories: learnt in a few steps."""
    pixels, labels = two_colours(128)
    trained = train(pixels, labels, generator=torch.Generator().manual_seed(1), epochs=4)
    answer = trained.train()(normalise(pixels)).argmax(1)  # eight steps are too few for the running means of eval mode
    assert (answer == labels).float().mean() > 0.9


def test_measure_counts_by_hand() -> None:
    """Four pictures, answers set by their brightness through a hand-made network."""

    class Threshold(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            bright = (x.mean((1, 2, 3)) > 0).float() * 8 - 4  # logits -4 or 4: confidence 0.9997
            return torch.stack([-bright, bright, *[torch.full_like(bright, -9)] * 14], dim=1)

    pixels = torch.zeros(4, 3, 96, 96, dtype=torch.uint8)
    pixels[2:] = 255
    figures = measure(Threshold(), pixels, torch.tensor([0, 1, 1, 1]))
    assert figures["accuracy"] == 0.75
    assert figures["confidently_wrong"] == 0.25
    assert figures["per_category"]["balloon"] == 1.0
    assert figures["per_category"]["bird"] == 0.6667
