from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from core.attribution import METHODS
from core.errors import ForetellError
from core.parameters import list_parameters, parse_parameters
from core.registry import Registry


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(
        ForetellError, match=r"Unknown method 'integrated_gradient'. Did you mean 'integrated_gradients'"
    ):
        METHODS["integrated_gradient"]


def test_nothing_near_lists_what_there_is():
    with pytest.raises(ForetellError, match=r"Unknown fruit 'zzz'. Known: apple, pear."):
        Registry("fruit", {"pear": "a:b", "apple": "a:b"})["zzz"]


def test_listing_names_does_not_import_torch():
    code = "import sys; from core.attribution import METHODS; print(list(METHODS), 'torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip().endswith("False")


@pytest.mark.parametrize("name", list(METHODS))
def test_every_entry_can_be_imported(name):
    assert callable(METHODS[name])


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_is_called_as_it_says(name):
    """Catches a method documented, or offered to an editor, with the arguments of the function inside it."""
    arguments = inspect.signature(METHODS[name]).parameters
    assert list(arguments)[:5] == ["classifier", "images", "targets", "generator", "progress"]
    assert all(each.kind is each.KEYWORD_ONLY for each in list(arguments.values())[3:])
    assert {p.name for p in list_parameters(METHODS[name])} <= set(arguments)


def test_parameters_are_typed_from_texts():
    method = METHODS["bayesian_teaching"]
    assert parse_parameters(method, {"samples": "50", "fill": "black", "length_scale": "0.2"}) == {
        "samples": 50,
        "fill": "black",
        "length_scale": 0.2,
    }
    assert [p.choices for p in list_parameters(method) if p.name == "fill"] == [("mean", "black")]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sample": "5"}, "bayesian_teaching has no parameter 'sample'. Did you mean 'samples'"),
        ({"samples": "many"}, "samples='many' is not a int"),
        ({"fill": "pink"}, "fill='pink': choose one of mean, black"),
    ],
)
def test_bad_parameters_are_named(given, text):
    with pytest.raises(ForetellError, match=text):
        parse_parameters(METHODS["bayesian_teaching"], given)


def test_a_parameter_of_a_former_version_is_taken_under_its_present_name():
    """Catches study files of version 0.2 that are refused, and a former name that hides a function's own parameter."""

    def renamed(*, images: int = 3):
        return images

    def own(*, pictures: int = 3):
        return pictures

    with pytest.warns(FutureWarning, match="'pictures' is now called 'images'"):
        assert parse_parameters(renamed, {"pictures": "7"}) == {"images": 7}
    assert parse_parameters(own, {"pictures": "7"}) == {"pictures": 7}
