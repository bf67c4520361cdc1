"""Maps are made once per key, and the key sees every pixel."""

from __future__ import annotations

import threading

import pytest
import torch

from core.types import Explanation, Progress
from dashboard import cache
from dashboard.keys import digest, tensor_digest


def request(inputs: torch.Tensor, **changes: object) -> cache.Request:
    settings = {"method": "gradient", "target": 3, "seed": 0, "parameters": {}} | changes
    return cache.Request(cache.classifier("scenes"), inputs=inputs, **settings)  # type: ignore[arg-type]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the maps that were really made."""
    made: list[str] = []
    compute = cache.Request.compute

    def counted(self: cache.Request, progress: Progress) -> Explanation:
        made.append(self.key)
        return compute(self, progress)

    monkeypatch.setattr(cache.Request, "compute", counted)
    return made


def picture(seed: int) -> torch.Tensor:
    return torch.randn(3, 96, 96, generator=torch.Generator().manual_seed(seed))


def test_one_differing_pixel_is_another_map(computed: list[str]) -> None:
    a = picture(1)
    b = a.clone()
    b[1, 40, 50] += 0.5
    maps = [cache.explained((r := request(x)).key, r).map for x in (a, b, a, b)]
    assert len(computed) == 2
    assert torch.equal(maps[0], maps[2])
    assert not torch.equal(maps[0], maps[1])


@pytest.mark.parametrize(
    "changes", [{"target": 4}, {"seed": 1}, {"method": "integrated_gradients"}, {"parameters": {"steps": 8}}]
)
def test_every_setting_is_in_the_key(changes: dict[str, object]) -> None:
    assert request(picture(1), **changes).key != request(picture(1)).key


def test_an_interrupted_map_is_made_again(computed: list[str]) -> None:
    r = request(picture(2))

    def cancel(done: int, total: int, what: str) -> None:
        raise RuntimeError("clicked elsewhere")

    with pytest.raises(RuntimeError, match="clicked elsewhere"):
        cache.explained(r.key, r, cancel)
    assert cache.explained(r.key, r).map.shape == (1, 96, 96)
    assert len(computed) == 2


def test_two_sessions_at_once_make_it_once(computed: list[str]) -> None:
    r = request(picture(3))
    threads = [threading.Thread(target=cache.explained, args=(r.key, r)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(computed) == 1


def test_digest_tells_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert len(digest("a")) == 64


def test_large_inputs_are_not_sampled() -> None:
    """Streamlit's own hash gave the same key for 52 of 60 such pairs."""
    large = torch.zeros(3, 512, 512)
    keys = {tensor_digest(large)}
    for i in range(20):
        changed = large.clone()
        changed.view(-1)[37_013 * i] = 1.0
        keys.add(tensor_digest(changed))
    assert len(keys) == 21


def test_work_is_one_at_a_time_and_the_turn_is_given_back() -> None:
    with cache.one_at_a_time("test build") as first, cache.one_at_a_time("test build") as second:
        assert (first, second) == (True, False)
    with cache.one_at_a_time("test build") as third:
        assert third
