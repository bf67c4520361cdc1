from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.errors import ForetellError
from study.plan.config import read, read_frozen
from study.plan.draft import StudyDraft
from study.plan.services import SERVICES
from study.workspace.workspace import ROOT
from tests.study.studies import TINY


def write(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "studies").glob("*.toml")), ids=lambda p: p.name)
def test_shipped_study_files_are_valid(path):
    assert read(path).study.name == path.stem


def test_every_fault_is_told_at_once_with_its_place_and_remedy(tmp_path):
    text = (
        TINY.replace('name = "tiny"', 'name = "Tiny Study"')
        .replace('split = "pool"', 'split = "pool"\n[sets.extra]\nset = "scenes"')
        .replace(
            "practice = 2", 'practice = 2\nper_typ = 1\ncategories = ["fish"]'.replace('\ncategories = ["fish"]', "")
        )
        .replace('policy = "best"', 'policy = "worst"')
        .replace("samples = 8", "sample = 8")
        .replace('model = "scenes"', "")
    )
    with pytest.raises(ForetellError) as caught:
        read(write(tmp_path, text))
    message = str(caught.value)
    for part in (
        "has 6 errors",
        "study.name: ",
        "classifier.model: is missing; add it",
        "sets.extra: unknown key; remove it or correct its spelling",
        "trials.per_typ: unknown key",
        "teaching.policy: Unknown teaching policy 'worst'. Did you mean 'first' or 'nearest'?",
        "saliency: bayesian_teaching has no parameter 'sample'. Did you mean 'samples'?",
    ):
        assert part in message, part


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (
            'set = "scenes"\nsplit = "pool"',
            'set = "scene"',
            "sets.pool: Unknown image set 'scene'. Did you mean 'scenes'",
        ),
        ("[saliency]", '[saliency]\nmethod = "gradien"', "saliency: Unknown method 'gradien'. Did you mean 'gradient'"),
        ("[study]", 'conditions = ["none", "maps"]\n[study]', "Unknown condition 'maps'"),
        ("[study]", 'conditions = ["none", "none"]\n[study]', "name each condition once"),
        ("seed = 5", "seed = -5", "study.seed: must be at least 0 (it is -5)"),
        ("[display]", '[texts]\nconsnt = "x"\n[display]', "Unknown text 'consnt'. Did you mean 'consent'"),
        ("[study]", "[study", "is not valid TOML. Line 2, column 7: Expected ']' at the end of a table declaration."),
        ("seed = 5", "seed =  # later", "is not valid TOML. Line 5: a value is missing after =."),
        ("practice = 2", 'per_type = "x"', "trials.per_type: must be a whole number (it is 'x')"),
        ("categories = 3", "categories = []", "trials.categories: name at least one category, or give their number"),
        ("categories = 3", 'categories = ["Ant", "bee", "ant"]', "trials.categories: 'Ant' is named twice"),
        ("practice = 2", "practice = 13", "trials.practice: must be at most 12 (it is 13)"),
        ("[display]", "[pacing]\nconfidence = 2\n[display]", "pacing.confidence: must be true or false (it is 2)"),
        ("[study]", 'language = "fr"\n[study]', "language: must be 'en' or 'de' (it is 'fr')"),
        ("[study]", 'conditions = "none"\n[study]', "conditions: must be a list in square brackets (it is 'none')"),
        ("title = ", "title = 3 #", "study.title: must be text in quotation marks (it is 3)"),
        ('policy = "best"', 'policy = "best"\nweight = 0', "teaching.weight: must be greater than 0 (it is 0)"),
        (
            "[display]",
            '[analysis.stopping]\nlooks = []\ncontrast = {more = "both"}\n[display]',
            "analysis.stopping.looks: must have at least 1 entry (it is [])",
        ),
    ],
)
def test_one_fault(tmp_path, old, new, text):
    with pytest.raises(ForetellError, match=re.escape(text)):
        read(write(tmp_path, TINY.replace(old, new, 1)))


def test_alternatives_are_one_fault_at_the_place_in_the_file(tmp_path):
    """Catches one fault for each type that a value may have, at a place that the file does not have."""
    categories = re.search(r"(?m)^categories = .*$", TINY)
    text = TINY.replace(categories[0], 'categories = "abc"')
    with pytest.raises(ForetellError) as caught:
        read(write(tmp_path, text))
    assert str(caught.value).splitlines()[1:] == [
        "  trials.categories: must be a whole number or a list in square brackets (it is 'abc')"
    ]


@pytest.mark.parametrize("title", ["", "  "])
def test_a_study_is_built_only_with_a_title_and_frozen_ones_without_stay_open(tmp_path, title):
    """Catches pages without a heading, and a bundle or a preregistered file of former times that opens no longer."""
    path = write(tmp_path, re.sub(r"(?m)^title = .*$", f'title = "{title}"', TINY))
    said = "study.title: Give the study a title: participants read it on every page."
    with pytest.raises(ForetellError, match=said):
        read(path)
    assert [str(fault) for fault in StudyDraft.read(path).check()[1]] == [said]
    preregistered = read(path, to_build=False)
    assert preregistered.study.title == title
    assert read_frozen(preregistered.model_dump(mode="json")) == preregistered


def test_no_file_names_the_way_out(tmp_path):
    with pytest.raises(ForetellError, match=r"no study file .*Copy data/studies/demo.toml"):
        read(tmp_path / "none.toml")


def test_digest_does_not_hang_on_the_order_of_the_file(tmp_path):
    first = read(write(tmp_path, TINY)).digest
    assert (
        read(write(tmp_path, TINY.replace("seed = 5\n", "").replace('name = "tiny"', 'seed = 5\nname = "tiny"'))).digest
        == first
    )
    assert read(write(tmp_path, TINY.replace("seed = 5", "seed = 6"))).digest != first


@pytest.mark.parametrize(
    ("recruiter", "sentence"),
    [
        ('url = "https://x.org/?cc={pid}"', "contains {pid}, which nothing fills in"),
        ('url = "https://x.org/?cc={Code}"', "contains {Code}, which nothing fills in"),
        ('url = "https://x.org/?id=%SURVEY_CODE%"', "contains %SURVEY_CODE%, which nothing fills in"),
        ('url = "https://x.org/?p={{%PROLIFIC_PID%}}"', "contains {{%PROLIFIC_PID%}}, which nothing fills in"),
        ('url = "https://x.org/?id=${e://Field/pid}"', "contains ${e://Field/pid}, which nothing fills in"),
        ('url = "https://x.org/?survey_code=XXXX"', "contains XXXX, which nothing fills in"),
        ('url = "https://app.prolific.com/submissions/complete?cc=ABC"', "contains a code of its own"),
        ('url = "https://x.org/done"\ncomplete = "ABC"', "has no place for the code ABC"),
        ('url = "https://x.org/?cc=ABC"\ncomplete = "XYZ"', "has no place for the code XYZ"),
        ('service = "sona"', "SONA needs the link back in url"),
    ],
)
def test_a_link_back_that_cannot_work_is_refused(tmp_path, recruiter, sentence):
    """Catches participants who return without their code or id, and are not paid."""
    path = write(tmp_path, TINY + f"\n[recruiter]\n{recruiter}\n")
    with pytest.raises(ForetellError) as caught:
        read(path)
    assert sentence in str(caught.value)
    assert read(path, to_build=False).recruiter.retention_days == 180  # a frozen study stays readable


@pytest.mark.parametrize(
    "recruiter",
    [
        'service = "prolific"\ncomplete = "C1A2"\ndeclined = "C3"',
        'service = "mturk"',
        'service = "connect"\nurl = "https://connect.example.org/complete/4f2a%C3%A9"',
        'service = "sona"\nurl = "https://s.sona-systems.com/webstudy_credit.aspx?experiment_id=1&survey_code={id}"',
        'url = "https://x.org/?cc={code}&id={id}"\ncomplete = "ABC"',
    ],
)
def test_the_links_of_the_services_are_taken(tmp_path, recruiter):
    """Negative control: the examples of each service's documentation, filled in."""
    assert read(write(tmp_path, TINY + f"\n[recruiter]\n{recruiter}\n")).recruiter.retention_days == 180


def test_the_guide_and_the_services_say_the_same():
    """Catches a guide whose link of a service is another one than the page's."""
    guide = (ROOT / "docs" / "how-to" / "recruit.md").read_text(encoding="utf-8")
    for name, service in SERVICES.items():
        assert f"| `{name}` | `…/run/STUDY?{service.arrival}` |" in guide
        assert service.link_back in guide


def test_a_contrast_with_a_condition_that_nobody_will_be_in_is_refused(tmp_path: Path) -> None:
    """Catches a planned contrast of an absent condition, which says so only when the responses are analysed."""
    text = (
        (ROOT / "data" / "studies" / "demo.toml")
        .read_text()
        .replace("[study]", 'conditions = ["none", "both"]\n\n[study]', 1)
    )
    (tmp_path / "default.toml").write_text(text)
    assert read(tmp_path / "default.toml").conditions == ("none", "both")
    own = tmp_path / "own.toml"
    own.write_text(f'{text}\n[[analysis.contrasts]]\nmore = "saliency"\n')
    with pytest.raises(ForetellError, match=r"analysis.contrasts: saliency is not among .* \(none, both\)"):
        read(own)
    assert read(own, to_build=False).analysis.contrasts[0].more == "saliency"
