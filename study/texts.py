"""The words a participant reads. A study may replace any of them by its key; paragraphs are blank lines apart."""

from __future__ import annotations

from study.bundle import Manifest
from study.conditions.condition import Condition

LANGUAGE = "en"

DEFAULTS: dict[str, str] = {
    "title": "Foretell the AI",
    "consent": (
        "You are invited to a study about how people predict the answers of an artificial intelligence (AI) that "
        "names what is in a picture.\n\n"
        "You will see pictures one after another. For each one you choose which of two names the AI gave it.\n\n"
        "Taking part is voluntary. You may stop at any time by closing this page. We record your answers and how long "
        "they take, and nothing that identifies you. The pseudonymous answers may be shared with other researchers."
    ),
    "agree": "I am at least 18 years old, I have read this, and I agree to take part.",
    "instructions": (
        "An AI has looked at a number of pictures and given each of them a name. Sometimes its answer is right, "
        "sometimes it is wrong.\n\n"
        "Your task is to foretell the AI: for each picture, choose the name that the AI gave it, "
        "whether or not you would call it so yourself."
    ),
    "instructions_map": (
        "Beside the picture you see it once more, in grey with a map over it. Orange parts spoke for the AI's answer, "
        "blue parts against it; grey parts made no difference."
    ),
    "instructions_examples": "Above each name you see other pictures that the AI calls by that name.",
    "instructions_both": "Each of these pictures carries a map of its own.",
    "practice": "First a few practice pictures. After each you are told what the AI said.",
    "main": "Now the study itself begins. From here on you are not told what the AI said.",
    "question": "What does the AI call this picture?",
    "map_legend": "orange: for its answer, blue: against",
    "examples_legend": "The AI calls these “{name}”",
    "feedback": "The AI called this picture “{name}”.",
    "debrief": (
        "Thank you for taking part.\n\n"
        "We study whether explanations help people to foretell what an AI will say. People in this study saw the "
        "pictures alone, with maps of what the AI relied on, with examples of what it calls by a name, or with both."
    ),
    "declined": "You chose not to take part. Nothing but this choice was kept. You may close this page.",
    "full": "Thank you for your interest. All places in this study are taken, so you cannot take part now.",
}


def texts_of(manifest: Manifest) -> dict[str, str]:
    """The study's words over the defaults."""
    return {**DEFAULTS, **manifest.texts}


def instructions(texts: dict[str, str], condition: Condition) -> str:
    """What a person needs to be told under a condition."""
    parts = [texts["instructions"]]
    if condition.shows_saliency:
        parts.append(texts["instructions_map"])
    if condition.shows_examples:
        parts.append(texts["instructions_examples"])
    if condition.shows_saliency and condition.shows_examples:
        parts.append(texts["instructions_both"])
    return "\n\n".join(parts)
