"""What was paid for is never drawn again, whatever is lost, killed or put back: under one entry one answer leaves, or none."""

from __future__ import annotations

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.accounting.ledger import Ledger
from securetm.aggregation.vectors import pack_vector
from securetm.contracts import Answer, State
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.budget.guard import PaidQuestion
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.coordinator.training import start
from securetm.federation.coordinator.words import new_words, tell_words, words_of_before
from securetm.federation.folder import RunFolder, begin
from securetm.federation.party import answering
from securetm.federation.party.answering import Answering
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.sessions.identities import IDENTITY

from ..quick_part import quick
from .private import private_plan

NORTH = "north"


@dataclass
class Watching(Watch):
    """Keeps every opened total."""

    totals: list[State] = field(default_factory=list)

    def opened(self, serial: int, answer: Answer) -> None:
        if answer.total is not None:
            self.totals.append({name: block.copy() for name, block in answer.total.items()})


@dataclass
class Site:
    """The processes of one federation, which can all be ended and begun again over what is on disk."""

    folder: RunFolder
    members: tuple[str, ...] = ()
    watching: Watching = field(default_factory=Watching)
    parties: dict[str, Party] = field(default_factory=dict)

    def begin(self, change: Callable[[Party], Party] = lambda party: party) -> Coordinator:
        """New processes: nothing is left in memory of those before."""
        self.end()
        self.parties = {name: make_party(self.folder, name) for name in self.folder.members}
        self.parties[NORTH] = change(self.parties[NORTH])
        self.store = CoordinatorStore(self.folder.coordinator)
        made = self.folder.members, self.folder.agreement, InProcess(self.parties), self.store, OperatingSystem()
        coordinator = Coordinator(*made, self.watching, self.folder.keys)
        coordinator.invite()
        tell_words(coordinator, words_of_before(coordinator) or new_words(coordinator))
        return coordinator

    def end(self) -> None:
        for party in self.parties.values():
            party.close()
        if self.parties:
            self.store.close()
        self.parties = {}

    def spent(self, name: str = NORTH) -> int:
        """How many answers that party paid for."""
        ledger = self.parties[name].ledger
        assert ledger is not None
        return sum(spend.count for spend in ledger.spends(self.parties[name].run))

    def state(self, coordinator: Coordinator) -> State:
        return start(coordinator, coordinator.questions.vocabulary)


@pytest.fixture(params=quick(("dp-distributed", "dp-local"), "dp-distributed"))
def site(request: pytest.FixtureRequest, five: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Site]:
    made = Site(begin(tmp_path / "run", private_plan(tmp_path, request.param, training__rounds=4), five))
    yield made
    made.end()


def test_the_next_number_is_another_value_and_is_paid_for(site: Site) -> None:
    coordinator = site.begin()
    for _ in range(2):
        coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    first, second = site.watching.totals
    assert not all(np.array_equal(first[name], second[name]) for name in first)
    assert site.spent() == 2


def test_a_damaged_kept_answer_is_not_computed_anew(site: Site) -> None:
    coordinator = site.begin()
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    path = site.folder.party(NORTH) / "kept-train.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = site.begin()
    with pytest.raises(PartyRefused, match="Failed"):
        again.ask(TRAIN, site.state(again), keep=True)
    assert site.spent() == 1


def test_an_earlier_number_gets_no_new_share_of_noise(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """The others may hold their old answers to it, and two sums that share these would differ in two shares of noise only."""
    site = Site(begin(tmp_path / "run", private_plan(tmp_path, "dp-distributed", training__rounds=4), five))
    coordinator = site.begin()
    for _ in range(2):
        coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    again = site.begin()
    with pytest.raises(PartyRefused, match="CannotTakePart"):
        again.ask(TRAIN, site.state(again), keep=True)
    assert site.spent() == 2
    site.end()


@pytest.mark.slow
def test_noise_that_the_coordinator_adds_is_in_no_kept_answer(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Asked twice, the coordinator releases the sum twice, each time behind other noise: that is paid for twice."""
    site = Site(begin(tmp_path / "run", private_plan(tmp_path, "dp-central", training__rounds=4), five))
    for _ in range(2):
        coordinator = site.begin()
        coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    assert site.spent() == 2
    site.end()


@pytest.mark.slow
def test_what_the_model_remembers_comes_with_the_kept_answer(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """The topics of the words are drawn anew in each answer; the next one must follow from those that were sent."""
    settings = {"model": {"name": "lda", "n_topics": 3}, "training__rounds": 4}
    site = Site(begin(tmp_path / "run", private_plan(tmp_path, "dp-distributed", **settings), five))
    coordinator = site.begin()
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)
    before = {name: array.copy() for name, array in site.parties[NORTH].store.memory.items()}
    again = site.begin()
    again.ask(TRAIN, site.state(again), keep=True)
    after = site.parties[NORTH].store.memory
    assert before
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert site.spent() == 1
    site.end()


@pytest.mark.slow
def test_the_question_before_the_training_is_kept_too(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    model = {"name": "lda-vi", "n_topics": 3}
    start = {"training__start": "moments", "training__vectors": "none", "training__rounds": 2}
    plan = private_plan(tmp_path, "dp-distributed", model=model, **start)
    site = Site(begin(tmp_path / "run", plan, five))
    for _ in range(2):
        site.state(site.begin())
    first, second = site.watching.totals
    assert np.array_equal(first["pairs"], second["pairs"])
    assert site.spent() == 1
    site.end()


# ---- what is lost, put back or killed --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of a process: no role catches it."""


Left = dict[int, set[str]]  # the digests of what left under each entry of the ledger


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Left:
    """What left the party, at the last step before it is masked, by the entry that paid for it."""
    found: Left = defaultdict(set)
    send = Answering._send

    def sent(self: Answering, vector: Any, surplus: Any) -> Any:
        if self.own.name == NORTH and self.ask.question == TRAIN:
            account = self.own.ledger.account(self.own.run) if self.own.ledger else None
            paid = account.paid_for(TRAIN, self.ask.number) if account else None
            assert paid is not None
            assert paid.answer  # its digest is in the ledger before it leaves
            found[paid.entry].add(hashlib.sha256(pack_vector(vector, self.route.terms)).hexdigest())
        return send(self, vector, surplus)

    monkeypatch.setattr(Answering, "_send", sent)
    return found


def ask(site: Site, coordinator: Coordinator) -> None:
    coordinator.ask(TRAIN, site.state(coordinator), keep=True)


def answer_deleted(folder: Path) -> None:
    (folder / "kept-train.safetensors").unlink()


def store_deleted(folder: Path) -> None:
    """All but the kept answer and the identity, which a real party has in its keys."""
    store = PartyStore(folder)
    identity = store.get(IDENTITY)
    store.close()
    assert identity is not None
    for path in [*folder.glob("own.sqlite*"), *folder.glob("memory-*")]:
        path.unlink()
    shutil.rmtree(folder / "own.large", ignore_errors=True)
    store = PartyStore(folder)
    store.put(IDENTITY, identity)
    store.close()


def both_deleted(folder: Path) -> None:
    answer_deleted(folder)
    store_deleted(folder)


LOSSES: dict[str, Callable[[Path], None]] = {"answer": answer_deleted, "store": store_deleted, "both": both_deleted}


@pytest.mark.parametrize("what", quick(LOSSES, "answer", "store"))
def test_what_was_paid_for_and_is_lost_is_not_drawn_again(what: str, site: Site, left: Left) -> None:
    ask(site, site.begin())
    site.end()
    LOSSES[what](site.folder.party(NORTH))
    again = site.begin()
    if what == "store":  # the answer is there, and is given again as it was
        ask(site, again)
    else:
        with pytest.raises(PartyRefused, match="CannotTakePart"):
            ask(site, again)
    assert [len(answers) for answers in left.values()] == [1]
    assert site.spent() == 1


@pytest.mark.parametrize("what", quick(["everything", "answer", "store"], "everything"))
def test_an_older_copy_that_is_put_back_draws_nothing_again(what: str, site: Site, left: Left, tmp_path: Path) -> None:
    """The copy is of after the first answer. It has that one, and not the second one, which left too."""
    coordinator = site.begin()
    ask(site, coordinator)
    folder = site.folder.party(NORTH)
    site.parties[NORTH].store.keep()
    shutil.copytree(folder, tmp_path / "copy")
    ask(site, coordinator)
    site.end()
    if what == "everything":
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "copy", folder)
    else:
        pattern = "kept-train*" if what == "answer" else "own.sqlite*"
        for path in folder.glob(pattern):
            path.unlink()
        for path in (tmp_path / "copy").glob(pattern):
            shutil.copy2(path, folder / path.name)
    again = site.begin()
    again.numbers[TRAIN], again.serial = 1, coordinator.serial - 1  # it goes on from its checkpoint after the first answer
    if what == "store":  # the kept answer is the second one
        ask(site, again)
    else:
        with pytest.raises(PartyRefused, match="north refused: CannotTakePart"):
            ask(site, again)
    assert [len(answers) for answers in left.values()] == [1, 1]
    assert site.spent() == 2


def killed(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, *, after: bool) -> None:
    """Ends the party's process once, before that call or after it."""
    known, armed = getattr(where, name), [True]

    def dies(*given: Any, **named: Any) -> Any:
        party = _party_of(given)
        if party not in (NORTH, "") or not armed[0]:
            return known(*given, **named)
        done = known(*given, **named) if after else None
        if name == "settle" or party == NORTH:
            armed[0] = False
            raise Killed()
        return done

    monkeypatch.setattr(where, name, dies)


def _party_of(given: tuple[Any, ...]) -> str:
    """Whose call it is, by what it was given."""
    first = given[0]
    if isinstance(first, Answering):
        return first.own.name
    if isinstance(first, PaidQuestion):
        return first.guard.ledger.owner
    if isinstance(first, Ledger):
        return first.owner
    return NORTH if isinstance(first, PartyStore) and "north" in str(first.folder) else "another"


MOMENTS: dict[str, tuple[Any, str, bool]] = {
    "before it is paid for": (PaidQuestion, "pay", False),
    "when it is paid for": (PaidQuestion, "pay", True),
    "when it is noted as asked": (PartyStore, "note_asked", True),
    "when it is computed": (Answering, "clipped_answer", True),
    "when it is kept": (PartyStore, "keep_answer", True),
    "when its digest is entered": (Ledger, "answered", True),
    "before it is sent": (Answering, "_send", False),
    "when it is sent": (Answering, "_send", True),
}


@pytest.mark.parametrize("moment", quick(MOMENTS, "before it is paid for", "when it is kept"))
def test_killed_at_any_step_and_asked_again_one_answer_leaves_for_one_entry(
    moment: str, site: Site, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, after = MOMENTS[moment]
    coordinator = site.begin()
    with monkeypatch.context() as patched:
        killed(patched, where, name, after=after)
        with pytest.raises(Killed):
            ask(site, coordinator)
    again = site.begin()
    ask(site, again)
    third = site.begin()
    ask(site, third)
    first, second = site.watching.totals[-2:]
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert [len(answers) for answers in left.values()] == [1]
    assert site.spent() == 1


@pytest.mark.parametrize(
    ("moment", "what"),
    quick(product(list(MOMENTS)[1:], LOSSES), ("when it is computed", "both"), ("when its digest is entered", "store")),
)
def test_killed_at_any_step_with_the_answer_lost_too_one_answer_leaves_or_none(
    moment: str, what: str, five: Mapping[str, Corpus], tmp_path: Path, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(begin(tmp_path / "run", private_plan(tmp_path, "dp-distributed", training__rounds=4), five))
    where, name, after = MOMENTS[moment]
    coordinator = site.begin()
    with monkeypatch.context() as patched:
        killed(patched, where, name, after=after)
        with pytest.raises(Killed):
            ask(site, coordinator)
    site.end()
    if (site.folder.party(NORTH) / "kept-train.safetensors").exists():
        LOSSES[what](site.folder.party(NORTH))
    elif what != "answer":
        store_deleted(site.folder.party(NORTH))
    gone = list(MOMENTS).index(moment) >= list(MOMENTS).index("when its digest is entered") and what != "store"
    again = site.begin()
    if gone:
        with pytest.raises(PartyRefused, match="CannotTakePart"):
            ask(site, again)
    else:
        ask(site, again)
    assert [len(answers) for answers in left.values()] in ([1], [])
    assert site.spent() == 1
    site.end()


@pytest.mark.parametrize("lost", quick([False, True], True))
def test_with_another_organisation_in_a_members_place_the_number_is_not_answered_again(
    lost: bool, site: Site, left: Left
) -> None:
    """That one has kept no answer. If the others gave theirs again, their shares of noise would be in two different sums."""
    ask(site, site.begin())
    site.end()
    if lost:
        both_deleted(site.folder.party(NORTH))
    new = Ed25519PrivateKey.generate()
    store = PartyStore(site.folder.party("south"))
    store.put(IDENTITY, new.private_bytes_raw())
    store.close()
    site.folder = replace(site.folder, keys={**site.folder.keys, "south": new.public_key().public_bytes_raw()})
    again = site.begin()
    with pytest.raises(PartyRefused, match="AnotherCohort"):
        ask(site, again)
    assert [len(answers) for answers in left.values()] == [1]
    assert {name: site.spent(name) for name in site.parties} == dict.fromkeys(site.parties, 1)


@pytest.mark.parametrize("lost", [False, True])
def test_an_entry_pays_for_no_other_question(lost: bool, site: Site, left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was paid for, the process ended and the store is lost, the ledger alone knows what was asked."""
    with monkeypatch.context() as patched:
        if lost:
            killed(patched, PaidQuestion, "pay", after=True)
        with pytest.raises(Killed) if lost else nullcontext():
            ask(site, site.begin())
    site.end()
    if lost:
        store_deleted(site.folder.party(NORTH))
    again = site.begin()
    other = {name: array + 1 if array.dtype.kind == "f" else array for name, array in site.state(again).items()}
    with pytest.raises(PartyRefused, match="refused: AskedOtherwise"):
        again.ask(TRAIN, other, keep=True)
    assert [len(answers) for answers in left.values()] == ([] if lost else [1])
    assert site.spent() == 1


def test_an_earlier_number_is_not_computed_after_a_later_one(site: Site) -> None:
    """Others may hold their answers to it: two sums would differ by this party's two shares of the noise."""
    coordinator = site.begin()
    coordinator.numbers[TRAIN] = 1
    ask(site, coordinator)
    again = site.begin()
    again.numbers[TRAIN], again.serial = 0, coordinator.serial
    if site.folder.agreement.profile.name == "dp-distributed":
        with pytest.raises(PartyRefused, match="LaterAnswered"):
            ask(site, again)
        assert site.spent() == 1
    else:  # its own noise covers its own answer
        ask(site, again)
        assert site.spent() == 2


def test_other_bytes_in_the_place_of_the_kept_answer_do_not_leave(site: Site, left: Left) -> None:
    """A whole file that was made of another draw: the ledger knows the digest of the one that left."""
    ask(site, site.begin())
    party = site.parties[NORTH]
    kept = party.store.last_answer(TRAIN)
    assert kept is not None
    other = bytes(reversed(kept.vector))
    assert other != kept.vector
    party.store.keep_answer(kept.asked, other)
    again = site.begin()
    with pytest.raises(PartyRefused, match="CannotTakePart"):
        ask(site, again)
    assert [len(answers) for answers in left.values()] == [1]


@pytest.mark.slow
def test_the_sentence_is_the_same_whatever_was_lost(site: Site) -> None:
    said = set()
    ask(site, site.begin())
    site.end()
    for what in ("answer", "both"):
        folder = site.folder.party(NORTH)
        kept = (folder / "kept-train.safetensors").read_bytes()
        LOSSES[what](folder)
        with pytest.raises(PartyRefused, match="CannotTakePart"):
            ask(site, site.begin())
        said |= set(site.parties[NORTH].store.rows("SELECT name, reason FROM refusals"))
        (folder / "kept-train.safetensors").write_bytes(kept)
    assert len(said) == 1
    assert answering.CannotTakePart.__name__ in next(iter(said))
