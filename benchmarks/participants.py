"""Number of simultaneous participants that a server supports: ``python -m benchmarks.participants``.

Simulated participants through real HTTP against a real server. A fifth of them leave in the middle; their places are
held for a minute, then given to others, until every place is done. Each number of them comes twice: alone, and while a
browser on the same machine has the page Monitor open, which it draws again every five seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import random
import sqlite3
import ssl
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import async_playwright

from benchmarks.limits import Busy
from benchmarks.machine import arguments, hand_over
from study.service import Service
from tests.conftest import CHROMIUM, write_bundle
from tests.server import Server, serving

STUDY, CONDITIONS = "load", ("none", "saliency", "examples", "both")
DROP = 0.2
TEMPORARY = (429, 500, 502, 503, 504)
TLS = ssl.create_default_context()  # made once: it takes longer than a participation


@dataclass
class Log:
    """Results of the clients' requests."""

    latencies_ms: list[float] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    arrived: int = 0
    left: int = 0
    finished: int = 0


@dataclass(frozen=True)
class Load:
    """Arrival times, and the thinking time before a response, s."""

    people: int
    trials: int
    ramp_s: float
    think_s: tuple[float, float]
    longest_s: float
    watched: bool = True
    """Whether a browser has the page Monitor open, on the same machine."""


def measure(
    numbers: list[int], trials: int, ramp_s: float, think_s: tuple[float, float], longest_s: float
) -> dict[str, Any]:
    """Measure one fresh server for each number of participants."""
    runs = []
    # A thousand browsers do not stop together; a full collection of this process's objects takes 400 ms.
    gc.collect()
    gc.freeze()
    gc.disable()
    for people, watched in itertools.product(numbers, (False, True)):
        runs.append(asyncio.run(run(Load(people, trials, ramp_s, think_s, longest_s, watched))))
        print(runs[-1], file=sys.stderr)
        print(f"{people} people, p99 {runs[-1]['p99_ms']} ms. Limit: {runs[-1]['limit']}.", file=sys.stderr)
    given = {"trials": trials, "ramp_s": ramp_s, "think_s": think_s, "longest_s": longest_s, "dropout": DROP}
    return {**given, "runs": runs}


async def run(load: Load) -> dict[str, Any]:
    """Run all participants until every place is done, or the time is over."""
    with tempfile.TemporaryDirectory() as folder, serve_study(Path(folder), load) as server:
        log, began, before = Log(), time.monotonic(), server.written_bytes()
        async with watch(server) if load.watched else contextlib.nullcontext():
            in_time, spent = await _run_load(server, load, log)
        wall = time.monotonic() - began
        spent["written_kb_per_response"] = round(
            (server.written_bytes() - before) / 1024 / (len(log.acknowledged) or 1), 1
        )
        server.stop()
        told = {
            "people": load.people,
            "monitor": load.watched,
            "wall_s": round(wall, 1),
            "in_time": in_time,
            **_summarise(log, wall),
            **spent,
        }
        return {**told, **check_database(server.home, log)}


async def _run_load(server: Server, load: Load, log: Log) -> tuple[bool, dict[str, Any]]:
    """Tell whether all participants finished in time, and how busy the machine was during the first wave."""
    began, cpu, own, threads = time.monotonic(), server.cpu_s(), time.process_time(), server.threads_cpu_s()
    busy: list[Busy] = []

    def wave_is_over() -> None:
        wall = time.monotonic() - began
        now = server.threads_cpu_s()
        used = {thread: (now[thread] - threads.get(thread, 0.0)) / wall for thread in now}
        writer = max((share for thread, share in used.items() if thread), default=0.0)
        shares = (server.cpu_s() - cpu) / wall, (time.process_time() - own) / wall, used.get(0, 0.0), writer
        busy.append(Busy(*shares))

    in_time = True
    try:
        await asyncio.wait_for(_arrivals(server.url, load, log, wave_is_over), load.longest_s)
    except TimeoutError:
        in_time = False
    if not busy:
        wave_is_over()
    used = (server.cpu_s() - cpu) / (sum(count for code, count in log.codes.items() if code.isdigit()) or 1)
    return in_time, {
        "server_cores": round(busy[0].server, 2),
        "loop_cores": round(busy[0].loop, 2),
        "writer_cores": round(busy[0].writer, 2),
        "client_cores": round(busy[0].clients, 2),
        "server_ms_per_request": round(1000 * used, 2),
        "limit": busy[0].limit(_at(log, 0.99)),
    }


def check_database(home: Path, log: Log) -> dict[str, Any]:
    """Check the database: lost and doubled responses, places by condition, the chain."""
    with sqlite3.connect(home / "foretell.db") as db:
        stored = [row[0] for row in db.execute("SELECT attempt_id FROM response")]
        per_trial = db.execute("SELECT count(*) FROM (SELECT 1 FROM response GROUP BY session_id, trial_index)")
        places = db.execute("SELECT condition, state, count(*) FROM allocation_slot WHERE mode = 'live' GROUP BY 1, 2")
        conflicts = db.execute("SELECT count(*) FROM response_conflict").fetchone()[0]
        return {
            "responses_stored": len(stored),
            "lost": len(set(log.acknowledged) - set(stored)),
            "doubled": len(stored) - per_trial.fetchone()[0],
            "conflicts": conflicts,
            "places": {f"{condition} {state}": count for condition, state, count in places},
            "faults": len(_faults(home)),
        }


def _faults(home: Path) -> list[str]:
    with Service(home) as service:
        return service.researcher.verify()


@contextlib.contextmanager
def serve_study(home: Path, load: Load) -> Iterator[Server]:
    config = {"pacing": {"hold_minutes": 1}}
    with Service(home) as service:
        options: dict[str, Any] = {"name": STUDY, "trials": load.trials, "practice": 0, "side": 16, "config": config}
        service.researcher.open_study(
            write_bundle(home / "bundle", **options), per_condition=load.people // len(CONDITIONS)
        )
    with serving(home) as running:
        yield running


@contextlib.asynccontextmanager
async def watch(server: Server) -> AsyncIterator[None]:
    """Open a browser with the page Monitor."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = await browser.new_context()
        login = [{"name": name, "value": value, "url": server.url} for name, value in server.login().items()]
        await context.add_cookies(login)  # type: ignore[arg-type]
        page = await context.new_page()
        await page.goto(f"{server.url}/monitor", timeout=120_000)
        await page.get_by_text("Problems and storage").wait_for(timeout=120_000)
        yield
        await browser.close()


def _browser(url: str) -> httpx.AsyncClient:
    """Make the client of one participant.

    One client for all would be slower than the server: httpx looks through its whole pool of connections for every
    request, so that a thousand participants cost a thousand times a thousand looks.
    """
    return httpx.AsyncClient(base_url=f"{url}/api/v1", timeout=60, verify=TLS, trust_env=False)


async def _arrivals(url: str, load: Load, log: Log, wave_is_over: Callable[[], None]) -> None:
    """Start the first wave over the ramp; then replace each participant who left until their place is done."""
    rng = random.Random(load.people)
    first = [_attend(url, load, log, random.Random(k), load.ramp_s * rng.random(), DROP) for k in range(load.people)]
    await asyncio.gather(*first)
    wave_is_over()
    while log.finished < load.people:
        missing = load.people - log.finished
        await asyncio.gather(*(_attend(url, load, log, random.Random(), 2 * rng.random(), 0) for _ in range(missing)))


async def _attend(url: str, load: Load, log: Log, rng: random.Random, wait_s: float, drop: float) -> None:
    await asyncio.sleep(wait_s)
    async with _browser(url) as http:
        await _participate(http, load, log, rng, drop)


async def _participate(http: httpx.AsyncClient, load: Load, log: Log, rng: random.Random, drop: float) -> None:
    # One address starts 40 participations a minute: these come from everywhere, as a proxy on this machine says.
    address = {"X-Forwarded-For": f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}"}
    reply = await _call(http, log, "POST", "begin", address, {"study": STUDY})
    if reply.status_code == 410:  # every place is held: the page says so, and the participant comes again
        return await asyncio.sleep(5)
    log.arrived += 1
    who = {"X-Session-Token": reply.json()["token"], "X-Tab": uuid.uuid4().hex}
    await _call(http, log, "POST", "consent", who, {"agreed": True})
    await _call(http, log, "POST", "ready", who, {"stage": "instructions"})
    state = (await _call(http, log, "POST", "ready", who, {"stage": "example"})).json()
    leaves = rng.randrange(load.trials) if rng.random() < drop else None
    while state["stage"] == "main":
        index = state["trial"]["index"]
        if index == leaves:
            log.left += 1
            return None
        await asyncio.sleep(rng.uniform(*load.think_s))
        state = await _answer(http, log, who, index, rng)
    if state["stage"] == "debrief":
        await _call(http, log, "POST", "finish", who, {})
        log.finished += 1
    return None


async def _answer(http: httpx.AsyncClient, log: Log, who: dict[str, str], index: int, rng: random.Random) -> Any:
    side = rng.choice(("left", "right"))
    sent = {"trial_index": index, "attempt_id": str(uuid.uuid4()), "side": side, "input": "key", "rt_ms": 900.0}
    began = time.perf_counter()
    reply = await _call(http, log, "POST", "responses", who, sent)
    log.latencies_ms.append(1000 * (time.perf_counter() - began))
    log.acknowledged.append(str(sent["attempt_id"]))
    return reply.json()["state"]


async def _call(
    http: httpx.AsyncClient, log: Log, method: str, path: str, headers: dict[str, str], body: Any
) -> httpx.Response:
    """Repeat a request until it succeeds, as the page does, and count the failures."""
    while True:
        try:
            reply = await http.request(method, path, headers=headers, json=body)
        except httpx.TransportError as error:
            log.codes[type(error).__name__] += 1
        else:
            log.codes[str(reply.status_code)] += 1
            if reply.status_code not in TEMPORARY:
                return reply
        await asyncio.sleep(0.5)


def _summarise(log: Log, wall: float) -> dict[str, Any]:
    shares = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "slowest_ms": 1.0}
    at = {name: round(_at(log, share)) for name, share in shares.items()}
    counts = {"arrived": log.arrived, "left": log.left, "finished": log.finished, "responses": len(log.acknowledged)}
    return {**at, **counts, "responses_per_s": round(len(log.latencies_ms) / wall, 1), "codes": dict(log.codes)}


def _at(log: Log, share: float) -> float:
    """Compute a quantile of the acknowledgement times, ms."""
    times = sorted(log.latencies_ms) or [float("nan")]
    return times[min(int(share * len(times)), len(times) - 1)]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    parser = arguments("participants")
    parser.add_argument("--people", type=_numbers, default="200,500,1000", help="numbers of participants, one run each")
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--ramp", type=float, default=20.0, help="seconds over which they arrive")
    parser.add_argument("--think", type=float, nargs=2, default=(2.0, 4.0), help="seconds before a response")
    parser.add_argument("--longest", type=float, default=160.0, help="seconds before a run is stopped and reported")
    given = parser.parse_args()
    think = tuple(given.think)
    hand_over("participants", given, lambda: measure(given.people, given.trials, given.ramp, think, given.longest))
