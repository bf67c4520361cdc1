"""Choose the images to explain: from the scenes, a folder of the workspace, or an uploaded file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.explore import coming, picker, uploads
from dashboard.explore.find.filters import show_no_match
from dashboard.explore.find.orders import NETWORKS_DISAGREE
from dashboard.explore.find.view import Search
from dashboard.explore.images import ChosenImage
from dashboard.shared import cache, links, matching
from dashboard.shared.keys import IMAGE_KEY
from dashboard.shared.live import await_result
from dashboard.shared.messages import escape_markdown, show_errors
from dashboard.shared.uploads import read_upload

DRAWN = {"Adversarial": "adversarial", "Standard": "standard", "Bars": "bars"}
"""Names of the drawn image sets on the page."""
TRAINED_ON = {"adversarial": "drawn scenes of 16 categories", "bars": "drawn bars, horizontal or vertical"}
OWN = "Upload"
MOST_NAMED = 3
"""Networks that are offered for a set whose classes the chosen one does not know."""
OPENING = ("from study.network.sources import open_set", "from study.plan.config import ImageSource")


def find_chosen_set() -> str | None:
    """Return the name of the image set chosen on the page; None for uploaded images, which stay with their owner."""
    chosen = st.session_state["source"]
    return None if chosen == OWN else DRAWN.get(chosen, chosen)


def list_sources(model: str) -> list[str]:
    """List the image sources for a classifier: scenes and bars only for those built in, each its own."""
    drawn = cache.find_drawn_sets(model)
    return [*(name for name, of in DRAWN.items() if of in drawn), *cache.list_image_sets(), OWN]


def choose(
    model: str, results: DeltaGenerator, most: int = 1, other: str | None = None, near: DeltaGenerator | None = None
) -> list[ChosenImage]:
    """Return the chosen images, up to ``most``; none until a file is given, or while a set is being classified.

    Progress and warnings are drawn in ``results``. ``other`` is the network to compare with; buttons for the neighbours
    of a single image are drawn ``near`` it.
    """
    source = _choose_source(list_sources(model))
    if source == OWN:
        opened = _own(most)
        drawn = cache.find_drawn_sets(model)
        if opened and drawn:
            results.warning(f"{_describe_training(drawn)} Choose another network for photographs.")
        return opened
    name = DRAWN.get(source, source)
    with results:
        gallery = await_result(cache.start_gallery_job(model, name))
        if gallery is None:
            coming.show_places()
            return []
        warn_unknown_classes(gallery, model, name)
    search = make_search(gallery, model, name, other)
    picked = picker.pick(search, most, near)
    if not picked:
        with results:
            show_no_match()
    return [open_from_set(gallery, name, i) for i in picked]


def _choose_source(sources: Sequence[str]) -> str:
    """Draw the choice of an image set, which begins with that of a linked image, and the link to add one."""
    links.check("source", sources, "image set")
    linked, first = st.query_params.get(IMAGE_KEY, "").rpartition("/")[0], sources[0]
    if linked and linked not in [DRAWN.get(name, name) for name in sources]:
        links.note(IMAGE_KEY, f"The link names an image of the set “{linked}”, which is not here. {links.INSTEAD}")
    elif linked and "source" not in st.query_params and "source" not in st.session_state:
        # A link that names an image names its set too.
        first = next(name for name in sources if DRAWN.get(name, name) == linked)
    source: str = st.segmented_control(
        "Images",
        sources,
        default=first,
        required=True,
        key="source",
        bind="query-params",
        wrap=True,
        help="Adversarial: objects in unusual contexts. Standard: objects mostly in the contexts of training. "
        f"Your own sets: {cache.find_sets_folder()}/SET/CATEGORY/IMAGE.",
    )
    links.show_link("Add images", "library")
    return source


def warn_unknown_classes(gallery: cache.Gallery, model: str, name: str) -> None:
    """Say that a network knows no class of a set, and lead to the networks that do."""
    if gallery.has_known_label.any():
        return
    count, drawn, shown = len(gallery.images.categories), cache.find_drawn_sets(model), cache.name_model(model)
    said = (
        f"{shown} has none of the {count:,} classes of {name}. Its predictions are shown without true classes."
        if count > 1
        else f"{shown} has no class {gallery.images.categories[0]}. Its predictions are shown without the true class."
    )
    st.warning(escape_markdown(f"{said} {_describe_training(drawn)}" if drawn else said))
    known = matching.rank_networks(gallery.images)
    if known is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for other, matched in list(known.items())[:MOST_NAMED]:
            st.button(
                f"Use {escape_markdown(cache.name_model(other))}, which knows {matched:,} of {count:,}",
                key=f"use_{other}",
                on_click=st.session_state.update,
                args=({"classifier": other},),
            )
        links.show_link("Add a network that knows these classes", "library", place="unknown", part="Networks")


def _describe_training(drawn: tuple[str, ...]) -> str:
    """Say what a network of drawn images makes of others."""
    return (
        f"This network was trained only on {TRAINED_ON[drawn[0]]}. It assigns any photograph to one of them, with a "
        "confidence that means nothing."
    )


def make_search(gallery: cache.Gallery, model: str, name: str, other: str | None = None) -> Search:
    """Make the search for images of a set; where two networks are compared, the order begins with their differences."""
    if other is None:
        return Search(gallery, model, name, tuple(list_others(model)))
    return Search(gallery, model, name, (other,), NETWORKS_DISAGREE, "pair.order")


def list_others(model: str) -> list[str]:
    """List the networks that a network can be compared with: not those built in for other drawn images."""
    own = cache.find_drawn_sets(model)
    others = {name: cache.find_drawn_sets(name) for name in cache.list_models() if name != model}
    return [name for name, drawn in others.items() if not own or not drawn or drawn == own]


def open_from_set(gallery: cache.Gallery, name: str, i: int) -> ChosenImage:
    """Open an image of a set."""
    images = gallery.images
    source, base = cache.find_image_source(name)
    settings = {"set": source.set, **source.settings}
    return ChosenImage(
        images.open(i),
        images.ids[i],
        f"open_set(ImageSource.model_validate({settings!r}), Path({str(base)!r})).open({i})",
        OPENING,
        images.categories[images.labels[i]],
        images.contexts[i] if images.contexts else None,
        images.mask(i) if images.mask else None,
    )


def _own(most: int) -> list[ChosenImage]:
    """Return the uploaded images that can be read, at most so many; the others are named with the reason."""
    files = st.file_uploader(
        "PNG, JPEG or WebP files",
        type=uploads.ENDINGS,
        key="explore_file",
        accept_multiple_files=True,
        max_upload_size=uploads.MOST_BYTES // 2**20,
    )
    opened: list[ChosenImage] = []
    for file in files:
        with show_errors():
            opened.append(open_upload(read_upload(file), file.name))
    if len(opened) <= most:
        return opened
    if most > 1:
        st.caption(f"The last {most} of {len(opened)} images are shown.")
        return opened[-most:]
    chosen = st.selectbox("Image", range(len(opened)), len(opened) - 1, lambda i: opened[i].name, key="explore_upload")
    return [opened[chosen]]


def open_upload(content: bytes, name: str) -> ChosenImage:
    """Open an image from the bytes of a file; its true class is unknown."""
    sha256 = hashlib.sha256(content).hexdigest()
    code = f"open_image(Path({name!r}))  # the file with SHA-256 {sha256}"
    return ChosenImage(
        uploads.decode_image(content, name), name, code, ("from inquiry.files.image_files import open_image",)
    )
