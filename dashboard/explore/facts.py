"""Facts about a heatmap as short phrases: its certificate and its measures."""

from __future__ import annotations

import numpy as np

from core.faithfulness.curves import Curve
from core.types import Certificate
from dashboard.explore.heatmap_jobs import Faithfulness


def format_facts(certificate: Certificate) -> list[str]:
    """Format the certificate of a heatmap, short enough for a small heatmap."""
    known = [
        (certificate.completeness, "completeness {:+.2%}"),
        (certificate.conservation, "{:.0%} of the logit"),
        (certificate.standard_error, "error up to {:.2g}"),
        (certificate.effective_samples, "{:,.0f} effective samples"),
    ]
    return [text.format(value) for value, text in known if value is not None]


def format_area(curve: Curve) -> str:
    """Format the area under a curve with how it was computed."""
    how = f"{curve.output}, {curve.substrate} instead, {len(curve.fractions) - 1} steps"
    return f"{curve.measure} {float(curve.area[0]):.3f} ({how})"


def format_infidelity(faithfulness: Faithfulness) -> str:
    """Format the infidelity of a heatmap relative to that of an empty one."""
    how = faithfulness.infidelity
    left = float(how.value[0] / how.empty[0]) if float(how.empty[0]) else float("nan")
    return f"infidelity {left:.2f} of an empty heatmap's ({how.samples} squares, {how.substrate} instead, best scale)"


def format_localisation(faithfulness: Faithfulness) -> list[str]:
    """Format the share of the evidence on the object, if its location is known."""
    if faithfulness.mass is None or faithfulness.rank is None:
        return []
    mass = (
        "no evidence in the heatmap"
        if np.isnan(faithfulness.mass)
        else f"relevance mass on the object {faithfulness.mass:.0%}"
    )
    hit = f"peak {'on' if faithfulness.hit else 'off'} it (within {faithfulness.tolerance} px)"
    return [mass, f"relevance rank {faithfulness.rank:.0%}", hit]
