"""The contracts of every registered method, run over the registry: a new method is held to them by its one line."""

from __future__ import annotations

import copy
import threading

import pytest
import torch

from core.attribution import METHODS
from core.attribution.records import sign_of
from core.errors import ForetellError
from core.network.classifier import Classifier
from core.parameters import list_parameters, summary
from core.types import Explanation
from tests.core.networks import SIDE, attentive, awkward, flattened, greedy, pictures, unit

ATTENTION = {"attention_rollout", "transformer_attribution"}
"""Methods for networks with attention between all tokens, which refuse any other in words."""
CHEAP = {
    "attention_rollout": {"weighting": "gradient"},
    "deep_shap": {"samples": 3},
    "bayesian_teaching": {"samples": 96},
    "integrated_gradients": {"steps": 8},
    "expected_gradients": {"samples": 12},
    "smoothgrad": {"samples": 6},
    "vargrad": {"samples": 6, "noise": 0.8},
    "meaningful_perturbation": {"iterations": 12, "grid": 6},
    "extremal_perturbation": {"iterations": 12, "grid": 6, "areas": "0.2"},
    "prediction_difference": {"window": 6, "stride": 6, "samples": 3},
    "rise": {"samples": 96, "grid": 4},
    "sobol": {"designs": 4, "grid": 3},
    "hsic": {"samples": 64, "grid": 4},
    "shapley_exact": {"grid": 2},
    "shapley_sampling": {"grid": 3, "pairs": 3},
    "kernel_shap": {"grid": 4, "samples": 128},
    "lime": {"grid": 4, "samples": 128},
    "anchors": {"grid": 3, "samples": 256, "share": 0.99},
}
COMPLETE = {
    "deeplift",
    "deep_shap",
    "taylor_decomposition",
    "integrated_gradients",
    "expected_gradients",
    "shapley_exact",
    "shapley_sampling",
    "kernel_shap",
}
NEEDED = {"smc": {"samples": 128}, "auto": {"samples": 128}}
"""What a choice cannot do without."""
every_method = pytest.mark.parametrize("name", list(METHODS))


def subject(name, device="cpu") -> Classifier:
    """The network whose heatmaps the contracts of a method are about."""
    return attentive(device=device) if name in ATTENTION else awkward(device=device)


def explain(name, classifier, images, targets, seed=7, **parameters) -> Explanation:
    generator = torch.Generator().manual_seed(seed)
    return METHODS[name](classifier, images, targets, generator=generator, **{**CHEAP.get(name, {}), **parameters})


def snapshot(module):
    return {
        "state": {k: v.clone() for k, v in module.state_dict().items()},
        "modules": [id(m) for m in module.modules()],
        "training": [m.training for m in module.modules()],
        "requires_grad": [p.requires_grad for p in module.parameters()],
        "grad": [p.grad is None for p in module.parameters()],
        "hooks": [
            len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) + len(m._backward_pre_hooks)
            for m in module.modules()
        ],
    }


def assert_same(before, after):
    for key in before["state"]:
        assert torch.equal(before["state"][key], after["state"][key]), key
    assert {k: v for k, v in before.items() if k != "state"} == {k: v for k, v in after.items() if k != "state"}


@every_method
def test_shape_dtype_and_finite(name):
    explanation = explain(name, subject(name), pictures(3), [0, 1, 2])
    assert explanation.map.shape == (3, SIDE, SIDE)
    assert explanation.map.dtype == torch.float32
    assert torch.isfinite(explanation.map).all()
    assert explanation.map.std() > 0


@pytest.mark.parametrize(
    ("name", "parameters"),
    [(name, {}) for name in METHODS]
    + [
        (name, {parameter.name: choice})
        for name, method in METHODS.items()
        for parameter in list_parameters(method)
        for choice in parameter.choices or ()
        if choice != parameter.default and (parameter.name, choice) != ("path", "blur")  # with another baseline
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.values()),
)
def test_a_method_said_to_show_no_values_below_zero_has_none(name, parameters):
    """The words under a heatmap: "Blue: ..." only where there can be blue, never "for" alone where there is.

    Whatever the choices of its parameters are: signed class activation maps have blue, a largest slope has none.
    """
    needs = {key: value for one in parameters.values() for key, value in NEEDED.get(one, {}).items()}
    evidence = explain(name, subject(name), pictures(3), [0, 1, 2], **parameters, **needs).evidence
    if sign_of(name, parameters).below is None:
        assert evidence.min() >= -1e-6
    elif not parameters:
        assert evidence.min() < 0


def test_what_the_colours_mean_stands_in_the_record_of_a_method():
    assert sign_of("deeplift", {}).words("fish") == "Orange: for fish. Blue: against fish."
    assert "not evidence" in sign_of("deconvnet", {}).words("fish")
    assert "Blue" not in sign_of("vargrad", {}).words("fish")


@every_method
def test_a_batch_equals_its_images_one_by_one(name):
    classifier, images = subject(name), pictures(3)
    together = explain(name, classifier, images, [0, 1, 2]).map
    rounding = 1e-6 * max(1.0, float(together.abs().max()))  # of the largest sum: processors add up batches differently
    for i in range(3):
        alone = explain(name, classifier, images[i : i + 1], [i]).map[0]
        torch.testing.assert_close(together[i], alone, rtol=1e-5, atol=rounding)


@every_method
def test_alone_equals_in_a_pair_equals_float64_behind_a_flattened_batch_norm(name):
    """PyTorch 2.13's gradient for one image there is wrong by as much as the largest right one, in float64 too.

    The oracle is the same function written so that PyTorch reads no order of values wrongly, in float64.
    """
    if name == "cam":  # only for a network that ends in global average pooling
        with pytest.raises(ForetellError, match="does not end in global average pooling"):
            explain(name, flattened(), pictures(1), [0])
        return
    parameters = {"layer": "embed"} if any(p.name == "layer" for p in list_parameters(METHODS[name])) else {}
    images = pictures(2)
    exact = explain(name, flattened(True, torch.float64), images[:1], [0], **parameters).map[0]
    alone = explain(name, flattened(), images[:1], [0], **parameters).map[0]
    paired = explain(name, flattened(), images, [0, 0], **parameters).map[0]
    close = 1e-4 * float(exact.abs().max())
    assert close > 0
    torch.testing.assert_close(alone, paired, rtol=0, atol=close)
    torch.testing.assert_close(alone, exact, rtol=0, atol=close)


@every_method
def test_out_of_memory_halves_the_chunk_and_goes_on(name):
    """The same map from a device that takes two inputs at a time: nothing is lost and nothing counts twice."""
    classifier, images = subject(name), pictures(5)
    with classifier.exclusive() as module:
        network, sizes = greedy(module)
    small = Classifier(network, unit, classifier.categories, name="greedy")
    sizes.clear()
    parameters = {"layer": "drop"} if any(p.name == "layer" for p in list_parameters(METHODS[name])) else {}
    expected = explain(name, classifier, images, [0, 1, 2, 0, 1], **parameters)
    parameters = {key: f"network.{layer}" for key, layer in parameters.items()}
    found = explain(name, small, images, [0, 1, 2, 0, 1], **parameters)
    assert max(sizes) > 2
    torch.testing.assert_close(found.map, expected.map, rtol=1e-4, atol=1e-5)


@every_method
def test_same_seed_same_map_bit_for_bit(name):
    classifier, images = subject(name), pictures(2)
    assert torch.equal(explain(name, classifier, images, [0, 1]).map, explain(name, classifier, images, [0, 1]).map)


@every_method
def test_the_map_explains_the_chosen_class(name):
    classifier, images = subject(name), pictures(1)
    maps = [explain(name, classifier, images, [k]).map for k in (0, 1)]
    assert (maps[0] - maps[1]).abs().max() > 1e-3


@every_method
def test_model_and_input_are_untouched_also_after_an_exception(name):
    classifier, images = subject(name), pictures(2)
    original = images.clone()
    with classifier.exclusive() as module:
        before = snapshot(module)
    explain(name, classifier, images, [0, 1])

    def interrupt(done, total, what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain(name, classifier, images, [0, 1], progress=interrupt)
    with classifier.exclusive() as module:
        assert_same(before, snapshot(module))
    assert torch.equal(images, original)


@every_method
def test_certificate_says_what_was_explained(name):
    classifier, images = subject(name), pictures(2)
    explanation = explain(name, classifier, images, [2, 0])
    probabilities = classifier.probabilities(images)
    assert [c.target for c in explanation.certificates] == [2, 0]
    for i, certificate in enumerate(explanation.certificates):
        assert certificate.method == name
        assert certificate.fingerprint == classifier.fingerprint
        assert certificate.probability == pytest.approx(float(probabilities[i, certificate.target]), abs=1e-6)
        assert certificate.versions["torch"]
        assert (certificate.completeness is not None) == (name in COMPLETE)


@every_method
def test_two_threads_do_not_disturb_each_other(name):
    classifier, images = subject(name), pictures(2)
    expected = explain(name, classifier, images, [0, 1]).map
    wrong: list[str] = []

    def work():
        maps = [explain(name, classifier, images, [0, 1]).map for _ in range(4)]
        wrong.extend(name for found in maps if not torch.equal(found, expected))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@every_method
def test_it_is_documented_with_a_source_and_typed_defaults(name):
    method = METHODS[name]
    assert len(summary(method)) > 30
    text = f"{method.__doc__}{__import__(method.__module__, fromlist=['x']).__doc__}"
    assert "arXiv:" in text or "doi:" in text
    assert all(parameter.default is not None for parameter in list_parameters(method))


@pytest.mark.parametrize("method", sorted(ATTENTION))
def test_methods_for_attention_refuse_a_network_without_it(method):
    """In words, and by the name of the network."""
    with pytest.raises(ForetellError, match="awkward has no attention between places"):
        explain(method, awkward(), pictures(1), [0])


def test_the_snapshot_sees_a_changed_weight():
    """Negative control: the immutability contract can fail."""
    classifier = awkward()
    with classifier.exclusive() as module:
        before = copy.deepcopy(snapshot(module))
        with torch.no_grad():
            next(module.parameters())[0] += 1e-3
        with pytest.raises(AssertionError):
            assert_same(before, snapshot(module))
