"""How many draws of a posterior a Bayesian fit takes: a fit that is not to be believed often needs more."""

from __future__ import annotations

import streamlit as st

from study.analysis.bayes.sampler import CHAINS, FEWEST_DRAWS, SamplerSettings

MOST_DRAWS = 10_000
"""Of each chain on this page; the command `analyze --bayes --draws` takes any number."""


def choose_draws(key: str) -> int:
    """Draw the field of the draws of each chain; return their number."""
    return int(
        st.number_input(
            f"Draws of each of the {CHAINS} chains",
            min_value=FEWEST_DRAWS,
            max_value=MOST_DRAWS,
            value=SamplerSettings.draws,
            step=500,
            key=key,
            width=420,
            help="Take more where the chains disagree or there are too few effective draws.",
        )
    )
