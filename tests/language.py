"""The words that Foretell's texts avoid, and a search for them: one word for one thing (``docs/terms.md``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

BANNED = {
    r"roads?": "way, path, procedure",
    r"anew": "again",
    r"mend(s|ed|ing)?": "correct",
    r"stands?|stood": "is, appears",
    r"beside": "next to, besides",
    r"doubts?|doubt(ed|ing|ful)": "uncertainty, likely mislabelled",
    r"(?<!-)pictures?": "image (texts for participants say picture)",
    r"answers?|answer(ed|ing)": "prediction (of the network), response (of a participant)",
    r"foretells?|foretelling|foretold": "predict the AI",
    r"somebody|anybody|everybody|nobody else": "participant, researcher; anyone, everyone",
    r"persons?": "participant",
    r"she|hers?|herself": "they, their",
    r"verbs?": "command",
    r"misleading|ordinary": "adversarial, standard",
    r"catch trials?": "attention check",
    r"looks? on the way|declared looks?": "interim analysis",
    r"take[ns]? away": "download, export; remove",
    r"by other roads": "robustness checks",
    r"did the search arrive": "convergence",
    r"doubtful labels?": "label error, likely mislabelled",
    r"how sure": "confidence",
    r"what (it|they|he) holds?": "represents, contains",
    r"what (came|comes|become|is) of": "result, consequence",
    r"hardly minds?|do(es)? not mind": "barely depends on",
    r"told in words|said in words": "reported in plain language",
    r"the truth of": "reliability, true class",
    r"give[sn]? a place|given a place": "allocate",
    r"(?<!saliency )(?<!activation )(?<!feature )maps?(?! (of|to)\b)": "heatmap, saliency map",
}
"""Patterns of whole words, and what to write instead. Case does not matter."""

PARTICIPANTS = {
    words: instead for words, instead in BANNED.items() if not words.startswith(("(?<!-)picture", "answers?"))
}
PARTICIPANTS |= {
    r"AI('s)? (answer(s|ed)?|says?|said)|answers? of (the|an) AI": "the AI gives a name",
    r"images?|participations?": "picture, taking part",
    r"recruiters?": "recruitment service",
    r"erased?|erasing": "deleted",
}
"""The same for the texts of the experiment, where pictures are shown and participants answer."""

GERMAN = {
    r"(Teilnehmer|Forscher|Nutzer|Vermittler)(s|n|innen)?|Proband(en)?": "Teilnehmende, Forschende, Vermittlungsdienst",
    r"Antwort(en)? (der|einer) KI|KI (sagte?|sagt|antwortete?|gesagt)|ihrer Antwort": "der Name, den die KI gibt",
    r"Karten?": "Heatmap",
    r"Rückzug|zurückgezogen": "Rücktritt",
    r"Punkte": "Pixel",
}
"""The same for the experiment in German."""

HEADLESS_WHO = re.compile(
    r"(?:^|[.;:|(] )Who (?!can\b|may\b)(?=[^?.]*(?:\.|\Z))|\b(of|to|for|from|by) who\b", re.MULTILINE
)
"""A relative clause without its noun: "Who has begun goes on" for "participants who have started"."""

ALLOWED = {
    "Foretell": "the product's name",
    "foretell.py": "the product's command",
    "[road]": "a table of the study file",
    "foretell.db": "the name of a database",
    "COLUMN person": "a column of a database",
    "'answered'": "a value in databases",
    "foretell …": "the key of a lock in PostgreSQL: servers of every version must share it",
    "foretell prior": "the first words of a file, by which it is recognised",
    "data.sets.pictures": "the former name of a module",
    "centre of the picture": "a value frozen in bundles",
    "answered before": "a value stored in databases",
    ".map": "a function of JavaScript",
}
"""Phrases that may be written, in exactly this case, although a word of theirs may not."""


IRREGULAR = re.compile(
    r"begun|bought|bound|broken|brought|built|caught|chosen|done|drawn|felt|forgotten|found|frozen|given|gone|grown|"
    r"heard|held|hidden|kept|known|laid|led|lost|made|meant|paid|said|seen|sent|shown|sold|spent|"
    r"spoken|stolen|taken|taught|thought|told|understood|won|worn|written"
)
"""Participles that do not end in -ed, without those that are verbs in the present too (read, run) and left, a side."""

NOT_PARTICIPLES = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "speed"})
"""Verbs in the present and nouns that end in -ed."""


@dataclass(frozen=True)
class Offence:
    """A word in a text that should not be there."""

    place: str
    word: str
    instead: str
    context: str

    def __str__(self) -> str:
        """One line for a failing test."""
        return f"{self.place}: {self.word!r} in {self.context!r} ({self.instead})"


def find_offences(
    texts: Iterable[tuple[str, str]], allowed: Iterable[str] = ALLOWED, banned: Mapping[str, str] = BANNED
) -> list[Offence]:
    """Find every banned word.

    Parameters
    ----------
    texts
        Pairs of a place (a file, a key, a name) and its text.
    allowed
        Phrases that may be written.
    banned
        Patterns of whole words, and what to write instead.
    """
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(phrase) for phrase in allowed)})(?!\w)")
    found = []
    for place, text in texts:
        plain = pattern.sub("", text)
        for words, instead in banned.items():
            found += [_offence(place, plain, hit, instead) for hit in _search(words, plain)]
        found += [_offence(place, plain, hit, "name who: participants who") for hit in HEADLESS_WHO.finditer(plain)]
    return found


def _search(words: str, text: str) -> Iterable[re.Match[str]]:
    return re.finditer(rf"\b(?:{words})\b", text, re.IGNORECASE)


def _offence(place: str, text: str, hit: re.Match[str], instead: str) -> Offence:
    start, end = max(0, hit.start() - 30), min(len(text), hit.end() + 30)
    return Offence(place, hit[0].strip(), instead, " ".join(text[start:end].split()))


def list_participles(source: str) -> list[str]:
    """List the public functions, methods and classes of a module whose whole name is a participle."""
    return [
        f"{owner}{name}" for owner, name in _list_definitions(ast.parse(source), "") if _is_participle(name.lower())
    ]


def _list_definitions(node: ast.Module | ast.ClassDef, owner: str) -> Iterable[tuple[str, str]]:
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield owner, child.name
        if isinstance(child, ast.ClassDef):
            yield from _list_definitions(child, f"{owner}{child.name}.")


def _is_participle(name: str) -> bool:
    return bool(IRREGULAR.fullmatch(name)) or (name.endswith("ed") and name.isalpha() and name not in NOT_PARTICIPLES)


def strip_markdown(text: str) -> str:
    """Remove what is not prose: code, addresses of links, comments, quotations and bibliographies."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?<=\n\n)(?: {4,}.*\n?)+", "", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"``.*?``|`[^`]*`", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"\"[^\"\n]*\"|“[^”]*”", "", text)
    return re.sub(r"^- [A-Z][^\n]*?\(\d{4}\)\..*?(?=^- |^$|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def find_named(source: str, name: str) -> list[int]:
    """List the lines on which a variable, parameter or field is called ``name``."""
    nodes = list(ast.walk(ast.parse(source)))
    variables = [n.lineno for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name]
    return variables + [n.lineno for n in nodes if isinstance(n, ast.arg) and n.arg == name]
