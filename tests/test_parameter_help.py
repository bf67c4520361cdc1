"""What every parameter means: said of all that a page, a command or the catalogue offers, in the same words."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Annotated, Any

import pytest

from core.attribution import METHODS
from core.attribution.outside.opening import open_method
from core.parameters import list_parameters, parse_parameters, read_descriptions, summary
from core.uncertainty import SAMPLERS
from inquiry.layers import QUESTIONS

REGISTRIES = {"method": METHODS, "question": QUESTIONS, "sampler": SAMPLERS}
EVERY = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry]
SENTENCES = re.compile(r"[A-Z][^`\n]{5,298}\.")


def help_of(function: Any, name: str) -> str:
    return next(one.help for one in list_parameters(function) if one.name == name)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_parameter_says_what_it_means(kind: str, name: str) -> None:
    """In a tooltip's length, without markup. Catches a new parameter without a text, and one that wraps another."""
    for parameter in list_parameters(REGISTRIES[kind][name]):
        assert SENTENCES.fullmatch(parameter.help), f"{name}, {parameter.name}: {parameter.help!r}"
        assert not re.search(r"--|:\w+:|  |\*\*", parameter.help), f"{name}, {parameter.name}: {parameter.help!r}"


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_what_is_described_is_a_parameter(kind: str, name: str) -> None:
    """Catches a text that is left of a parameter which was renamed or removed; tensors have none in a form."""
    function = REGISTRIES[kind][name]
    described = read_descriptions(inspect.getdoc(function) or "")
    assert set(described) <= {one.name for one in list_parameters(function)} | {"references"}


def test_a_summary_ends_before_the_parameters() -> None:
    assert summary(SAMPLERS["drop_connect"]) == "Drop weights one by one and enlarge the others to keep the mean."


SHARED = Annotated[float, 7, "What several functions say.", "More."]


def own(
    classifier: Any,
    *,
    wide: SHARED = 1.0,
    other: SHARED = 2.0,
    first: int = 1,
    second: int = 2,
    third: str = "",
    bare: bool = True,
) -> None:
    """Do nothing.

    It speaks of ``bare``, and of parameters:

    Parameters
    ----------
    classifier
        A network.
    wide : float, optional
        Its own text, of ``wide``
        in two lines.

        A second paragraph.
    first, second : int
        Said of both.
    third : {'a', 'b'}, default: 'a'
        Ends before the next section.

    Returns
    -------
    bare
        Nothing.
    """


def test_numpydoc_is_read_and_wins_over_the_type() -> None:
    """Catches a lost line, markup, a second paragraph, and what another section says."""
    assert {one.name: one.help for one in list_parameters(own)} == {
        "wide": "Its own text, of wide in two lines.",
        "other": "What several functions say.",
        "first": "Said of both.",
        "second": "Said of both.",
        "third": "Ends before the next section.",
        "bare": "",
    }
    assert [(one.kind, one.default, one.choices) for one in list_parameters(own)][:2] == [
        (float, 1.0, None),
        (float, 2.0, None),
    ]
    assert parse_parameters(own, {"other": "3"})["other"] == 3.0


@pytest.mark.parametrize(
    "text",
    ["", "Parameters", "Parameters\n---", "Parameters\n----------\n", "Parameters\n----------\nx\ny : int\n\n\nz",
     "Parameters\n----------\n    x\n        Too deep.", "Parameters:\n    x: Another style."],
)  # fmt: skip
def test_other_documentation_describes_nothing(text: str) -> None:
    assert read_descriptions(text) == {}


MINE = '''
from typing import Annotated
from core.attribution.method import heatmap_method
from core.network.masked import Fill

def plain(model, images, targets, *, times: float = 1.0, noted: Annotated[int, "In the type."] = 1):
    return images.sum(1) * times

def documented(model, images, targets, *, times: float = 1.0, more=1):
    """Return brightness, times a number.

    Parameters
    ----------
    times
        Factor of the brightness.
    """
    return images.sum(1) * times

@heatmap_method
def declared(query, *, times: float = 1.0, fill: Fill = "mean"):
    """Return nothing.

    Parameters
    ----------
    times : float
        Factor of nothing.
    """

class Odd:
    __name__ = "odd"
    __doc__ = 5
    def __call__(self, model, images, targets, *, times: float = 1.0):
        return images.sum(1)
odd = Odd()
'''


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", {"times": "", "noted": "In the type."}),
        ("documented", {"times": "Factor of the brightness.", "more": ""}),
        ("declared", {"times": "Factor of nothing.", "fill": help_of(METHODS["rise"], "fill")}),
        ("odd", {"times": ""}),
    ],
)
def test_methods_of_ones_own_say_what_their_docstring_says(tmp_path: Path, name: str, expected: dict[str, str]) -> None:
    """Catches documentation that is lost between the function and its form, and a function without any that fails."""
    (tmp_path / "mine.py").write_text(MINE)
    method = open_method(f"mine.py:{name}", tmp_path)
    assert {one.name: one.help for one in list_parameters(method)} == expected
    assert parse_parameters(method, {"times": "2"})["times"] == 2.0
    assert summary(method)
