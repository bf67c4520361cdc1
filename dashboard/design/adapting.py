"""Which trial comes next: drawn before the first response, or chosen by the responses so far."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.names import upper_first
from dashboard.design.editor import Editor, change, read_now
from dashboard.design.fields import Setting, follow, show_all, show_faults
from study.plan.adaptive import MEASURES
from study.plan.covariates import COVARIATES
from study.plan.draft import MISSING

DRAWN = "drawn"
POLICIES = {
    DRAWN: "drawn at random, before the first trial",
    "staircase": "by a staircase: harder after correct responses, easier after wrong ones",
    "information": "by information: the trial that tells most about the participant's ability",
}
SHARED = ("trials", "by", "harder")
"""Settings that stay when the policy changes."""
LEAST = 8
OF_BOTH = (
    Setting("adaptive.trials", "Trials of a participant", "At most half of the study's trials, so that some are left."),
    Setting(
        "adaptive.by",
        "Difficulty by",
        "A measure of each trial that is frozen with the study. Trials are ranked by it within each type.",
        names={name: upper_first(COVARIATES.get(name, "the measure of the strata")) for name in MEASURES},
        options=MEASURES,
    ),
    Setting("adaptive.harder", "Harder where it is", names={"low": "low", "high": "high"}),
)
OF_POLICY = {
    "staircase": (
        Setting("adaptive.levels", "Levels of difficulty", "Of equal size.", placeholder="5"),
        Setting("adaptive.right", "Correct responses in a row before a harder trial", placeholder="2"),
        Setting("adaptive.start", "First level", "1 is the easiest. Empty: the middle.", placeholder="not set"),
    ),
    "information": (
        Setting("adaptive.prior_sd", "SD of abilities (log-odds)", "Of the normal prior.", placeholder="1.5"),
        Setting("adaptive.spread", "SD of trials' difficulty (log-odds)", placeholder="1"),
        Setting("adaptive.among", "Drawn from the best …", "So that participants do not all see the same trials."),
    ),
}


def choose_policy(editor: Editor) -> None:
    """Draw the choice of a policy and its settings; another policy has none of the former's."""
    key = f"design.{editor.name}.adaptive"
    section = editor.draft.get("adaptive")
    policy = section.get("policy", DRAWN) if isinstance(section, dict) else DRAWN
    follow(key, policy if policy in POLICIES else DRAWN)
    most = editor.config.most if editor.config else 0
    help_text = "Chosen trials tell more about each participant, and plain accuracy then does not compare conditions."
    options: dict[str, Any] = {"key": key, "on_change": _switch, "args": (editor, key, most), "help": help_text}
    st.selectbox("Order of trials", POLICIES, format_func=POLICIES.__getitem__, **options)
    if section is not MISSING:
        show_all(editor, (*OF_BOTH, *OF_POLICY.get(policy, ())), 3)
    show_faults(editor, "adaptive")


def _switch(editor: Editor, key: str, most: int) -> None:
    """Write the section of the chosen policy, or remove it."""
    now, chosen = read_now(editor.path, "adaptive"), st.session_state[key]
    kept = {name: now[name] for name in SHARED if name in now} if isinstance(now, dict) else {}
    if chosen == DRAWN:
        change(editor.path, {"adaptive": MISSING})
    elif not isinstance(now, dict) or now.get("policy") != chosen:
        change(editor.path, {"adaptive": {"policy": chosen, "trials": max(LEAST, most // 2), **kept}})
