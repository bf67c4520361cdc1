"""The published formula of the bonus."""

from __future__ import annotations

from study.plan.procedure import Pay


def bonus(pay: Pay, right: int) -> int:
    """Compute the bonus, in minor units, of so many correct responses in the main trials."""
    return min(pay.most, pay.per_right * right)


def formula(pay: Pay) -> str:
    """Return the formula as it is kept with each amount."""
    return f"min({pay.most}, {pay.per_right} * right)"
