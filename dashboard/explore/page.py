"""Explore: the predictions of a classifier, and which parts of an image they depend on.

Views of whole sets are imported when they are opened: the first heatmap does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.concepts.prototypes import has_prototypes
from core.names import upper_first
from core.network.classifier import Classifier
from dashboard.explore import notes, parameters, picker, source
from dashboard.explore.drawer import place_controls
from dashboard.explore.find.filters import set_filter
from dashboard.explore.heatmaps import counterfactual, grid, intervention, prototypes, region, single
from dashboard.explore.images import ClassifiedImage
from dashboard.explore.methods import list_methods
from dashboard.explore.study_link import show_study_link
from dashboard.explore.uncertainty import view as uncertainty
from dashboard.shared import cache, links
from dashboard.shared.cards import show_card
from dashboard.shared.keys import IMAGE_KEY, IMAGES_KEY
from dashboard.shared.live import await_result
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.shared.sections import choose_section
from inquiry.debugging.disagreement import match_classes

ONE, GRID, PAIR, ALL, DEBUGGING, UNITS, LAYERS = VIEWS = (
    "Single image",
    "Grid",
    "Compare models",
    "Gallery",
    "Debugging",
    "Classes and units",
    "Layers",
)
ABOUT = {
    ONE: "Choose an image to see the AI's prediction, the evidence for it, and how reliable its heatmap is.",
    GRID: "Heatmaps of several methods for several images or classes, side by side.",
    PAIR: "Two networks on one image: their predictions, their heatmaps, and where these differ.",
    ALL: "All images of a set with their predictions: filter and order them; a click explains an image.",
    DEBUGGING: "Where the network errs on a set of images, and where the labels may be wrong.",
    UNITS: "What activates a class or a unit: the images that drive it most, and images synthesised for it.",
    LAYERS: "What the layers represent, measured over a set of images.",
}
COLUMNS = ("Images", "Classes")
QUERIES = {
    "Region": "region",
    "Scene": intervention.FACTOR_KEY,
    "Counterfactual": "counterfactual",
    "Prototypes": "prototypes",
    "Uncertainty": "noise",
}
"""The questions about one image, each with the part of the link that asks it."""


def page() -> None:
    """Draw the page."""
    st.title("Explore", anchor=False)
    about = st.container(key="explore_about")
    unknown = st.container()
    with st.container(horizontal=True, vertical_alignment="center"):
        view = choose_section("View", VIEWS, "view")
        saved = st.container(width="content")
    about.caption(ABOUT[view])
    try:
        _view(view)
    finally:
        with unknown:
            links.show()
        with saved, show_errors():
            notes.show_saved_views()  # last: what the view has put into the link is saved with it


def _view(view: str) -> None:
    """Draw the chosen view."""
    if view == DEBUGGING:
        with show_errors():
            _show_debugging()
        return
    left, results = _split(is_wide=view in (GRID, ALL))
    controls = place_controls(left)
    with results, show_errors(), controls:  # errors are drawn in the results: a phone folds the controls away
        if view == ALL:
            _show_gallery(controls, results)
        elif view == UNITS:
            _show_units(results)
        elif view == LAYERS:
            _show_layers(results)
        else:
            _show_images(view, results)


def _show_images(view: str, results: DeltaGenerator) -> None:
    """Choose networks, methods and images, and draw the chosen view of them."""
    model = _classifier()
    by_class = view == GRID and _columns() == "Classes"
    several = view == GRID and not by_class
    other = _other(model, results) if view == PAIR else []
    if other is None:
        return
    models = [model, *other]
    network = cache.load_classifier(model)
    methods = _choose_methods(network, view)
    steps = results.container(horizontal=True, vertical_alignment="center", key="explore_top")
    most = grid.MOST_COLUMNS if several else 1
    chosen = source.choose(model, results, most, next(iter(models[1:]), None), steps)
    settings, seed = parameters.choose_settings(methods, network)
    with results, show_errors():
        seen = [ClassifiedImage(name, one) for one in chosen for name in models]
        if view == ONE and seen:
            with steps:
                _offer_all_methods(seen[0])
        _show_view(view, seen, settings, seed, by_class=by_class)


def _split(*, is_wide: bool) -> list[DeltaGenerator]:
    """Return a column for controls and one for results, which a ``wide`` view gives the whole window."""
    with st.container(key="explore_wide" if is_wide else "explore_narrow"), st.container(key="explore_columns"):
        return st.columns([1, 3.5 if is_wide else 2.3], gap="medium" if is_wide else "large")


def _choose_methods(network: Classifier, view: str) -> list[str]:
    if view == GRID:
        return parameters.choose_methods(network)
    return [parameters.choose_method(network, offers_refinement=view == ONE)]


def _show_view(
    view: str, seen: list[ClassifiedImage], settings: grid.MethodSettings, seed: int, *, by_class: bool
) -> None:
    """Draw the chosen view of the chosen images."""
    if not seen:
        if st.session_state["source"] == source.OWN:
            st.info("Choose an image file. It stays on this machine.")
    elif view == ONE:
        ((method, given),) = settings.items()
        single.show(seen[0], method, given, seed)
        show_study_link(seen[0].model, method)
        _show_questions(seen[0], method, given, seed)
    elif view == PAIR and len(seen) == 1:
        st.info("No network to compare with is chosen.")
    elif view == PAIR:
        grid.show_by_classifier(seen, settings, seed)
    elif by_class:
        grid.show_by_class(seen[0], settings, seed)
    else:
        grid.show_by_image(seen, settings, seed)


def _show_questions(seen: ClassifiedImage, method: str, given: dict[str, Any], seed: int) -> None:
    """Draw what can be asked about one image, each question in a tab; a link opens the first that it asks."""
    images = source.find_chosen_set()
    questions: dict[str, Callable[[], None]] = {"Region": lambda: region.show(seen, seed)}
    if images is not None:
        with show_errors():
            notes.show_note(images, seen.chosen.name)
        questions["Scene"] = lambda: intervention.show(seen, images, method, given, seed)
        questions["Counterfactual"] = lambda: counterfactual.show(seen, images, seed)
    if has_prototypes(seen.classifier):
        questions["Prototypes"] = lambda: prototypes.show(seen)
    questions["Uncertainty"] = lambda: uncertainty.show(seen, seed)
    linked = next((name for name in questions if QUERIES[name] in st.query_params), "Region")
    first = st.session_state.setdefault("questions_first", linked)  # what is asked later is in the tab that is open
    tabs = st.tabs(list(questions), default=first if first in questions else None)
    for place, show in zip(tabs, questions.values(), strict=True):
        with place, show_errors():
            show()


def _offer_all_methods(seen: ClassifiedImage) -> None:
    """Draw the button that opens the grid with every method for this image; the grid asks before long work."""
    shown = st.query_params.get(IMAGE_KEY, "")
    if st.session_state["source"] == source.OWN or not shown:
        return

    def open_grid() -> None:
        st.session_state.update({"view": GRID, "columns": COLUMNS[0], IMAGES_KEY: shown})
        parameters.select_methods(list_methods(seen.classifier))

    st.button("All methods for this image", icon=":material/apps:", on_click=open_grid)


def _classifier() -> str:
    names = cache.list_models()
    name = links.selectbox(
        "Classifier", names, names[0], key="classifier", what="network", format_func=cache.name_model
    )
    show_card(name)
    links.show_link("Add a network", "library", part="Networks")
    return name


def _other(model: str, results: DeltaGenerator) -> list[str] | None:
    """Choose a network that shares classes with this one, the others named with the reason; None: not known yet."""
    with results:
        facts = await_result(cache.start_facts_job(cache.list_models()))
    if facts is None:
        return None
    refused = {name: why for name in source.list_others(model) if (why := _refuse_pair(facts, model, name))}
    offered = [name for name in source.list_others(model) if name not in refused]
    if st.query_params.get("other") == model:
        links.note("other", f"A network cannot be compared with itself. {links.INSTEAD}")
        del st.query_params["other"]
    chosen = [_choose_other(offered)] if offered else []
    for name in chosen:
        show_card(name)
    for why in dict.fromkeys(refused.values()):  # one sentence for all networks with the same reason
        names = [cache.name_model(name) for name in refused if refused[name] == why]
        st.caption(escape_markdown(f"Not offered: {', '.join(names)}. {upper_first(why)}"))
    return chosen


def _choose_other(offered: list[str]) -> str:
    return links.selectbox(
        "Compared with", offered, offered[0], key="other", what="network to compare with", format_func=cache.name_model
    )


def _refuse_pair(facts: dict[str, cache.NetworkFacts | str], model: str, other: str) -> str:
    """Return why two networks cannot be compared; empty if they can."""
    first, second = facts[model], facts[other]
    if isinstance(second, str):
        return second
    if isinstance(first, str):
        return first
    common = match_classes(first.categories, second.categories).names
    return "" if len(common) > 1 else f"fewer than two classes in common with {cache.name_model(model)}."


def _columns() -> str:
    return st.segmented_control("Columns", COLUMNS, default="Images", required=True, key="columns", bind="query-params")


def _show_debugging() -> None:
    """Draw where the network errs on a whole set; a click opens the heatmap of an image."""
    from dashboard.explore.debugging import jobs as work
    from dashboard.explore.debugging import view as debugging

    part = debugging.choose_part()
    controls = place_controls()
    with controls.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        model = _classifier()
        of = _choose_image_set(model)
    if of is None:
        return
    debugging_results = await_result(work.start_debugging_job(model, of))
    if debugging_results is not None:
        debugging.show(part, debugging_results, model, of, lambda i: _open_image(of, i), controls)


def _open_image(of: str, i: int) -> None:
    st.session_state[IMAGE_KEY] = f"{of}/{i}"
    st.session_state["view"] = ONE


def _show_gallery(controls: DeltaGenerator, results: DeltaGenerator) -> None:
    """Draw all images of a set, next to what filters them."""
    model = _classifier()
    of = _choose_image_set(model)
    if of is None:
        return

    def use_selection(use: str, selected: list[int]) -> None:
        st.session_state["view"] = use
        if use == PAIR:  # one image at a time: the others are the next ones
            set_filter(selected=True)
            st.session_state[IMAGE_KEY] = f"{of}/{selected[0]}"

    with results:
        gallery = await_result(cache.start_gallery_job(model, of))
        if gallery is not None:
            source.warn_unknown_classes(gallery, model, of)
            search = source.make_search(gallery, model, of)
            picker.show_gallery(search, lambda i: _open_image(of, i), use_selection, controls)


def _choose_image_set(model: str) -> str | None:
    """Choose a whole set; None if there is none for this classifier."""
    sets = [name for name in source.list_sources(model) if name != source.OWN]
    if not sets:
        st.info(f"There is no image set for {model}. Put folders of images into {cache.find_sets_folder()}.")
        return None
    links.check("source", sets, "image set")
    name = st.segmented_control(
        "Images", sets, default=sets[0], required=True, key="source", bind="query-params", wrap=True
    )
    return source.DRAWN.get(name, name)


def _show_units(results: DeltaGenerator) -> None:
    """Draw what activates a unit: synthesised images, and the images of a set that drive it most."""
    from dashboard.explore.units import view as units

    model = _classifier()
    classifier = cache.load_classifier(model)
    unit = units.choose_unit(classifier)
    settings = units.choose_settings(classifier, unit)
    of = _choose_image_set(model)
    with results, show_errors():
        gallery = None
        with show_errors():
            gallery = await_result(cache.start_gallery_job(model, of)) if of else None
        units.show(classifier, unit, settings, gallery.images if gallery else None)


def _show_layers(results: DeltaGenerator) -> None:
    """Draw what the layers represent, and how near the decision boundaries are."""
    from dashboard.explore.layers import choice
    from dashboard.explore.layers import view as layers

    model = _classifier()
    classifier = cache.load_classifier(model)
    question = choice.choose_question()
    asked, other = choice.choose_networks(question, model, classifier)
    of, count, seed = _choose_image_set(model), choice.choose_image_count(question), choice.choose_seed()
    gallery = None
    with results, show_errors():
        gallery = await_result(cache.start_gallery_job(model, of)) if of else None
    most_frequent = choice.name_most_frequent(gallery, classifier, seed, count)
    asked = replace(asked, parameters=choice.choose_parameters(question, classifier, most_frequent), seed=seed)
    with results, show_errors():
        if gallery is not None:
            layers.show(asked, classifier, cache.load_classifier(other), gallery.images, count)
