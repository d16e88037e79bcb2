"""The coordinator's end: each wave is a letter to every party, and goes on when the answers are there.

A session goes on in the next process from where it was (`journal.py`). A party that does not answer is waited for, or where the
run can do without it, so many days.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from securetm.credentials.roster import COORDINATOR
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import Malformed
from securetm.federation.coordinator.coordinator import ENDED, Coordinator, Trained, coordinator_of
from securetm.federation.coordinator.rounds import NewSessionWanted
from securetm.federation.coordinator.serving import CoordinatorFiles, Serving, opened
from securetm.federation.coordinator.status import HANDING_OUT, EventLog, Fact, RunStatus
from securetm.federation.courier.journal import Journal, KeptEntropy, OffTrack, Paused, recover
from securetm.federation.courier.letters import bundle_size, bundled, unbundled
from securetm.federation.courier.mailbox import Mailbox, Sent
from securetm.federation.courier.party_end import NEVER, writer_of
from securetm.federation.courier.places import Place, PlaceAway
from securetm.federation.health import remove_stamp, renew_stamp
from securetm.federation.store import CoordinatorStore, write_bytes
from securetm.federation.transcript import Replies, Wave
from securetm.federation.wire import wire
from securetm.plans.schema import ALL, Plan
from securetm.private_files import private_folder

DAY = 86_400.0
_STATE = "letters"


@dataclass
class Letters:
    """What the coordinator remembers of its letters, on disk."""

    number: int = 0  # of the last letter
    put_out: float = 0.0  # when, by this machine's clock
    looks: int = 0  # at that wave
    names: dict[str, list[str]] = field(default_factory=dict)  # of the files of the last wave, by party
    heads: dict[str, bytes] = field(default_factory=dict)  # the digests of its letters
    heard: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # the last letter of each party: number, and digest
    missing: list[str] = field(default_factory=list)  # parties that did not answer in time and were not heard of since
    passes: dict[str, int] = field(default_factory=dict)  # letters that each party has answered
    most: int = 0  # bytes of an answer to the last wave, if it handed out the model and answers may come after its session


@dataclass
class CourierParties:
    """All parties, as letters reach them (federation.transcript.FewPasses)."""

    box: Mailbox
    folder: Path  # of this end, beside the coordinator's own
    coordinator: Path
    members: tuple[str, ...]
    status: RunStatus
    days: float  # after which the run goes on without a party, if it can
    fewest: int  # parties whose answers a wave needs; all of them: it waits for all
    every: float = 2.0  # seconds between two looks of a process that stays
    clock: Callable[[], float] = time.time
    is_over: Callable[[], bool] = lambda: False  # whether the session knows its model, and asks for nothing more
    late: bool = False  # whether the session hands the model to parties that come late
    _sent: dict[str, Sent] = field(default_factory=dict)
    _greeted: set[str] = field(default_factory=set)  # parties of which a letter came in this process
    _forgotten: bool = False  # whether a party answered a letter that this end does not remember
    _away: bool = False  # whether the place could not be reached when it was tried last

    def __post_init__(self) -> None:
        private_folder(self.folder)
        self.journal = Journal(self.folder, self.coordinator)
        path = self.folder / _STATE
        self.letters = msgspec.msgpack.decode(path.read_bytes(), type=Letters) if path.is_file() else Letters()
        self.awaited: tuple[str, ...] = ()

    # ---- what a session asks for ---------------------------------------------------------------------------------------

    def present(self) -> frozenset[str]:
        """Who can be asked: all but those that did not answer in time and were not heard of since."""
        here = sorted(set(self.members) - set(self.letters.missing))
        return frozenset(self.journal.told("present", lambda: here) if self.journal.is_open else here)

    def close(self) -> None:
        """Does nothing: letters outlive the sessions."""

    def ask(self, requests: Mapping[str, bytes], most: int) -> Replies:
        yield from self.ask_in_one([(requests, most)])[0]

    def ask_in_one(self, waves: Sequence[Wave]) -> Sequence[Replies]:
        """Sends these waves in one letter to each party, and waits for the answers."""
        whole = hashlib.sha256()
        for requests, _ in waves:
            for name, request in sorted(requests.items()):
                whole.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(request).digest())
        number, digest = self.journal.told("asked", lambda: [self._write(waves), whole.digest()])
        if digest != whole.digest():
            raise OffTrack()
        most = bundle_size(max((most for _, most in waves), default=0))
        if self.is_over() and not self.late:  # this wave hands the model out
            self.letters.most = most
            self._keep()
            return [self._replies(number, waves, place, ()) for place in range(len(waves))]
        asked = tuple(name for name in self.members if any(name in requests for requests, _ in waves))
        came = self.journal.told("came", lambda: self._collected(number, asked, most))
        return [self._replies(number, waves, place, came) for place in range(len(waves))]

    def receipts(self, of: Collection[str]) -> Iterator[str]:
        """Waits until these parties have answered the last wave, and yields those that accepted it."""
        asked = tuple(sorted(set(of) & set(self.letters.heads)))
        came = self._collected(self.letters.number, asked, self.letters.most) if asked and self.letters.most else []
        for party in came:
            with suppress(Malformed):
                reply = unbundled(self._in(party, self.letters.number).read_bytes(), party)[-1]
                if isinstance(wire.unpack_reply(reply, party, self.letters.most)[1], wire.Accepted):
                    yield party

    # ---- letters out ---------------------------------------------------------------------------------------------------

    def _write(self, waves: Sequence[Wave]) -> int:
        """Writes a letter to each party that is asked, to this end's own disk. Returns its number."""
        self._withdraw()
        number = max([self.letters.number, *(number for number, _ in self.letters.heard.values())]) + 1
        heads = dict[str, bytes]()
        for party in self.members:
            if messages := [requests[party] for requests, _ in waves if party in requests]:
                _, answers = self.letters.heard.get(party, (0, NEVER))
                sent = self.box.write(party, number, answers, bundled(messages))
                write_bytes(self._out(party), sent.file)
                heads[party] = sent.identity
        before = self.letters
        self.letters = Letters(number, self.clock(), 0, {}, heads, before.heard, before.missing, before.passes)
        self._keep()
        return number

    def _withdraw(self) -> None:
        for party, names in self.letters.names.items():
            for name in names:
                self.box.place.remove(name)
            self._out(party).unlink(missing_ok=True)
        self._sent = {}

    def look_after(self) -> None:
        """Sees to it that the letters of the last wave are there, but for those that are answered."""
        for party in self.letters.heads:
            if party not in self._sent and self._out(party).is_file():
                self._sent[party] = Sent(self._out(party).read_bytes(), self.letters.names.setdefault(party, []))
        heard = {party: number for party, (number, _) in self.letters.heard.items()}
        open_now = [sent for party, sent in self._sent.items() if heard.get(party, 0) < self.letters.number]
        try:
            for sent in open_now:
                self.box.look_after(sent)
        finally:
            self._keep()

    def _out(self, party: str) -> Path:
        return self.folder / "out" / party

    # ---- letters in ----------------------------------------------------------------------------------------------------

    def _collected(self, number: int, asked: Sequence[str], most: int) -> list[str]:
        """Waits until the wave has ended. Returns who answered."""
        self.journal.keep()
        self.letters.looks += 1
        while True:
            self._look(number, most)
            came = [party for party in asked if self._in(party, number).is_file()]
            self.awaited = tuple(party for party in asked if party not in came)
            if not self.awaited or (len(came) >= min(self.fewest, len(asked)) and self._waited()):
                self.letters.missing = sorted({*self.letters.missing, *self.awaited} - set(came))
                self._keep()
                return came
            self._keep()
            if self.box.once:
                raise Paused()
            renew_stamp(self.coordinator.parent)
            time.sleep(self.every)

    def _look(self, number: int, most: int) -> None:
        """Sees to what goes out, and takes in what came. A process that stays tries a place that is away again."""
        try:
            self.look_after()
            self._take_in(number, most)
        except PlaceAway as away:
            if self.box.once:
                raise
            if not self._away:
                self.status.log.write("away", reason=str(away))
                self.status.tell(str(away))
            self._away = True
        else:
            self._away = False

    def _waited(self) -> bool:
        """Whether it was long enough. A clock that was put forward does not end a wave in the pass that began it."""
        self.letters.put_out = min(self.letters.put_out, self.clock())  # one that was put back does not keep it open for years
        was_there = self.letters.looks > 1 or not self.box.once
        return was_there and self.clock() - self.letters.put_out >= self.days * DAY

    def _take_in(self, number: int, most: int) -> None:
        """Takes the answers that are there. One to an earlier letter shows that its party is back.

        One to a letter that this end does not remember shows that it was put back itself: its session is over.
        """
        for file, head in self.box.heads():
            party, (last, _) = head.sender, self.letters.heard.get(head.sender, (0, NEVER))
            if head.number <= last:
                continue
            if head.number == number and head.answers == self.letters.heads.get(party):
                content = self.box.content(file, head, most)
                if content is None:
                    continue
                write_bytes(self._in(party, number), content)
                self.letters.passes[party] = self.letters.passes.get(party, 0) + 1
            self._forgotten |= head.number >= number and head.answers != self.letters.heads.get(party)
            self.letters.heard[party] = (head.number, head.identity)
            if party in self.letters.missing:
                self.letters.missing.remove(party)
            if party not in self._greeted:
                self._greeted.add(party)
                self.status.connected(party)
        if self._forgotten:
            self._forgotten = False
            self._keep()
            raise OffTrack()

    def _in(self, party: str, number: int) -> Path:
        return self.folder / "in" / f"{party}.{number}"

    def _replies(self, number: int, waves: Sequence[Wave], place: int, came: Sequence[str]) -> Replies:
        """The replies to one of the waves, each read from disk when it is its turn."""
        requests, _ = waves[place]
        for party in self.members:
            if party in came and party in requests:
                with suppress(Malformed):
                    replies = unbundled(self._in(party, number).read_bytes(), party)
                    mine = sum(party in earlier for earlier, _ in waves[:place])
                    if mine < len(replies):
                        yield party, replies[mine]

    # ---- sessions ------------------------------------------------------------------------------------------------------

    @contextmanager
    def session(self) -> Iterator[None]:
        """One session; what came in it is kept until its end, because the next process reads it again."""
        if not self.journal.is_under_way:
            self._forget_answers()
        with self.journal.session():
            yield
        self._forget_answers()

    def _forget_answers(self) -> None:
        for path in (self.folder / "in").glob("*"):
            path.unlink()

    def _keep(self) -> None:
        write_bytes(self.folder / _STATE, msgspec.msgpack.encode(self.letters))


@dataclass
class _QuietLog(EventLog):
    """Writes no event twice where a session is run again."""

    journal: Journal = field(kw_only=True)

    def write(self, event: str, **facts: Fact) -> None:
        if not self.journal.repeats:
            super().write(event, **facts)


@dataclass
class CourierServing(Serving):
    parties: CourierParties

    def _ended_before(self) -> Trained | None:
        return None if self.parties.journal.is_under_way else super()._ended_before()

    def _session(self) -> Trained | Exception:
        try:
            with self.parties.session():
                return super()._session()
        except OffTrack:
            return NewSessionWanted()

    def _await_parties(self) -> None:
        """Waits for nobody: letters reach parties that come later."""

    @contextmanager
    def _coordinator(self) -> Iterator[Coordinator]:
        parties, here = self.parties, not self.attendance.everyone
        entropy = KeptEntropy(parties.journal) if parties.journal.is_open else OperatingSystem()
        about: dict[str, Any] = {"told": self.status, "only_present": here, "few": parties, "entropy": entropy}
        with coordinator_of(self.folder, parties, self.attendance, **about) as coordinator:
            waits = self.folder.agreement.plan.vocabulary.told_at_the_end  # for the words, which come with the last answers
            parties.is_over = lambda: not waits and coordinator.store.get(ENDED) is not None
            yield coordinator

    def _kept_result(self, before: Trained | None) -> dict[str, Any]:
        """Writes the model as soon as it is known, and then waits until those who were sent it say that they have it."""
        result = super()._kept_result(before)
        self._take_receipts()
        return result

    def _hand_out_late(self, rounds: int) -> None:
        self._take_receipts()
        if late := self._without_model():
            self.parties.letters.missing, self.parties.late = [], True
            with suppress(OffTrack), self.parties.session():
                self._handed_out(rounds, late)

    def _take_receipts(self) -> None:
        if self.parties.journal.is_under_way or not (waiting := self._without_model()):
            return
        self.status.enters(HANDING_OUT)
        with suppress(OffTrack):
            took = [*self.parties.receipts(waiting)]
            with closing(CoordinatorStore(self.folder.coordinator)) as store:
                store.keep_handed_out(took)
            for name in took:
                self.status.log.write("handed_out", party=name)


@contextmanager
def served_by_courier(
    plan: Plan,
    out: Path,
    files: CoordinatorFiles,
    place: Place,
    command: str,
    *,
    once: bool = False,
    every: float = 2.0,
    **shown: Any,
) -> Iterator[CourierServing]:
    """The run of this roster's parties, over letters in that place. With `once` it makes a single pass."""
    choice, roster = plan.coordinator, files.roster
    ends = out / "courier"
    recover(ends, out / "coordinator")
    folder, status = opened(plan, out, files, **shown)
    box = Mailbox(writer_of(COORDINATOR, files.keys, roster, folder.agreement), place, once)
    fewest = len(roster.members) if choice.survivors == ALL else int(choice.survivors)
    parties = CourierParties(box, ends, folder.coordinator, folder.members, status, choice.courier_days, fewest, every)
    status.log = _QuietLog(status.log.path, status.log.beside, journal=parties.journal)
    try:
        yield CourierServing(folder, parties, status, choice, command)
    finally:
        remove_stamp(out)
