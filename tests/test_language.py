"""One word for one thing in documents and programs: `tests/language.py` lists them, ``docs/terms.md`` explains."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from study.locales import CATALOGUES, FORMER
from tests.language import BANNED, GERMAN, PARTICIPANTS, find_named, find_offences, list_participles, strip_markdown
from tests.strings import list_strings, read_page

ROOT = Path(__file__).parents[1]

PLACES = ("README.md", "CHANGELOG.md", "docs/**/*.md", "docs/notebooks/*.ipynb", "benchmarks/*.md")


def name_file(path: Path) -> str:
    """Return the path of a file below the repository's root."""
    return path.relative_to(ROOT).as_posix()


def list_pages() -> list[Path]:
    """List the pages, also those made from code: their sentences are docstrings and help texts."""
    return sorted({page for pattern in PLACES for page in ROOT.glob(pattern) if "_build" not in page.parts})


def read_prose(page: Path) -> str:
    """Return the prose of a page; of the glossary without the column of words that are not used."""
    text = read_page(page)
    if page.name == "terms.md":
        text = re.sub(r"^(\|[^|\n]*\|[^|\n]*\|)[^|\n]*\|$", r"\1", text, flags=re.MULTILINE)
    return strip_markdown(text)


@pytest.mark.parametrize("page", list_pages(), ids=name_file)
def test_a_page_uses_the_words_of_the_glossary(page: Path) -> None:
    """A second word for the same thing, or a turn of phrase that only its author understands."""
    assert [str(offence) for offence in find_offences([(name_file(page), read_prose(page))])] == []


FROZEN = {
    "data/bars/generator.py": "draws published image sets",
    "data/scenes/generator.py": "draws published image sets",
    "data/scenes/pen.py": "draws published image sets",
    "data/scenes/shapes/__init__.py": "draws published image sets",
    "data/scenes/splits.py": "draws published image sets",
}
"""Files whose bytes are part of the SHA-256 of an image set: other words in a comment would make it another set."""

FOLDERS = ("benchmarks", "core", "dashboard", "data", "docs", "inquiry", "package", "scripts", "study")


def list_programs() -> list[Path]:
    """List every program that a reader of the repository meets, the tests apart."""
    files = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "_build" not in path.parts}
    programs = [path for path in files if path.suffix in (".py", ".js", ".html", ".ipynb") and path.stat().st_size]
    return sorted([ROOT / "foretell.py", *programs])


@pytest.mark.parametrize("path", [path for path in list_programs() if name_file(path) not in FROZEN], ids=name_file)
def test_programs_use_the_words_of_the_glossary(path: Path) -> None:
    """A label, an error, a docstring or a comment with a second word for the same thing."""
    assert [str(offence) for offence in find_offences(list_strings(path))] == []


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_files_need_their_exception(name: str) -> None:
    """An exception that outlives its reason, under which new offences would hide."""
    assert find_offences(list_strings(ROOT / name)) != []


@pytest.mark.parametrize("package", ["core", "dashboard", "data", "inquiry", "study"])
def test_public_names_say_what_they_do(package: str) -> None:
    """A function, method or class called by a bare participle, such as `found` or `shown`: of what, and by whom?"""
    names = [
        f"{name_file(path)}:{name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in list_participles(path.read_text(encoding="utf-8"))
    ]
    assert names == []


@pytest.mark.parametrize("name", ["found", "shown", "measured", "Owner.asked", "Skipped", "Owner.made"])
def test_the_search_finds_participles(name: str) -> None:
    """Negative control: functions, methods, properties and classes."""
    owner, _, last = name.rpartition(".")
    source = f"class {last}:\n    pass\n" if last.istitle() else f"def {last}(): ...\n"
    if owner:
        source = f"class Owner:\n    @property\n    {source}"
    assert [one.rpartition(".")[2] for one in list_participles(source)] == [last]


def test_the_search_leaves_other_names_alone() -> None:
    """Negative control: verbs in the present, nouns, private names, values, and participles with their noun."""
    names = ("read", "run", "cut", "spread", "seed", "between", "known_classes", "make", "_found")
    source = "".join(f"def {name}(): ...\n" for name in names)
    assert list_participles(source + "found = 1\nclass Result:\n    shown: bool\nclass FoundAnchor: ...\n") == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_values_are_called_by_what_they_are(folder: str) -> None:
    """A variable, parameter or field called `found`: what was found?"""
    places = [
        f"{name_file(path)}:{line}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in find_named(path.read_text(encoding="utf-8"), "found")
    ]
    assert places == []


@pytest.mark.parametrize(
    "source",
    ["found = 1", "def f(found): ...", "class A:\n    found: int", "for k, found in x: ...", "f = lambda found: 1"],
)
def test_the_search_finds_values(source: str) -> None:
    """Negative control: a variable, a parameter, a field, the target of a loop, the parameter of a lambda."""
    assert find_named(source, "found")
    assert find_named(source, "finding") == []


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("page.py", 'st.button("Take the pictures")\n', 1),
        ("page.py", "x = 1\nst.text(f\"{x:.2f} of the answers, {x if x else 'no answer yet'}\")\n", 2),
        ("page.py", 'def f():\n    """Foretell\n\n    the answer of somebody.\n    """\n', 2),
        ("page.py", "x = 1  # for everybody\n", 1),
        ("page.js", 'f(1);\nsay("All answers"); // fine\n', 2),
        ("page.js", "f(1); // what she answered\n", 1),
        ("page.html", "<p>\n  <b>All answers</b>\n</p>\n", 2),
        ("page.html", '<img alt="Two pictures">\n', 1),
    ],
)
def test_the_search_reads_programs(tmp_path: Path, name: str, content: str, line: int) -> None:
    """Negative control: offences in strings, f-strings, docstrings, comments and visible text, with their line."""
    (tmp_path / name).write_text(content)
    offences = find_offences(list_strings(tmp_path / name))
    assert offences
    assert {offence.place for offence in offences} == {f"{name}:{line}"}


def test_the_search_reads_notebooks(tmp_path: Path) -> None:
    """Negative control: offences in the prose of a notebook and in the comments of its code, not in its outputs."""
    cells = [
        {"cell_type": "markdown", "source": ["Two pictures.\n", "`answer`"]},
        {
            "cell_type": "code",
            "source": ["%%writefile answer.py\n", "x = 1  # for everybody\n"],
            "outputs": ["the road"],
        },
    ]
    (tmp_path / "page.ipynb").write_text(json.dumps({"cells": cells}))
    texts = [("page", read_prose(tmp_path / "page.ipynb")), *list_strings(tmp_path / "page.ipynb")]
    assert [offence.word for offence in find_offences(texts)] == ["pictures", "everybody"]


def test_the_search_leaves_code_alone(tmp_path: Path) -> None:
    """Negative control: keys, names, formats and code in backticks are not prose."""
    file = tmp_path / "page.py"
    file.write_text(
        'answers = {"answer": picture}\nx = f"{answers:>9 answer}"\n_JS = "the answer is"\ny = "see `an answer` now"\n'
    )
    assert find_offences(list_strings(file)) == []


def test_the_search_takes_parameters_for_code(tmp_path: Path) -> None:
    """Negative control: the names in a numpydoc section are code, their meanings are prose."""
    file = tmp_path / "module.py"
    file.write_text('def f():\n    """Do it.\n\n    answers, map\n        All of the pictures.\n    """\n')
    assert [offence.word for offence in find_offences(list_strings(file))] == ["pictures"]


def test_the_list_holds_the_glossarys_other_words() -> None:
    """A word that the glossary replaces and no test looks for."""
    text = (ROOT / "docs" / "terms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)[1:]
    words = {word.strip() for row in rows for word in row.split(",") if word.strip(" -")}
    assert len(words) > 12
    assert {word for word in words if not find_offences([("", f"There is {word} here.")])} == set(UNLISTED)


UNLISTED = {
    "alternative": "has other meanings in statistics: alternative hypothesis",
    "places": "places of a heatmap",
    "mass": "relevance mass is a published name",
    "people": "means people in general",
    "what the AI says": "close to the question of the introduction: what an AI will say",
    "reader of features": "readers of these pages",
    "what its layers hold": "no single word of it is wrong",
}
"""Words of the glossary's last column that no pattern can tell from their other meanings."""


@pytest.mark.parametrize(
    "text",
    ["This goes the whole road.", "Make it anew.", "Mend that line.", "It stands there.", "A line beside it.",
     "Two pictures.", "The AI's answer.", "She foretells the AI.", "Who has begun goes on.", "A place for who passed.",
     "How far to trust this map.", "the share of who left"],
)  # fmt: skip
def test_the_search_finds_each_kind(text: str) -> None:
    """Negative control: what the patterns must see."""
    assert find_offences([("here", text)]) != []


@pytest.mark.parametrize(
    "text",
    ["Foretell's pages", "python foretell.py docs", "a saliency map", "class activation maps", "Who can open a link?",
     "participants who started", "the standard error", "an understanding", "heatmaps", "whoever", "others"],
)  # fmt: skip
def test_the_search_leaves_plain_words_alone(text: str) -> None:
    """Negative control: what a pattern must not take for a banned word."""
    assert find_offences([("here", strip_markdown(text))]) == []


@pytest.mark.parametrize(("language", "banned"), [("en", PARTICIPANTS), ("de", GERMAN)])
def test_participants_read_one_word_for_one_thing(language: str, banned: dict[str, str]) -> None:
    """Catches a text of the experiment in the researchers' terms, or in a second word for the same thing."""
    assert [str(offence) for offence in find_offences(CATALOGUES[language].items(), (), banned)] == []
    assert find_offences(FORMER[language].items(), (), banned) != []


@pytest.mark.parametrize("file", sorted((ROOT / "data" / "studies").glob("*.toml")), ids=lambda file: file.name)
def test_study_files_use_the_words_too(file: Path) -> None:
    """Catches a question to participants, or a comment to researchers, in words that the list replaces."""
    text = file.read_text(encoding="utf-8")
    asked = [(file.name, value) for value in list_values(tomllib.loads(text))]
    comments = [(file.name, comment) for comment in re.findall(r"# (.*)", text)]
    found = find_offences(asked, (), PARTICIPANTS) + find_offences(comments)
    assert len(asked) > 10
    assert [str(offence) for offence in found] == []


def list_values(value: object) -> list[str]:
    """List every string in the content of a TOML file."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in list_values(part)]
    if isinstance(value, list):
        return [text for part in value for text in list_values(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("Foretell the AI", PARTICIPANTS),
        ("the AI's answer", PARTICIPANTS),
        ("after each you are told what the AI said", PARTICIPANTS),
        ("with a map over it", PARTICIPANTS),
        ("How sure are you?", PARTICIPANTS),
        ("Beside the picture", PARTICIPANTS),
        ("der Teilnehmer", GERMAN),
        ("die Antworten einer KI", GERMAN),
        ("was die KI gesagt hat", GERMAN),
        ("die Karte", GERMAN),
    ],
)
def test_the_search_finds_the_words_of_each_catalogue(text: str, banned: dict[str, str]) -> None:
    """Negative control: sentences that the catalogues had."""
    assert find_offences([("here", text)], (), banned) != []


def test_code_and_addresses_are_not_prose() -> None:
    """A key such as `[road]` would otherwise have to be renamed."""
    text = 'See `[road]`, [this](docs/road.md), "the road".\n\n```toml\n[road]\n```\n\n<!-- a picture -->\n'
    assert find_offences([("here", strip_markdown(text))]) == []
    assert len(BANNED) > 20
