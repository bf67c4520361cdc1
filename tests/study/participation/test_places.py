"""Who gets in and where: balanced places, returning people, versions of a study; on both real databases."""

import itertools
import shutil
import threading
from collections import Counter
from pathlib import Path

import pytest

from core.errors import ForetellError
from study.bundle import MANIFEST, Bundle, canonical
from study.participation.entrance import MINUTE_NS
from study.participation.refusals import Refusal
from study.plan.procedure import Pacing
from study.service import Service
from tests.study.participants import CONDITIONS, MakeBundle, answer, everything, query, take_part, to_place, to_trials

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def study(service: Service, bundle: MakeBundle) -> str:
    return service.researcher.open_study(bundle(), per_condition=4)


def test_sixty_arrivals_at_once_are_balanced(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(), per_condition=15)
    barrier = threading.Barrier(60)
    failed: list[BaseException] = []

    def arrive() -> None:
        try:
            barrier.wait(300)
            to_place(service, service.participant.begin(study))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=arrive) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert failed == []
    counts = Counter(query(service, "SELECT condition, side_flip FROM session"))
    by_condition = Counter(condition for condition, _ in counts.elements())
    assert by_condition == dict.fromkeys(CONDITIONS, 15)
    assert all(abs(counts[c, 0] - counts[c, 1]) == 1 for c in CONDITIONS)  # 15 is odd: 7 and 8
    assert query(service, "SELECT count(DISTINCT session_id) FROM allocation_slot") == [(60,)]


def test_recruitment_stopped_early_is_balanced_too(service: Service, bundle: MakeBundle) -> None:
    """Catches slots handed out in another order than that of their blocks."""
    study = service.researcher.open_study(bundle(), per_condition=15)
    for _ in range(8):
        to_place(service, service.participant.begin(study))
    taken = Counter(c for (c,) in query(service, "SELECT condition FROM session"))
    assert taken == dict.fromkeys(CONDITIONS, 2)
    assert set(query(service, "SELECT condition, side_flip FROM session")) == set(itertools.product(CONDITIONS, (0, 1)))


def test_a_full_study_says_so(service: Service, bundle: MakeBundle) -> None:
    study = service.researcher.open_study(bundle(), per_condition=1)
    early = [service.participant.begin(study) for _ in range(5)]
    stages = [to_place(service, token)["stage"] for token in early]
    assert stages == ["example"] * 4 + ["full"]
    with pytest.raises(Refusal, match="All places") as refused:
        service.participant.begin(study)
    assert refused.value.code == 410
    assert service.researcher.open_study(service.researcher.studies()[0].folder, per_condition=2) == study
    assert to_place(service, service.participant.begin(study))["stage"] == "example"


def test_an_abandoned_place_is_given_away_and_its_holder_may_still_finish(tmp_path: Path, bundle: MakeBundle) -> None:
    now = [10**18]
    with Service(tmp_path, clock=lambda: now[0]) as service:
        study = service.researcher.open_study(bundle(conditions=("none",), trials=2, practice=0), per_condition=1)
        slow = service.participant.begin(study)
        to_trials(service, slow)
        with pytest.raises(Refusal, match="All places"):
            service.participant.begin(study)
        now[0] += Pacing().hold_minutes * MINUTE_NS + 1
        service.researcher.confirm_time()
        quick = service.participant.begin(study)
        to_trials(service, quick)
        for token in (slow, quick):
            for index in range(2):
                assert service.participant.record(token, answer(index)).code == 201
            assert service.participant.finish(token)["code"]
        assert query(service, "SELECT state FROM allocation_slot") == [("done",)]


def test_the_same_person_resumes_and_the_old_page_ends(service: Service, study: str) -> None:
    first = service.participant.begin(study, participant="5f3a")
    to_trials(service, first)
    service.participant.record(first, answer(0))
    second = service.participant.begin(study, participant="5f3a")
    assert service.participant.state(second)["trial"]["index"] == 1
    with pytest.raises(Refusal) as refused:
        service.participant.state(first)
    assert refused.value.code == 401
    assert query(service, "SELECT count(*), max(n_resumes) FROM session") == [(1, 1)]
    assert query(service, "SELECT count(*) FROM allocation_slot WHERE state = 'held'") == [(1,)]
    service.participant.begin(study, participant="other")
    assert query(service, "SELECT count(*) FROM session") == [(2,)]


def test_no_id_and_no_token_is_in_the_database(service: Service, study: str) -> None:
    token = service.participant.begin(study, participant="5f3a9c0d1e2b3c4d5e6f7a8b")
    take_part(service, token)
    dump = everything(service)
    assert "5f3a9c0d1e2b3c4d5e6f7a8b" not in dump
    assert token not in dump
    assert (service.workspace.home / "participants.key").stat().st_mode & 0o077 == 0


def test_a_session_survives_a_restart(tmp_path: Path, bundle: MakeBundle) -> None:
    with Service(tmp_path) as service:
        study = service.researcher.open_study(bundle(), per_condition=1)
        token = service.participant.begin(study, participant="x")
        to_trials(service, token)
        service.participant.record(token, answer(0))
        before = service.participant.state(token)
    with Service(tmp_path) as service:
        assert service.participant.state(token) == before
        assert service.participant.state(service.participant.begin(study, participant="x")) == before


def test_previews_and_simulations_leave_the_allocation_alone(service: Service, study: str) -> None:
    for condition in CONDITIONS:
        take_part(service, service.participant.begin(study, mode="preview", condition=condition))
    token = service.participant.begin(study, mode="sim")
    state = to_trials(service, token)
    assert service.participant.record(token, answer(0)).code == 422  # a simulated person has no keyboard
    assert service.participant.record(token, answer(state["trial"]["index"], input="sim")).code == 201
    slots = service.researcher.studies()[0].slots
    assert slots["live"] == {condition: {"open": 4} for condition in CONDITIONS}
    assert sum(n for states in slots["sim"].values() for n in states.values()) == 4
    assert service.researcher.responses(study).empty
    assert set(service.researcher.responses(study, ("preview",))["mode"]) == {"preview"}
    with pytest.raises(ForetellError, match="no condition 'salency'"):
        service.participant.begin(study, mode="preview", condition="salency")


def test_sides_follow_the_slot(service: Service, study: str) -> None:
    """Option a stands left, except with side_flip; over all slots both occur, fixed within a person."""
    seen = set()
    options = {trial.id: trial.options for trial in Bundle(service.researcher.studies()[0].folder).manifest.trials}
    for _ in range(16):
        token = service.participant.begin(study)
        screens = take_part(service, token)
        [(session_id, flip)] = query(
            service, "SELECT session_id, side_flip FROM session ORDER BY started_at DESC LIMIT 1"
        )
        items = dict(query(service, f"SELECT trial_index, item_id FROM trial_plan WHERE session_id = '{session_id}'"))
        for screen in screens[3:]:
            a, b = options[items[screen["index"]]]
            assert (screen["left"]["name"], screen["right"]["name"]) == ((b, a) if flip else (a, b))
        seen.add(flip)
    assert seen == {0, 1}


def test_orders_differ_and_never_pile_up(service: Service, study: str) -> None:
    manifest = Bundle(service.researcher.studies()[0].folder).manifest
    chosen = {trial.id: trial.ai_choice for trial in manifest.trials}
    for _ in range(8):
        to_place(service, service.participant.begin(study))
    plans = query(
        service, "SELECT session_id, item_id, left_is FROM trial_plan WHERE phase='main' ORDER BY 1, trial_index"
    )
    orders = set()
    for _, rows in itertools.groupby(plans, key=lambda row: row[0]):
        listed = list(rows)
        orders.add(tuple(item for _, item, _ in listed))
        left = [chosen[item] == left_is for _, item, left_is in listed]
        assert max(len(list(run)) for _, run in itertools.groupby(left)) <= 3
    assert len(orders) == 8


def test_a_new_version_is_for_new_people_only(service: Service, bundle: MakeBundle) -> None:
    old, new = bundle(), bundle(seed=8)
    study = service.researcher.open_study(old, per_condition=1)
    token = service.participant.begin(study, participant="early")
    screen = to_trials(service, token)["trial"]
    service.researcher.open_study(new, per_condition=1)
    assert [status.state for status in service.researcher.studies()] == ["superseded", "open"]
    assert service.participant.state(token)["trial"] == screen
    assert service.participant.state(service.participant.begin(study, participant="early"))["trial"] == screen
    take_part(service, service.participant.begin(study))
    assert set(service.researcher.responses(study)["study_hash"]) == {Bundle(new).study_hash}
    assert service.participant.read_asset(study, screen["target"])
    service.researcher.open_study(old, per_condition=1)
    assert [status.state for status in service.researcher.studies()] == ["open", "superseded"]


def test_a_study_opened_elsewhere_is_seen_at_once(service: Service, bundle: MakeBundle) -> None:
    """The command line opens a study while the server runs: two services, one file, no restart."""
    with Service(service.workspace.home) as other:
        study = other.researcher.open_study(bundle(), per_condition=2)
        tokens = [door.participant.begin(study) for door in (service, other)]
        take_part(service, tokens[1])
        take_part(other, tokens[0])
    assert len(service.researcher.responses(study)) == 24
    assert service.researcher.verify() == []


def test_a_closed_study_lets_people_finish_but_nobody_in(service: Service, study: str) -> None:
    token = service.participant.begin(study)
    service.researcher.close_study(study)
    with pytest.raises(Refusal, match="has ended"):
        service.participant.begin(study)
    take_part(service, token)
    with pytest.raises(Refusal, match="not open"):
        service.researcher.close_study(study)


def test_opening_the_same_study_again_changes_nothing(service: Service, study: str) -> None:
    before = service.researcher.studies()
    service.researcher.open_study(before[0].folder, per_condition=4)
    assert service.researcher.studies() == before


def test_a_tampered_bundle_is_refused(service: Service, bundle: MakeBundle) -> None:
    folder = bundle()
    victim = next((folder / "assets").iterdir())
    victim.write_bytes(victim.read_bytes() + b"x")
    with pytest.raises(ForetellError, match="was changed since the study was frozen"):
        service.researcher.open_study(folder, per_condition=1)
    shutil.rmtree(folder)
    with pytest.raises(ForetellError, match="No study at"):
        service.researcher.open_study(folder, per_condition=1)


def test_only_the_studys_own_images_are_served(service: Service, study: str) -> None:
    for name in ("../manifest", "0" * 64, "../../foretell.db"):
        with pytest.raises(ForetellError, match="no such image"):
            service.participant.read_asset(study, name)


@pytest.mark.parametrize("name", ["../../../etc/passwd", "../participants", "/etc/hostname"])
def test_a_bundle_that_names_files_outside_itself_is_refused(service: Service, bundle: MakeBundle, name: str) -> None:
    """A manifest whose own hash is right, and whose picture is a path."""
    folder = bundle()
    manifest = Bundle(folder).manifest
    content = manifest.model_copy(update={"assets": {**manifest.assets, name: 10}})
    forged = content.model_copy(update={"study_hash": content.compute_hash()})
    (folder / MANIFEST).write_bytes(canonical(forged.model_dump(mode="json")))
    with pytest.raises(ForetellError):
        service.researcher.open_study(folder, per_condition=1)
    assert service.researcher.studies() == []


def test_a_paused_study_asks_newcomers_to_come_later(service: Service, study: str) -> None:
    """Who has begun goes on and who comes is told so, in the study's words; each act is kept, a vain one is not."""
    begun = service.participant.begin(study, participant="begun")
    service.researcher.pause_study(study)
    assert service.researcher.studies()[-1].state == "paused"
    with pytest.raises(Refusal, match="is paused") as refused:
        service.participant.begin(study, participant="new")
    assert refused.value.code == 410
    assert query(service, "SELECT count(*) FROM session") == [(1,)]
    assert to_trials(service, begun)["stage"] == "practice"
    assert service.participant.begin(study, mode="preview")
    service.researcher.resume_study(study)
    assert service.participant.begin(study, participant="new")
    service.researcher.close_study(study)
    with pytest.raises(Refusal, match="has ended"):
        service.participant.begin(study, participant="late")
    with pytest.raises(ForetellError, match="not open"):
        service.researcher.pause_study(study)
    assert query(service, "SELECT act FROM audit ORDER BY seq") == [
        ("opened",), ("paused",), ("resumed",), ("closed",)
    ]  # fmt: skip


def test_a_nearly_full_disk_lets_nobody_new_in(service: Service, study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = service.participant.begin(study, participant="begun")
    monkeypatch.setattr("study.workspace.disk.LEAST_FREE", 1 << 62)
    with pytest.raises(Refusal, match="is paused"):
        service.participant.begin(study, participant="new")
    assert to_trials(service, begun)["stage"] == "practice"


def test_a_shuffled_study_has_its_places_in_one_random_order(service: Service, bundle: MakeBundle) -> None:
    """Catches the setting of a frozen study that its places do not follow, and a study enlarged over its quota."""
    study = bundle(config={"allocation": {"per_condition": 10, "order": "shuffled"}})
    service.researcher.open_study(study, per_condition=10)
    blocks = [row[0] for row in query(service, "SELECT block FROM allocation_slot ORDER BY slot_id")]
    assert blocks != sorted(blocks)
    assert len(blocks) == 40
    service.researcher.open_study(study, per_condition=12)
    rows = query(service, "SELECT condition, count(*) FROM allocation_slot GROUP BY 1")
    assert [count for _, count in rows] == [12] * 4
