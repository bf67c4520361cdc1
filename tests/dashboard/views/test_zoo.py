"""What the pages say of networks with a known difference."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

import data
from dashboard.library.networks import SENTENCES
from dashboard.shared.cards import name_card
from data.scenes.zoo.store import PREFIX, read_card
from tests.dashboard.conftest import made

NAMES = [name for name in data.CLASSIFIERS if name.startswith(PREFIX)]


def test_models_and_images_shows_the_card_of_each_network(workspace) -> None:
    """Catches a list of networks that does not say how they differ, and a card for networks that have none."""

    def page() -> None:
        from dashboard.library import models

        models.show()

    app = made(AppTest.from_function(page).run())
    told = "\n".join(one.value for one in app.markdown)
    for name in NAMES:
        assert f"**{read_card(name)['title']}** `{name}`  \n:small[:gray[16 classes · 96 px · " in told
    assert "0.3 million parameters · built in" in told
    for name in set(data.CLASSIFIERS) - set(NAMES):
        assert SENTENCES[name] in told, name
    assert read_card("scenes:blind")["difference"] in told
    app.text_input("model_search").set_value("blind context").run()
    found = [one.value for one in app.markdown if ":small[" in one.value]
    assert [one.partition("  ")[0] for one in found] == ["**Blind to the context** `scenes:blind`"]


def test_explore_shows_the_cards_of_both_networks_that_it_compares(opened) -> None:
    """Catches a comparison that gives the card of only one network."""
    app: AppTest = opened(view="Compare models", method="Gradient", classifier="scenes:coarse", other="scenes:blind")
    labels = [expander.label for expander in app.expander]
    for name in ("scenes:coarse", "scenes:blind"):
        assert name_card(read_card(name)) in labels
