from __future__ import annotations

import pytest

from core.errors import ForetellError
from study.plan.config import read
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
        ("seed = 5", "seed = -5", "study.seed: Input should be greater than or equal to 0"),
        ("[display]", '[texts]\nconsnt = "x"\n[display]', "Unknown text 'consnt'. Did you mean 'consent'"),
        ("[study]", "[study", "is not valid TOML"),
    ],
)
def test_one_fault(tmp_path, old, new, text):
    with pytest.raises(ForetellError, match=text.replace("(", r"\(")):
        read(write(tmp_path, TINY.replace(old, new, 1)))


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
