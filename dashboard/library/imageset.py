"""One image set: its images page by page, its counts, its labels as classes of a network, and what to do with it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.network.classifier import Classifier
from dashboard.library import jobs
from dashboard.library.jobs import ReadSet
from dashboard.shared import cache, links, matching, service
from dashboard.shared.imagegrid import GridCell, show_grid
from dashboard.shared.keys import HANDED_IMAGES, HANDED_MODEL, IMAGE_KEY, NEW_STUDY, digest
from dashboard.shared.live import await_result
from dashboard.shared.messages import escape_markdown, show_errors
from data.types import ImageSet
from study.building.categories import count_of
from study.network.imagereport import ImageSetReport, match_categories
from study.workspace.imagesets import count_images, list_left_out

KEEP, LEAVE_OUT = "Keep as it is", "Leave out"
ALL = "All classes"
CLASS_KEY, OPENED_KEY = "class", "library_opened"
"""In the session: the class whose images are shown, and the opened image."""
MOST_NAMED = 20
PER_PAGE = 30
THUMBNAIL_PX, MOST_PX = 192, 720
TABLE_PX, MOST_ROWS = 320, 9
"""Height of the table of classes where there are that many, px."""


def show(name: str) -> None:
    """Draw an image set of the workspace."""
    read: ReadSet | None = await_result(jobs.read_task(name).ask())
    if read is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        actions = st.container(horizontal=True, width="content")
        _offer_removal(name)
    model = None
    left, right = st.columns([1, 1.9], gap="large")
    with left, show_errors():
        _show_report(name, read.report)
        model = _match(name, read.images)
        if model is not None:
            with actions:
                _show_actions(name, model)
    with right, show_errors():
        _browse(name, read.images, model)


def _show_actions(name: str, model: str) -> None:
    """Draw what can be done with a set, for which a network of its classes has been found."""
    links.show_link("Explain these images", "explore", source=name, classifier=model)
    handed = {"study": NEW_STUDY, HANDED_MODEL: model, HANDED_IMAGES: name}
    links.show_link("Design a study from these images", "design", **handed)


def _offer_removal(name: str) -> None:
    if _explain_lack(name):
        return
    with st.popover("Remove", icon=":material/delete:"):
        number = sum(count_images(cache.find_sets_folder() / name).values())
        st.markdown(f"Remove the set **{escape_markdown(name)}** and its {number:,} images from the workspace?")
        if st.button("Remove the set", type="primary", key=f"library_remove_{name}"):
            service.get_acting_researcher().remove_image_set(name)
            st.rerun()


def _explain_lack(name: str) -> bool:
    """Say why the account may not change the set, if so."""
    refusal = service.get_acting_researcher().explain_library_refusal("image set", name)
    if refusal is not None:
        st.caption(escape_markdown(refusal))
    return refusal is not None


def _show_report(name: str, report: ImageSetReport) -> None:
    """Say what a set holds; a click on a class of the table shows its images."""
    st.header(f"{sum(report.counts.values()):,} images in {len(report.counts):,} classes", anchor=False)
    _choose_class(name, report)
    if report.skipped:
        st.warning(f"Files that cannot be read and are not used: {len(report.skipped):,}.")
        _list([f"{skipped.id}: {skipped.reason}" for skipped in report.skipped], "Unreadable files")
    if report.duplicates is None:
        st.caption("Near-duplicates were not searched for: there are too many images.")
    elif report.duplicates:
        st.warning(
            f"Near-duplicates of other images: {len(report.duplicates):,}. A study does not show one as an example of "
            "the other."
        )
        _list([f"{later} repeats {earlier}" for later, earlier in report.duplicates], "Near-duplicates")
    else:
        st.caption("No near-duplicates.")


def _choose_class(name: str, report: ImageSetReport) -> None:
    """Draw the number of images of each class; a click on one shows its images."""
    classes = list(report.counts)
    key = f"library_classes_{name}"

    def choose_class() -> None:
        rows = st.session_state[key].selection.rows
        st.session_state[CLASS_KEY] = classes[rows[0]] if rows else ALL

    st.dataframe(
        pd.DataFrame({"Class": classes, "Images": report.counts.values()}),
        hide_index=True,
        height="auto" if len(classes) < MOST_ROWS else TABLE_PX,
        key=key,
        on_select=choose_class,
        selection_mode="single-row",
    )


def _list(lines: list[str], label: str) -> None:
    with st.expander(label):
        st.code("\n".join(lines[:MOST_NAMED]), language=None)
        if len(lines) > MOST_NAMED:
            st.caption(f"and {len(lines) - MOST_NAMED:,} more")


def _match(name: str, images: ImageSet) -> str | None:
    """Show which folders are classes of a network, with a form for the others; return the network.

    None while the networks are still being read.
    """
    st.header("Labels and classes", anchor=False)
    known = matching.rank_networks(images)
    if known is None:
        return None
    models = cache.list_models()
    nearest = next(iter(known), cache.BUILT_IN)
    # A key of the set's own: that of another set may be a network that knows none of these classes.
    model: str = st.selectbox("Network", models, models.index(nearest), cache.name_model, key=f"library_model_{name}")
    classifier = cache.load_classifier(model)
    matches = match_categories(images, classifier)
    unmatched = [category for category, label in matches.items() if label is None]
    matched = len(matches) - len(unmatched)
    verb = "matches" if matched == 1 else "match"
    st.markdown(f"{matched:,} of {count_of(len(matches), 'folder')} {verb} a class of this network.")
    if not known:
        _offer_networks()
    if left_out := list_left_out(cache.find_sets_folder() / name):
        st.caption(escape_markdown(f"Left out: {', '.join(left_out)}. Their folders begin with a dot now."))
    if unmatched and images.wnids is not None:
        st.caption("The folders are named by WordNet ids, which networks of the 1,000 ImageNet classes know.")
    elif unmatched and service.get_acting_researcher().explain_library_refusal("image set", name) is None:
        _rename(name, model, classifier, unmatched)
    return model


def _offer_networks() -> None:
    st.caption("No network here knows these classes. Explore can explain the images all the same; a study needs one.")
    st.button(
        "Add a network that knows these classes",
        icon=":material/add:",
        on_click=st.session_state.update,
        args=({"part": "Networks"},),
    )


def _rename(name: str, model: str, classifier: Classifier, unmatched: list[str]) -> None:
    """Draw a form that renames folders to classes of the network, or leaves them out."""
    st.caption("Choose the class of the others. Images of a folder that is kept as it is have no known true class.")
    classes = sorted(classifier.names.short)
    with st.form(f"library_match_{digest(name, model)}"):
        chosen = {
            category: st.selectbox(
                escape_markdown(category), [KEEP, LEAVE_OUT, *classes], key=f"match_{name}_{category}"
            )
            for category in unmatched
        }
        if st.form_submit_button("Apply"):
            names = {old: None if new == LEAVE_OUT else new for old, new in chosen.items() if new != KEEP}
            service.get_acting_researcher().rename_categories(name, names)
            st.rerun()


def _browse(name: str, images: ImageSet, model: str | None) -> None:
    """Show the images of a class, or of all, page by page; a click shows one large."""
    classes = [ALL, *images.categories]
    links.check(CLASS_KEY, classes, "class")
    if st.session_state.get(CLASS_KEY, ALL) not in classes:  # of another set
        del st.session_state[CLASS_KEY]
    st.header("Images", anchor=False)
    chosen = st.selectbox("Class", classes, key=CLASS_KEY, bind="query-params", width=320)
    indices = [i for i, k in enumerate(images.labels) if chosen in (ALL, images.categories[k])]
    pages = -(-len(indices) // PER_PAGE)
    place = st.container()
    page = st.pagination(pages, max_visible_pages=5, key=f"library_page_{name}_{chosen}") if pages > 1 else 1

    def open_image(i: int) -> None:
        st.session_state[OPENED_KEY] = i

    def make_cell(i: int) -> GridCell:
        file = images.ids[i].rpartition("/")[2]
        return GridCell(i, images.ids[i], [images.categories[images.labels[i]], file])

    with place:
        cells = [make_cell(i) for i in indices[(page - 1) * PER_PAGE : page * PER_PAGE]]
        show_grid("library_grid", images, cells, open_image, pixels=THUMBNAIL_PX, width="8.5rem")
    opened = st.session_state.pop(OPENED_KEY, None)
    if opened is not None and opened < len(images):
        _show_image(name, images, opened, model)


@st.dialog("Image", width="medium")
def _show_image(name: str, images: ImageSet, i: int, model: str | None) -> None:
    """Show one image large, with a link that explains it."""
    image = images.open(i)
    width, height = image.size
    image.thumbnail((MOST_PX, MOST_PX))
    st.markdown(escape_markdown(f"{images.ids[i]}: {images.categories[images.labels[i]]}, {width} × {height} px"))
    st.image(image, alt=images.ids[i])
    if model is not None:
        query = {"source": name, "classifier": model, IMAGE_KEY: f"{name}/{i}"}
        links.show_link("Explain this image", "explore", **query)
