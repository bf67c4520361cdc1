"""Figures and sentences of the Teaching page, on made-up teaching sets."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from core.types import TeachingSet
from dashboard.teaching import figures
from dashboard.teaching.lesson import describe_others, format_rank
from study.facts import TeachingFacts

CURVE = ((1, 0.669), (2, 0.679), (4, 0.7), (8, 0.7), (16, 0.76), (200, 0.76))
CHOSEN = TeachingSet((0, 1, 2, 3), 0.76, 0.67, 0.43, "best", 200, 1.0, CURVE, others=199)


def test_no_error_bar_covers_another() -> None:
    """Catches policies at the same place, of whose error bars only the last could be seen; codes for names."""
    rows = [(policy, k, 0.6, 0.5, 1.0) for policy in ("best", "random", "x_best") for k in range(5)]
    table = pd.DataFrame(rows, columns=["policy", "examples", "probability", "log_odds", "sd"])
    probability, odds = figures.beliefs(table)
    places = [x for trace in odds.data for x in trace.x]
    assert len(set(places)) == len(places) == 15
    assert all(abs(x - round(x)) < 0.2 for x in places)
    assert [trace.name for trace in odds.data][:2] == ["Best", "Random"]
    assert list(probability.data[0].x) == list(range(5))


@pytest.mark.parametrize(("last", "ticks"), [(200, [1, 10, 100, 200]), (120, [1, 10, 120]), (9, [1, 9]), (10, [1, 10])])
def test_the_axis_of_the_search_ends_at_the_sets_scored(last: int, ticks: list[int]) -> None:
    """Catches labels "2 3 4 ... 9" between powers of ten, and two labels that touch."""
    curve = (*CURVE[:4], (last, 0.76))
    figure, table = figures.search(replace(CHOSEN, curve=curve, scored=last))
    assert list(figure.layout.xaxis.tickvals) == ticks
    assert figure.layout.yaxis.range[0] > 0.5  # small changes are seen
    assert len(table) == len(figure.data[0].x) == len(curve)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({}, "None of the 199 other random sets gives a higher P."),
        ({"equal": 1}, "None of the 199 other random sets gives a higher P; 1 gives the same P."),
        ({"higher": 12, "equal": 3}, "12 of the 199 other random sets give a higher P; 3 give the same P."),
        ({"others": 200, "higher": 1}, "1 of the 200 random sets gives a higher P."),
    ],
)
def test_a_set_is_compared_with_the_other_sets(counts: dict[str, int], sentence: str) -> None:
    """Catches "better than 100.0% of the random sets" of a set that is one of them, and ties that are not named."""
    assert describe_others(replace(CHOSEN, **counts)) == sentence


@pytest.mark.parametrize(
    ("policy", "rank", "label", "value"),
    [
        ("best", 1.0, "Rank of the set", "1 of 200"),
        ("random", 0.25, "Rank of the set", "151 of 200"),
        ("greedy", 0.975, "Random sets above", "2.5%"),
        (None, 0.975, "Random sets above", "2.5%"),
    ],
)
def test_a_set_that_was_not_drawn_has_no_rank_among_the_drawn(
    policy: str | None, rank: float, label: str, value: str
) -> None:
    assert format_rank(TeachingFacts(policy=policy, sets_scored=200, rank=rank))[:2] == (label, value)
