"""A coordinator whose parties come and go ends with the model of a run without faults, or says by name why it cannot go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.accounting.ledger import Ledger
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.errors import Failed, Mistake
from securetm.federation.budget.prices import PlannedSpending
from securetm.federation.coordinator import training
from securetm.federation.coordinator.coordinator import Coordinator, Trained
from securetm.federation.coordinator.serving import AnswersTooLate, NoProgress, Serving, TooFewCame, served_folder
from securetm.federation.coordinator.status import EventLog, RunStatus
from securetm.federation.folder import LOG, RESULT, RunFolder, begin, check_all
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.simulation.simulation import InProcess, execute
from securetm.federation.soundness import agreed_apart
from securetm.federation.store import CoordinatorStore, DamagedStore
from securetm.federation.transcript import Watch
from securetm.plans.agreement import agree
from securetm.plans.schema import CoordinatorChoice, Plan
from securetm.runs.finished import FinishedRun
from securetm.sessions.identities import public_identity
from securetm.stages import Unwatched

from ..quick_part import quick
from .coming_and_going import ComingAndGoing
from .conftest import FIVE, small_plan, texts
from .private import private_plan

COMMAND = "securetm serve plan.toml"


@pytest.fixture(autouse=True)
def checkpoints_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_KEEPS", 0.0)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return small_plan(profile="masked", model__batch=25)


@pytest.fixture(scope="module")
def model(five: Mapping[str, Corpus], plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The model of a run without faults."""
    folder = begin(tmp_path_factory.mktemp("run") / "unbroken", plan, five)
    execute(folder, Unwatched(), comparison=False)
    return folder.model.read_bytes()


class Site:
    """A federation of five whose coordinator is started again and again."""

    def __init__(self, folder: Path, plan: Plan, corpora: Mapping[str, Corpus]) -> None:
        self.simulated = begin(folder / "parties", plan, corpora)
        self.path, self.plan = folder / "served", plan
        self.parties = ComingAndGoing(self.simulated)

    def serving(self, **choice: Any) -> Serving:
        """The coordinator as a new process would make it."""
        agreement = agreed_apart(self.plan, self.simulated.members)
        folder = served_folder(self.path, agreement, "clinics", self.simulated.keys)
        settings = CoordinatorChoice(**{"patience": 30.0, **choice})
        spending = PlannedSpending(agreement, len(folder.members))
        status = RunStatus("served", "prodlda", "masked", folder.members, EventLog(self.path / LOG), spending.after)
        self.parties.status = status
        self.parties.come(*self.parties.here)
        return Serving(folder, self.parties, status, settings, COMMAND, late=self.parties.late)

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = map(json.loads, (self.path / LOG).read_text().splitlines())
        return [line for line in lines if line["event"] == name]

    @property
    def model(self) -> bytes:
        return (self.path / "release" / "model.safetensors").read_bytes()


@pytest.fixture
def site(plan: Plan, five: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, plan, five)
    yield made
    made.parties.close()


def at(wave: int, happens: Callable[[], None]) -> Callable[[int], None]:
    """Lets something happen before one wave."""
    return lambda number: happens() if number == wave else None


class Killed(BaseException):
    """As a process that is killed: no `except` of the product sees it."""


def dies(*_: object) -> None:
    raise Killed


def test_it_ends_with_the_model_of_a_simulation(site: Site, model: bytes) -> None:
    site.parties.come(*FIVE)
    result = site.serving().run()
    assert site.model == model
    assert (result["rounds"], result["stopped"], result["alone"]) == (12, "rounds", None)
    assert set(result) >= {"run", "directory", "topics", "quality", "useful", "spent", "seconds", "bytes_up", "bytes_down"}
    assert json.loads((site.path / RESULT).read_text()) == result
    assert FinishedRun.open(site.path).topics(3)
    assert not (site.path / "parties").exists()
    assert [event["round"] for event in site.events("round")] == list(range(1, 13))
    assert [event["round"] for event in site.events("kept")] == list(range(13))


@pytest.mark.parametrize("wave", [5, *(pytest.param(wave, marks=pytest.mark.slow) for wave in (2, 9, 13, 30))])
@pytest.mark.parametrize("killed", quick([False, True], True))
def test_a_party_that_vanishes_and_comes_back_changes_nothing(site: Site, model: bytes, wave: int, killed: bool) -> None:
    back = threading.Timer(0.2, site.parties.come, FIVE)

    def vanishes() -> None:
        site.parties.go("south", killed=killed)
        back.start()

    site.parties.come(*FIVE)
    site.parties.before_wave = at(wave, vanishes)
    site.serving().run()
    back.join()
    assert site.model == model


def test_a_party_that_declines_stands_in_the_terminal_at_once_and_in_the_last_words(site: Site) -> None:
    site.parties.come("north", "west", "east", "centre")
    serving, told = site.serving(patience=0.6), list[str]()
    serving.status.tell = told.append
    for _ in range(2):
        serving.status.refused("south", "PolicyAgainstProfile")
    assert told == ["south: its own policy does not allow the profile"]
    with pytest.raises(TooFewCame, match="south: its own policy does not allow the profile"):
        serving.run()


def test_a_killed_coordinator_goes_on_from_the_last_round(site: Site, model: bytes) -> None:
    site.parties.come(*FIVE)
    for wave in (3, 15, 12):
        site.parties.before_wave = at(site.parties.waves + wave, dies)
        with pytest.raises(Killed):
            site.serving().run()
    site.parties.before_wave = lambda _: None
    assert site.serving().run()["rounds"] == 12
    assert site.model == model


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(site: Site, model: bytes) -> None:
    def pressed() -> None:
        raise KeyboardInterrupt

    site.parties.come(*FIVE)
    site.parties.before_wave = at(25, pressed)
    with pytest.raises(Failed, match="nothing is lost") as stop:
        site.serving().run()
    assert COMMAND in stop.value.advice()
    assert stop.value.exit_code == 3
    assert site.events("stopped")[0]["round"] == stop.value.facts()["rounds"] > 0
    site.parties.before_wave = lambda _: None
    site.serving().run()
    assert site.model == model


def test_a_party_that_breaks_every_session_is_not_followed_for_ever(site: Site) -> None:
    site.parties.come(*FIVE)
    forgets = lambda _: (site.parties.go("south", killed=True), site.parties.come("south"))  # noqa: E731
    site.parties.before_wave = lambda number: forgets(number) if number > 5 else None
    with pytest.raises(NoProgress, match="refused or did not answer in time: south") as stuck:
        site.serving(patience=0.5).run()
    assert stuck.value.sessions >= 1


@pytest.mark.slow
def test_a_run_under_way_does_not_wait_for_a_party_that_it_can_do_without(site: Site) -> None:
    def dies() -> None:
        site.parties.go("south", killed=True)
        raise Killed

    site.parties.come(*FIVE)
    site.parties.before_wave = at(24, dies)
    with pytest.raises(Killed):
        site.serving(survivors=4).run()
    site.parties.before_wave = lambda _: site.parties.come("south")
    assert site.serving(survivors=4, patience=1e6, grace=0.1).run()["rounds"] >= 11
    assert [event["seconds"] for event in site.events("waiting")] == [0.1]


@pytest.mark.slow
def test_with_fewer_survivors_it_goes_on_without_a_party_and_takes_it_in_again(site: Site) -> None:
    site.parties.come(*FIVE)

    def steps(number: int) -> None:
        if number == 20:
            site.parties.go("south")
        if number == 26:
            site.parties.come("south")

    site.parties.before_wave = steps
    result = site.serving(survivors=4).run()
    assert result["rounds"] == 12
    survivors = [event["survivors"] for event in site.events("round")]
    assert survivors[0] == 5
    assert 4 in survivors
    assert survivors[-1] == 5


@pytest.mark.slow
def test_what_is_asked_once_waits_for_a_party_that_was_in_it(site: Site) -> None:
    """The coordinator was killed over the words in common of all parties: nobody finds them without one of these."""

    def vanishes() -> None:
        site.parties.go("south")
        back.start()

    back = threading.Timer(0.2, site.parties.come, ["south"])
    site.parties.come(*FIVE)
    site.parties.before_wave = at(7, dies)  # the list of survivors is on disk, and nobody has heard of it
    with pytest.raises(Killed):
        site.serving(survivors=4).run()
    site.parties.before_wave = at(site.parties.waves + 6, vanishes)
    assert site.serving(survivors=4).run()["rounds"] == 12
    back.join()
    assert site.events("session_ended")[0]["reason"] == "SurvivorsMissing"
    assert site.events("session_ended")[0]["missing"] == "south"


def test_another_plan_in_the_same_folder_is_refused(site: Site, plan: Plan) -> None:
    site.serving()
    site.plan = replace(plan, seed=5)
    with pytest.raises(Mistake, match="another plan"):
        site.serving()


def test_a_start_that_was_killed_before_it_was_whole_begins_again(site: Site) -> None:
    folder: RunFolder = site.serving().folder
    (folder.path / "kept.json").unlink()
    assert site.serving().folder.members == folder.members


def test_a_run_that_has_ended_hands_its_model_to_who_comes_late(site: Site) -> None:
    site.parties.come(*FIVE)
    site.parties.before_wave = at(24, lambda: site.parties.go("south", killed=True))
    first = site.serving(survivors=4).run()
    site.parties.go("north", "west", killed=True)
    site.parties.come("south")
    again = site.serving(survivors=4, patience=0.5).run()
    assert again == first
    assert [event["party"] for event in site.events("handed_out")] == ["south"]
    (kept,) = site.simulated.party("south").rglob("model.safetensors")
    assert kept.read_bytes() == site.model
    assert site.serving(survivors=4, patience=1e6).run() == first  # nobody is waited for any more
    check_all(site.serving(survivors=4).folder.path)  # of which a statement can be made
    for damaged in ('{"parties": 5}', '{"parties": [5]}', "{}", "[]", "{"):
        (site.serving().folder.coordinator / "handed_out.json").write_text(damaged, "utf-8")
        with pytest.raises(DamagedStore, match=r"handed_out\.json"):
            site.serving(survivors=4, patience=0.5).run()


@pytest.mark.slow
def test_killed_after_the_training_it_asks_nobody_again(site: Site, model: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    site.parties.come(*FIVE)
    with monkeypatch.context() as patch:
        patch.setattr("securetm.federation.coordinator.serving.served_result", dies)
        with pytest.raises(Killed):
            site.serving().run()
    site.parties.go(*FIVE, killed=True)
    assert site.serving(patience=1e6).run()["rounds"] == 12  # all have the model, so nobody is waited for
    assert site.model == model


@pytest.mark.slow
def test_a_party_that_sends_garbage_stops_nobody_where_the_run_goes_on_without(site: Site) -> None:
    site.parties.come(*FIVE)
    site.parties.garbled = "south"
    result = site.serving(survivors=4).run()
    assert result["rounds"] == 12
    assert {event["party"] for event in site.events("refused")} == {"south"}
    assert {event["refusal"] for event in site.events("refused")} == {"Malformed"}


def test_a_folder_of_another_federation_is_refused_and_a_newcomer_is_not(site: Site) -> None:
    folder = site.serving().folder
    with pytest.raises(Mistake, match="another federation"):
        served_folder(site.path, folder.agreement, "schools", folder.keys)
    keys = {"annex": bytes(32), **folder.keys}
    assert served_folder(site.path, folder.agreement, "clinics", keys).members == tuple(keys)


@pytest.mark.slow
def test_a_session_after_another_looks_back_at_the_same_weights(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    looks = {"training__stop": "weights", "training__every": 5}
    plan = small_plan(profile="open", **looks)  # every wave of rounds is one message
    changes = []
    for name, killed in (("unbroken", ()), ("broken", (9, 14))):
        site = Site(tmp_path / name, plan, five)
        site.parties.come(*FIVE)
        again = dict.fromkeys(killed, "south")

        def forgets(number: int, site: Site = site, again: Mapping[int, str] = again) -> None:
            if number in again:
                site.parties.go(again[number], killed=True)
                site.parties.come(again[number])

        site.parties.before_wave = forgets
        site.serving().run()
        assert len(site.events("session_ended")) == len(killed)
        store = CoordinatorStore(site.path / "coordinator")
        changes.append(store.rows("SELECT measure, value FROM losses ORDER BY serial"))
        store.close()
        site.parties.close()
    assert len(changes[0]) == 2
    assert changes[0] == changes[1]


def test_a_party_that_does_not_come_ends_it_by_name_and_it_goes_on_later(site: Site, model: bytes) -> None:
    site.parties.come("north", "west", "east", "centre")
    with pytest.raises(TooFewCame, match=r"south did not come within 1 seconds \(4 of 5") as few:
        site.serving(patience=0.6).run()
    assert COMMAND in few.value.advice()
    site.parties.come("south")
    site.serving().run()
    assert site.model == model


def test_an_interval_above_the_deadline_is_refused_by_name_and_a_longer_deadline_cures_it(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    site = Site(tmp_path, private_plan(tmp_path, "dp-distributed", training__rounds=2, privacy__unit="document"), five)
    site.parties.come(*FIVE)
    site.parties.slow = "south"
    with pytest.raises(AnswersTooLate, match="the answers of south came after the deadline of 60 seconds") as late:
        site.serving(deadline=60.0).run()
    assert "deadline = 128" in late.value.advice()
    assert COMMAND in late.value.advice()
    assert [event["missing"] for event in site.events("session_ended")] == ["south", "south"]
    site.parties.slow = ""
    assert site.serving(deadline=128.0).run()["rounds"] == 2
    site.parties.close()


@pytest.mark.slow
def test_a_run_waits_as_long_for_parties_that_it_needs_where_it_can_do_without_others(site: Site) -> None:
    """Two of five are away for longer than the grace of one: the run waits for its fourth party, and does not end."""
    site.parties.come(*FIVE)
    back = threading.Timer(0.5, site.parties.come, ["south"])

    def vanish() -> None:
        site.parties.go("south", "north")
        back.start()

    site.parties.before_wave = at(25, vanish)
    assert site.serving(survivors=4, deadline=0.01, grace=0.01).run()["rounds"] >= 11
    back.join()
    waits = [(event["missing"], event["seconds"] > 1) for event in site.events("waiting")]
    assert ("north, south", True) in waits


# ---- members change between two sessions -----------------------------------------------------------------------------------


class Stopped(Exception):
    """The coordinator's end, after a round that it kept."""


@dataclass
class Ending(Watch):
    """Ends the coordinator after so many training rounds."""

    after: int = 10**9
    done: list[int] = field(default_factory=list)

    def trained(self, done: int, total: int) -> None:
        self.done.append(done)
        if done == self.after:
            raise Stopped()


def session(folder: Path, plan: Plan, corpora: Mapping[str, Corpus], members: Sequence[str], watch: Ending) -> Trained:
    """One start of all roles over the stores that they had before."""
    agreement, stores = agree(plan), {name: PartyStore(folder / name, synced=False) for name in members}
    keys = {name: public_identity(store, OperatingSystem()) for name, store in stores.items()}
    parties = {
        name: Party(name, tuple(members), agreement, corpora[name], store, OperatingSystem(), keys, ledger)
        for name, store in stores.items()
        for ledger in [Ledger.open(folder / f"{name}.ledger", name, None)]
    }
    store = CoordinatorStore(folder / "coordinator")
    reached = InProcess(parties)
    try:
        return Coordinator(tuple(members), agreement, reached, store, OperatingSystem(), watch, keys).run()
    finally:
        reached.close()
        store.close()


@pytest.mark.parametrize(
    ("profile", "model"),
    quick([("open", {}), ("masked", {"name": "lda", "n_topics": 3})], ("masked", {"name": "lda", "n_topics": 3})),
)
def test_a_run_goes_on_with_one_party_more_and_then_with_one_less(
    profile: str, model: dict[str, object], five: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_KEEPS", 0.0)
    plan = small_plan(profile=profile, training__rounds=9, **({"model": model} if model else {"model__batch": 40}))
    corpora = {**five, "newcomer": Corpus.from_strings(texts(FIVE["west"], 60, 3), name="newcomer")}
    with pytest.raises(Stopped):
        session(tmp_path, plan, corpora, tuple(five), Ending(3))
    before = CoordinatorStore(tmp_path / "coordinator")
    words = (tmp_path / "coordinator" / "vocabulary.txt").read_bytes()
    before.close()
    with pytest.raises(Stopped):
        session(tmp_path, plan, corpora, tuple(corpora), Ending(6))
    watch = Ending()
    trained = session(tmp_path, plan, corpora, tuple(name for name in corpora if name != "south"), watch)
    assert trained.rounds == 9
    assert watch.done[0] in (6, 7)  # the round of the last checkpoint, or the next
    assert (tmp_path / "coordinator" / "vocabulary.txt").read_bytes() == words
    assert all(np.isfinite(array).all() for array in trained.state.values())
    store = CoordinatorStore(tmp_path / "coordinator")
    answered = [
        set(who.split()) for (who,) in store.rows("SELECT survivors FROM rounds WHERE question = 'train' ORDER BY serial")
    ]
    store.close()
    assert [("newcomer" in who, "south" in who) for who in answered] == [(False, True)] * 3 + [(True, True)] * 3 + [
        (True, False)
    ] * 3


def test_without_a_budget_late_answers_end_nothing_before_patience_does(site: Site) -> None:
    site.parties.come(*FIVE)
    site.parties.slow = "south"
    with pytest.raises(NoProgress, match="south"):
        site.serving(patience=0.0).run()
