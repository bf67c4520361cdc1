"""The page ``docs/studies.md``: the study files that come with Foretell."""

from __future__ import annotations

from study.plan.templates import TEMPLATES, read_note

PAGE = """\
# Studies to begin with

<!-- Written by `python docs/generate.py` from data/studies. Do not edit by hand. -->

Each is a study file of the folder `data/studies`. **Design** begins with a copy of one, as `python foretell.py
studies` lists them; all but the paper's study use images and a network that come with Foretell.

"""


def render_page() -> str:
    """Return the page."""
    sections = []
    for name, template in TEMPLATES.items():
        screenshot = f"![A trial of {template.trial}](../data/studies/trials/{template.trial}.webp)"
        file = f"[`{name}.toml`](../data/studies/{name}.toml)"
        sections.append(f"## {template.title}\n\n{template.measures} {file}: {read_note(name)}\n\n{screenshot}\n")
    return PAGE + "\n".join(sections)
