"""A prior on disk: learned over scenes, killed, damaged, mistaken for another, named by a study file."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap

import pytest
import torch

from core.errors import ForetellError
from core.teaching.kfac import fit_prior
from study.building.build import build, verify
from study.network.priors import learn_prior, load_prior
from study.network.sources import open_classifier, open_set
from study.plan.config import ImageSource, read
from study.workspace.files import write_whole
from study.workspace.workspace import ROOT
from tests.study.studies import SMALL, TINY

pytestmark = pytest.mark.usefixtures("shared_predictions")

SIZE = 160
KILLED = """
import os, signal, sys
from pathlib import Path
from study.plan.config import ImageSource
from study.network.priors import learn_prior
from study.network.sources import open_classifier, open_set

def progress(done, total, what):
    if done > 100:
        os.kill(os.getpid(), signal.SIGKILL)

images = open_set(ImageSource.model_validate({"set": "scenes", "split": "pool", "size": 160}), Path.cwd())
learn_prior(open_classifier("scenes", Path.cwd()), images, Path(sys.argv[1]), every=0, progress=progress)
"""
LIMITED = """
import resource, signal, sys
from pathlib import Path
from core.errors import ForetellError
from study.workspace.files import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_whole(Path(sys.argv[1]), b"x" * int(sys.argv[2]))
except ForetellError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def classifier():
    return open_classifier("scenes", ROOT)


@pytest.fixture(scope="module")
def images():
    return open_set(ImageSource.model_validate({"set": "scenes", "split": "pool", "size": SIZE}), ROOT)


@pytest.fixture(scope="module")
def learned(classifier, images, tmp_path_factory):
    path = tmp_path_factory.mktemp("prior") / "scenes.safetensors"
    return path, learn_prior(classifier, images, path, damping=0.01)


def test_it_is_the_prior_of_all_features_at_once(classifier, images, learned):
    inputs = torch.stack([classifier.preprocess(images.open(i)) for i in range(SIZE)])
    expected = fit_prior(classifier.head, [classifier.features(inputs)], damping=0.01)
    prior = learned[1].prior
    torch.testing.assert_close(prior.feature_covariance, expected.feature_covariance, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(prior.class_covariance, expected.class_covariance, rtol=1e-6, atol=1e-9)
    assert prior.images == SIZE
    assert prior.conditions == pytest.approx(expected.conditions, rel=1e-4)


def test_it_says_where_it_came_from(classifier, images, learned):
    found = learned[1].provenance
    assert found["classifier"] == {"name": "scenes", "fingerprint": classifier.fingerprint}
    assert found["set"] == {"name": "scenes/pool", "digest": images.digest, "images": SIZE, "skipped": 0}
    assert found["damping"] == 0.01
    assert found["versions"]["torch"] == torch.__version__.split("+")[0] or "+" in found["versions"]["torch"]


def script(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a prior whose learning was killed: its checkpoint, and nothing else."""
    folder = tmp_path_factory.mktemp("killed")
    assert script(KILLED, folder / "scenes.safetensors").returncode == -9
    assert [path.name for path in folder.iterdir()] == ["scenes.safetensors.checkpoint"]
    return folder


@pytest.fixture
def out(killed, tmp_path):
    """Where the prior is to be, beside a copy of the checkpoint."""
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    return tmp_path / "scenes.safetensors"


def test_kill_9_costs_at_most_the_work_since_the_checkpoint(classifier, images, out, tmp_path):
    """Sums begun anew, or a batch counted twice, end with other bytes; nothing read twice is seen by what is opened."""
    assert not out.exists()
    done = []
    learn_prior(classifier, images, out, progress=lambda done_, total, what: done.append(done_))
    assert done[0] > 100
    whole = learn_prior(classifier, images, tmp_path / "whole.safetensors")
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert whole.prior.images == SIZE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scenes.safetensors", "whole.safetensors"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_a_damaged_checkpoint_is_one_sentence_and_restart_begins_again(classifier, images, out, damage):
    checkpoint = out.with_name("scenes.safetensors.checkpoint")
    content = bytearray(checkpoint.read_bytes())
    content[-100] ^= 1
    checkpoint.write_bytes({"cut": content[:-9], "flipped": content, "text": b"not a checkpoint"}[damage])
    with pytest.raises(ForetellError, match=r"checkpoint is damaged .*Delete .* or pass --restart to start again\.$"):
        learn_prior(classifier, images, out)
    assert learn_prior(classifier, images, out, resume=False).prior.images == SIZE


def test_a_checkpoint_of_another_set_is_refused(classifier, out):
    other = open_set(ImageSource.model_validate({"set": "scenes", "split": "pool", "size": SIZE, "seed": 1}), ROOT)
    with pytest.raises(ForetellError, match="is of another classifier or image set"):
        learn_prior(classifier, other, out)


def test_what_is_no_prior_is_refused(learned, tmp_path):
    with pytest.raises(ForetellError, match=r"There is no prior .*gone\. Make it with"):
        load_prior(tmp_path / "gone")
    content = bytearray(learned[0].read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "flipped").write_bytes(content)
    with pytest.raises(ForetellError, match="flipped is damaged or has another format"):
        load_prior(tmp_path / "flipped")


def test_a_study_names_its_prior_file(learned, tmp_path):
    """A prior that is not used, or one of other weights: the learner's probabilities before the examples tell."""
    (tmp_path / "own.toml").write_text(SMALL)
    text = SMALL.replace("sets = 20", f'sets = 20\nprior = "{learned[0].as_posix()}"')
    (tmp_path / "named.toml").write_text(text)
    own, named = (build(tmp_path / f"{name}.toml", tmp_path / "home") for name in ("own", "named"))
    assert named.manifest.classifier["prior"]["file"]["digest"] == learned[1].digest
    assert own.manifest.classifier["prior"]["file"] is None
    first = [bundle.manifest.trials[0].teaching.p_prior for bundle in (own, named)]
    assert first[0] != first[1]
    assert verify(named) == []


def test_a_prior_of_other_weights_is_refused(classifier, images, learned, monkeypatch):
    monkeypatch.setitem(classifier.__dict__, "fingerprint", "other")
    with pytest.raises(ForetellError, match="computed from 'scenes' with other weights than 'scenes' has now"):
        load_prior(learned[0], classifier)


def test_a_prior_file_and_damping_contradict_each_other(tmp_path):
    (tmp_path / "both.toml").write_text(TINY.replace("sets = 20", 'prior = "p.safetensors"\ndamping = 0.1'))
    with pytest.raises(ForetellError, match="teaching: a prior file has its own damping and tau"):
        read(tmp_path / "both.toml")


def test_a_full_disk_is_one_sentence_and_leaves_no_scrap(tmp_path):
    """A real limit of the system on the size of files, which small writes keep and large ones meet."""
    for size in (5_000, 5_000_000):
        done = script(LIMITED, tmp_path / "big", size)
        assert done.stdout.startswith(f"The disk or quota of {tmp_path} is full. Free some space"), done.stderr
    assert list(tmp_path.iterdir()) == []
    assert write_whole(tmp_path / "big", b"x").read_bytes() == b"x"
