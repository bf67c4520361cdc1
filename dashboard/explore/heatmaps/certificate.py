"""The certificate of a heatmap: warnings and measures of its reliability."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from core.types import Certificate
from dashboard.shared.messages import escape_markdown


def show(certificate: Certificate, category: str) -> None:
    """Show warnings first, then the numbers, and everything else in an expander."""
    for warning in certificate.warnings:
        st.warning(escape_markdown(warning))
    st.table(pd.DataFrame(facts(certificate, category)), border="horizontal", hide_header=True, hide_index=True)
    with st.expander("Fingerprint, random seed, parameters, versions"):
        st.caption("SHA-256 of the classifier's weights and structure")
        st.code(certificate.fingerprint, language=None, wrap_lines=True)
        if certificate.seed is not None:
            st.caption(f"Random seed: {certificate.seed}")
        details: dict[str, Any] = {**certificate.origin, **certificate.parameters, **certificate.versions}
        if details:
            st.json(details)


def facts(certificate: Certificate, category: str) -> list[tuple[str, str]]:
    """List the facts that apply to the method, and why others do not."""
    known = [
        ("Explained class", f"{category} ({certificate.probability:.1%})"),
        ("Completeness residual", _percent(certificate.completeness)),
        ("Share of the logit in the heatmap", _share(certificate.conservation)),
        ("Effective sample size", _samples(certificate)),
        ("Largest standard error", _number(certificate.standard_error)),
    ]
    return [(name, value) for name, value in known if value is not None] + _list_reasons(certificate)


def _list_reasons(certificate: Certificate) -> list[tuple[str, str]]:
    """List which facts a heatmap cannot have, each with the reason."""
    reasons = []
    if certificate.completeness is None and certificate.conservation is None:
        reasons.append(("Completeness", "does not apply: this method's values need not add up to the prediction"))
    if certificate.standard_error is None:
        is_exact = certificate.seed is None and not certificate.origin
        why = "none: this method draws nothing at random" if is_exact else "not estimated by this method"
        reasons.append(("Standard error", why))
    return reasons


def as_json(certificate: Certificate, category: str) -> str:
    """Format the whole certificate as JSON."""
    return json.dumps(certificate.as_dict() | {"category": category}, indent=1, ensure_ascii=False) + "\n"


def _samples(certificate: Certificate) -> str | None:
    if certificate.effective_samples is None:
        return None
    return f"{certificate.effective_samples:,.0f} of {certificate.samples:,} masks"


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:+.3%} of the change to be explained"


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.1%}"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"
