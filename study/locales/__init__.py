"""The words a participant reads, by language. Every language has the same keys and the same places to fill in."""

from __future__ import annotations

from study.locales import de, en

CATALOGUES: dict[str, dict[str, str]] = {"en": en.TEXTS, "de": de.TEXTS}
