"""A part of a page that polls, run as Streamlit runs it."""

from __future__ import annotations

import time

from streamlit.testing.v1 import AppTest

from dashboard.shared.jobs import Job
from dashboard.shared.live import describe_state


def script() -> None:
    import time

    import streamlit as st

    from dashboard.shared.live import draw_live
    from dashboard.shared.tasks import Task

    seconds = st.session_state["seconds"]  # a job has no session

    def work(_: object) -> str:
        time.sleep(seconds)
        return "the result"

    def collect(asking):
        st.session_state["collected"] = st.session_state.get("collected", 0) + 1
        first = asking(Task(f"{st.session_state['name']}, first", work))
        if first is None or first.state != "done":
            return first
        return asking(Task(f"{st.session_state['name']}, second", work))

    draw_live(collect, lambda job: st.text(job.result or job.state))


def open_app(name: str, seconds: float) -> AppTest:
    app = AppTest.from_function(script)
    app.session_state["name"], app.session_state["seconds"] = name, seconds
    return app.run()


def test_a_page_is_collected_once_a_run() -> None:
    """Catches keys of large tensors that are computed three times for every run of a page."""
    app = open_app("quick", 0.0)
    assert [text.value for text in app.text] == ["the result"]  # of the second task, which needs the first
    assert app.session_state["collected"] == 1
    assert app.run().session_state["collected"] == 2


def test_work_says_what_it_does_before_its_first_report() -> None:
    """Catches a bar that says "Starting" for the seconds in which images, network or study are opened."""

    def page() -> None:
        import time

        from dashboard.shared.live import draw_when_ready
        from dashboard.shared.tasks import Task

        work = Task("says what it does", lambda _: time.sleep(1.5), what="Opening the images of birds")
        draw_when_ready(work, lambda _: None, meanwhile=lambda: __import__("streamlit").text("the image"))

    app = AppTest.from_function(page).run()
    assert app.get("progress")[0].proto.text == "Opening the images of birds"
    assert [text.value for text in app.text] == ["the image"]
    deadline = time.monotonic() + 20
    while app.button and time.monotonic() < deadline:
        time.sleep(0.1)
        app.run()
    assert not app.text


def test_slow_work_is_drawn_when_it_is_done() -> None:
    """Catches a page that waits for its work, and one that never shows it."""
    app = open_app("slow", 1.5)
    assert [text.value for text in app.text] == ["running"]
    assert [button.label for button in app.button] == ["Stop"]
    deadline = time.monotonic() + 20
    while app.button and time.monotonic() < deadline:
        time.sleep(0.1)
        app.run()
    assert [text.value for text in app.text] == ["the result"]


def stopping() -> None:
    import threading

    import streamlit as st

    from dashboard.shared.jobs import pool
    from dashboard.shared.keys import STOPPED_KEY
    from dashboard.shared.live import draw_live
    from dashboard.shared.tasks import Task

    stopped = threading.Event()

    def work(progress: object) -> None:
        while not stopped.wait(0.01):
            progress(0, 1, "working")  # ends here when it is cancelled

    def collect(asking):
        job = asking(Task("stopped while it is collected", work))
        if job is not None:
            st.session_state[STOPPED_KEY] = [job.key]
            pool().cancel(job.key)
            job.wait(300)
        return job

    draw_live(collect, lambda job: st.text("waits" if job is None else job.state))


def test_work_that_is_stopped_while_it_is_collected_waits_for_a_click() -> None:
    """Catches a page that shows such work as waiting for ever: it polls no longer and offers no button."""
    app = AppTest.from_function(stopping).run()
    assert [text.value for text in app.text] == ["waits"]
    assert [button.label for button in app.button] == ["Compute"]


def test_stopped_work_says_how_much_was_done() -> None:
    """Catches the same words as for work that never began."""
    job = Job("stopped", lambda _: None, 0.0)
    assert describe_state(None) == "Not computed yet."
    job.state, job.progress = "cancelled", (3, 12, "searching")
    assert describe_state(job) == "Stopped at 3 of 12."


def resuming() -> None:
    import threading

    import streamlit as st

    from dashboard.shared.jobs import pool
    from dashboard.shared.live import await_result

    slow_to_end = threading.Event()
    begun = st.session_state.setdefault("begun", [])

    def work(progress: object) -> str:
        begun.append(True)
        while len(begun) == 1:
            slow_to_end.wait(0.2)
            progress(0, 1, "working")
        return "the result"

    job = pool().ask("resumed while it ends", work)
    if not begun:
        while not begun:
            slow_to_end.wait(0.01)
        pool().cancel(job.key)  # what "Stop" does; the click on "Resume" is this run of the page
    st.text(await_result(job))


def test_work_that_is_resumed_while_it_is_still_ending_begins_once_more() -> None:
    """Catches a page that shows nothing at all, because the job it waited for ended as cancelled."""
    app = AppTest.from_function(resuming).run()
    assert [text.value for text in app.text] == ["the result"]


def grid_script() -> None:
    import streamlit as st

    from dashboard.shared.live import draw_live
    from dashboard.shared.tasks import Task

    costs = {"eight": 8.0, "costly": 2700.0, "twenty": 20.0, "nine": 9.0}
    tasks = [Task(f"grid, {name}", lambda _, name=name: name, lambda cost=cost: cost) for name, cost in costs.items()]

    def collect(asking):
        asking.hold_together(tasks)
        return [job.result for job in map(asking, tasks) if job is not None]

    draw_live(collect, lambda results: st.text(", ".join(results)))


def test_what_is_cheap_waits_for_nothing_costly() -> None:
    """Catches one costly cell that holds up all others, and cells that start by themselves as others end."""
    app = AppTest.from_function(grid_script).run()
    for _ in range(2):
        assert [text.value for text in app.text] == ["eight, nine"]  # with twenty, it would be more than 30 s
        assert [button.label for button in app.button] == ["Compute the 2 missing (about 45 min)"]
        app.run()
