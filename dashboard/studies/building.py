"""Check and build a study from its page: progress, stop, resume."""

from __future__ import annotations

import hashlib

import pandas as pd
import streamlit as st

from core.types import Progress
from dashboard.shared import service
from dashboard.shared.jobs import Job, pool
from dashboard.shared.keys import build_key, digest
from dashboard.shared.live import watch
from dashboard.shared.messages import escape_markdown, format_message
from dashboard.shared.tasks import Task
from dashboard.studies.workspace_studies import Study
from study.analysis.words.headings import format_headings
from study.building.categories import count_of, largest_study
from study.building.check import StudyCheck, check
from study.building.workers import build_apart
from study.bundle import Bundle
from study.collection.access.permissions import Permission
from study.plan.config import StudyConfig
from study.plan.texts import warn_of_placeholders
from study.workspace.parallel import workers_here
from study.workspace.workspace import home

WATCHED = "watched_build"
"""Key of the session: the build whose progress it was shown last."""


def take_done() -> None:
    """Take the build that the session watched off the list once it is done.

    Called before the page looks for bundles: a busy browser can miss a run of the page that ends in another run, and
    the progress bar would stay for good.
    """
    job = pool().find(st.session_state.get(WATCHED, ""))
    if job is None or job.has_ended:
        st.session_state.pop(WATCHED, None)
    if job is not None and job.state == "done":
        pool().forget(job.key)


def show(study: Study, *, has_check: bool = True) -> None:
    """Show whether the study is built as its file is now, with buttons to build and, with ``has_check``, check it."""
    place = st.container()
    tasks = {} if study.file is None or _explain_lack(study) else _list_tasks(study, has_check=has_check)
    jobs = {name: job for name, task in tasks.items() if (job := pool().find(task.key)) is not None}
    running = next((job for job in jobs.values() if not job.has_ended), None)
    if running is None:
        with place:
            _describe_build(study, has_check=has_check)
    if not tasks:
        return
    if "build" in jobs and jobs["build"].has_ended:
        _report_build(jobs["build"])
    if running is not None:
        if running is jobs.get("build"):
            st.session_state[WATCHED] = running.key
        watch(running)
    else:
        _buttons(study, tasks)
    if "check" in jobs and jobs["check"].has_ended:
        _report_check(study, jobs["check"])


def _list_tasks(study: Study, *, has_check: bool) -> dict[str, Task]:
    return {"build": _build_task(study), **({"check": _check_task(study)} if has_check else {})}


def _describe_build(study: Study, *, has_check: bool) -> None:
    """Say that a study is not built, or not as its file is now."""
    if study.bundle is None:
        what = "**Check** first reports what the images allow, what is missing and how long the build takes."
        st.info(
            "Not built yet. Building computes every image and heatmap once and freezes them."
            + (f" {what}" if has_check else "")
        )
    elif study.has_changed:
        st.warning("The study file has changed since this study was built. Build it again to use the changes.")


def _buttons(study: Study, tasks: dict[str, Task]) -> None:
    urgent = study.bundle is None or study.has_changed
    with st.container(horizontal=True):
        st.button(
            "Build" if study.bundle is None else "Build again",
            type="primary" if urgent else "secondary",
            key=f"build_{study.name}",
            help="Finished parts are not computed again.",
            on_click=_start,
            args=(study, tasks["build"], True),
        )
        if "check" in tasks:
            st.button(
                "Check",
                key=f"check_{study.name}",
                help="Reports what the images allow, what is missing and how long the build takes. Builds nothing.",
                on_click=_start,
                args=(study, tasks["check"]),
            )
    if "check" in tasks and study.bundle is not None:
        st.caption(
            "**Build again** freezes the study file as it is now; parts that have not changed are not computed "
            "again. **Check** builds nothing: it reports what the images allow and how long the build takes."
        )


def _report_build(job: Job) -> None:
    if job.state == "done":  # in another session, or since the page looked for bundles
        pool().forget(job.key)
        st.rerun()
    if job.state == "failed":
        st.error(format_message(job.error.split("\n")[0]))
        if "\n" in job.error:
            st.code(job.error.partition("\n")[2], language=None)
    elif job.state == "cancelled":
        st.info("The build was stopped. Finished parts are kept; the next build continues from there.")


def _report_check(study: Study, job: Job) -> None:
    if job.state == "failed":
        st.error(format_message(job.error))
    if job.state != "done":
        return
    checked: StudyCheck = job.result
    show_obstacles(checked)
    if study.settings is None:
        return
    count = len(list_warnings(checked, study.settings))
    show_doubts(checked)
    title = "What the images allow" if checked.obstacles else describe_state(checked)
    with st.expander(f"{title}: {count_of(count, 'warning')}" if count else title):
        for line in list_warnings(checked, study.settings):
            st.warning(format_message(line))
        show_images(checked)


def show_obstacles(checked: StudyCheck) -> None:
    """Draw what prevents the build, if anything."""
    if checked.obstacles:
        st.error(format_message("\n\n".join(checked.obstacles)))


def show_doubts(checked: StudyCheck) -> None:
    """Draw why the study could not show what it is made for although it can be built, if so."""
    for doubt in checked.doubts:
        st.warning(format_message(doubt), icon=":material/warning:")


def describe_state(checked: StudyCheck, what: str = "study") -> str:
    """Return, with a mark, that ``what`` can be built, or what has to be done before it can show anything."""
    if checked.doubts:
        return ":orange[:material/warning:] Divide the images first"
    return f":green[:material/check_circle:] The {what} can be built"


def list_warnings(checked: StudyCheck, config: StudyConfig) -> list[str]:
    """List the warnings of a check, and those on the texts, which a check does not depend on."""
    return [*checked.warnings, *warn_of_placeholders(config.texts)]


def show_images(checked: StudyCheck) -> None:
    """Draw what a check found in the images of a study, and what they allow; the categories used come first."""
    for line in (*checked.sets, *checked.notes):
        st.caption(escape_markdown(line))
    if checked.supply is not None:
        st.markdown("**Usable images per category, as the network classifies them**")
        table = pd.DataFrame(checked.supply.table())
        if checked.chosen:
            table.insert(0, "used", table["category"].isin(checked.chosen))
            table = table.sort_values("used", ascending=False, kind="stable")
        if not table["missing"].any():
            table = table.drop(columns="missing")
        st.dataframe(table, hide_index=True, column_config=dict(format_headings(table)))
        st.caption(largest_study(checked.supply))


def _build_task(study: Study) -> Task:
    """Return the one build of a study that runs at a time, whoever starts it."""
    assert study.file is not None
    file, folder = study.file, home()

    def work(progress: Progress) -> Bundle:
        return build_apart(file, folder, progress)

    return Task(build_key(folder, study.name), work)


def _check_task(study: Study) -> Task:
    """Return the check of the study file as it is now."""
    assert study.file is not None
    file, folder = study.file, home()

    def work(progress: Progress) -> StudyCheck:
        return check(file, folder, progress, workers=workers_here())

    content = hashlib.sha256(file.read_bytes()).hexdigest()
    return Task(digest("check", str(folder), study.name, content), work)


def _explain_lack(study: Study) -> bool:
    """Explain why the account cannot build the study, if so."""
    refusal = service.get_acting_researcher().explain_refusal(Permission.DESIGN, study.name)
    if refusal is not None:
        st.caption(escape_markdown(refusal))
    return refusal is not None


def _start(study: Study, task: Task, is_build: bool = False) -> None:
    researcher = service.get_acting_researcher()
    if study.file is None or not researcher.may(Permission.DESIGN, study.name):
        return  # no longer; the page then says why
    if is_build:
        researcher.start_build(study.file)
    pool().forget(task.key)
    task.ask()
