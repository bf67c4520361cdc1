"""The study files that come with Foretell, as Design and the docs show them."""

from __future__ import annotations

from PIL import Image

from study.plan.templates import TEMPLATES, TRIALS, read_note, templates
from study.workspace.workspace import ROOT


def test_every_study_file_of_the_project_is_a_template() -> None:
    """Catches a recipe that Design does not offer and Studies lists among one's own."""
    assert {path.stem for path in (ROOT / "data" / "studies").glob("*.toml")} == {path.stem for path in templates()}


def test_every_template_shows_a_trial_and_says_where_it_comes_from() -> None:
    """Catches a template without the screenshot of its trial, and a note that tells a page's readers to copy a file."""
    for name, template in TEMPLATES.items():
        height = 1340 if template.trial == "meta-predictor" else 640  # training images lie over half of the page
        assert Image.open(TRIALS / f"{template.trial}.webp").size == (760, height)
        note = read_note(name)
        assert len(note.split()) > 5
        assert "Copy this file" not in note
    assert "arXiv:2208.00780" in read_note("accept-reject")
