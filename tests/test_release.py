"""A release has one number, in the code, the changelog and the citation, and its README shows Python that runs."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 160
"""Characters of a bullet of the changelog: one fact, which is read in one go."""

DATED = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def read_version() -> str:
    """The version in the code, which pip installs."""
    return str(tomllib.loads(read("pyproject.toml"))["project"]["version"])


def list_sections(changelog: str) -> dict[str, str]:
    """Every section of the changelog by its heading, in its order."""
    _, *parts = re.split(r"^## (.*)$\n", changelog, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def list_bullets(section: str) -> list[str]:
    """The bullets of a section, each with its continuation lines, as it is written."""
    return [" ".join(bullet.split()) for bullet in re.findall(r"^- .*(?:\n  .*)*", section, re.MULTILINE)]


def list_releases(changelog: str) -> list[tuple[str, str]]:
    """Number and date of every release, the newest first."""
    return DATED.findall(changelog)


def list_overlong(changelog: str) -> list[str]:
    """The bullets of what is unreleased and of the newest release that are too long."""
    newest = [text for text in list(list_sections(changelog).values())[:2] for text in list_bullets(text)]
    return [bullet for bullet in newest if len(bullet) > LONGEST]


def test_the_version_is_the_newest_release_of_the_changelog() -> None:
    """Catches a release under one number in the code and another in the changelog, or without a date."""
    headings = list(list_sections(read("CHANGELOG.md")))
    assert headings[0] == "Unreleased"
    assert [DATED.fullmatch(f"## {heading}") for heading in headings[1:]].count(None) == 0
    assert list_releases(read("CHANGELOG.md"))[0][0] == read_version()


def test_releases_are_in_their_order() -> None:
    """Catches a section in the wrong place: a number or a date that is not below the one before."""
    releases = list_releases(read("CHANGELOG.md"))
    numbers = [tuple(map(int, number.split("."))) for number, _ in releases]
    dates = [datetime.date.fromisoformat(date) for _, date in releases]
    assert len(releases) >= 3
    assert numbers == sorted(set(numbers), reverse=True)
    assert dates == sorted(dates, reverse=True)


def test_the_citation_is_of_the_newest_release() -> None:
    """Catches a citation with the number or the date of another release."""
    cited = dict(re.findall(r"^(version|date-released): (\S+)$", read("CITATION.cff"), re.MULTILINE))
    number, date = list_releases(read("CHANGELOG.md"))[0]
    assert cited == {"version": number, "date-released": date}
    assert cited["version"] == read_version()


def test_a_bullet_is_one_fact() -> None:
    """Catches a bullet that tells a story: the newest release and what is unreleased are read line by line."""
    assert list_overlong(read("CHANGELOG.md")) == []


def test_a_bullet_is_said_once() -> None:
    """Catches a change that is listed in two areas of the newest release."""
    bullets = [
        text for section in list(list_sections(read("CHANGELOG.md")).values())[:2] for text in list_bullets(section)
    ]
    assert bullets
    assert sorted(bullets) == sorted(set(bullets))


@pytest.mark.parametrize(
    ("changelog", "overlong"),
    [
        (f"## Unreleased\n\n- {'a' * 159}\n\n## 0.3.0 - 2026-11-27\n\n- b\n", 1),
        (f"## Unreleased\n\n- a\n\n## 0.3.0 - 2026-11-27\n\n- {'b' * 80}\n  {'c' * 80}\n", 1),
        (f"## Unreleased\n\n## 0.3.0 - 2026-11-27\n\n- {'b' * 158}\n\n## 0.2.0 - 2026-11-22\n\n- {'c' * 400}\n", 0),
    ],
)
def test_the_search_finds_long_bullets(changelog: str, overlong: int) -> None:
    """Negative control: one character too many, a bullet of two lines, and older releases, which are left alone."""
    assert len(list_overlong(changelog)) == overlong


def test_the_python_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a first example that stops, or that draws no heatmap of each method."""
    (code,) = re.findall(r"^```python\n(.*?)^```", read("README.md"), re.MULTILINE | re.DOTALL)
    *statements, last = code.strip().splitlines()
    assert len([line for line in statements if line.strip()]) + 1 == 3
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(compile("\n".join(statements), "README.md", "exec"), names)
    explanations = eval(compile(last, "README.md", "eval"), names)
    assert explanations.to_numpy().shape[:2] == (1, 2)
    assert explanations._repr_html_().count("<img") >= 2
