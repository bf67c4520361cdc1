"""Find the networks that know the classes of an image set."""

from __future__ import annotations

from dashboard.shared import cache
from dashboard.shared.live import await_result
from data.types import ImageSet
from study.network.sources import UNMATCHED, match_labels


def rank_networks(images: ImageSet) -> dict[str, int] | None:
    """Return how many classes of a set each network knows, the largest number first; without those that know none.

    None while the networks are being read, which is drawn as a progress bar. A network that cannot be loaded is left
    out: that is reported where it is chosen.
    """
    facts = await_result(cache.start_facts_job(cache.list_models_to_match()))
    if facts is None:
        return None
    known = {
        name: sum(k != UNMATCHED for k in match_labels(images, one.categories))
        for name, one in facts.items()
        if not isinstance(one, str)
    }
    return {name: count for name, count in sorted(known.items(), key=lambda item: -item[1]) if count}
