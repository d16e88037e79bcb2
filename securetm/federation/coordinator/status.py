"""How a served run stands: public facts for the log, the metrics, the dashboard and the status page.

Who takes part, when, and how many bytes pass are visible anyway. How long one party took is not kept: it shows roughly how many
documents were drawn.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from securetm.contracts import Answer
from securetm.data_classes import asdict, dataclass, field
from securetm.federation.network.events import NetworkEvents, event_line
from securetm.federation.refusal_errors import in_words
from securetm.federation.transcript import Watch
from securetm.private_files import make_folder, private_file

Fact = str | int | float | None
EVENTS: Mapping[str, tuple[str, ...]] = {
    "started": ("run", "address", "round"),
    "connected": ("party",),
    "left": ("party", "reason"),
    "rejected": ("party", "refusal"),
    "away": ("reason",),
    "waiting": ("missing", "seconds"),
    "session": ("session", "parties"),
    "session_ended": ("session", "reason", "missing"),
    "round": ("round", "of", "survivors", "seconds", "bytes_up", "bytes_down"),
    "kept": ("round",),
    "refused": ("party", "refusal"),
    "trained": ("rounds", "stopped"),
    "handed_out": ("party",),
    "finished": ("rounds", "seconds"),
    "stopped": ("round", "reason"),
    "failed": ("error",),
}
_FULL = 16 << 20  # bytes of the log; then it becomes the older of two


@dataclass
class EventLog:
    """Writes events to a file for its owner alone, and to a second stream where one is given."""

    path: Path
    beside: TextIO | None = None
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        make_folder(self.path.parent)
        private_file(self.path)

    def write(self, event: str, **facts: Fact) -> None:
        names = EVENTS[event]
        if set(facts) != set(names) or not all(isinstance(fact, str | int | float | None) for fact in facts.values()):
            raise TypeError(f"{event} has the facts {', '.join(names)}, each a text or a number")
        line = event_line(event, names, facts)
        with self._alone, suppress(OSError):  # a full disk stops no thread of the network; stores name it
            if self.path.stat().st_size + len(line) > _FULL:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
                private_file(self.path)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            if self.beside is not None:
                self.beside.write(line + "\n")
                self.beside.flush()


AWAY, CONNECTED, ASKED, ANSWERED = "away", "connected", "asked", "answered"
WAITING, TRAINING, HANDING_OUT, FINISHED, STOPPED = "waiting", "training", "handing out", "finished", "stopped"
OTHERS, _MOST_NAMES = "others", 40  # a hostile party could bring a new name with every refusal


@dataclass
class PartyStatus:
    state: str = AWAY
    rounds: int = 0  # the last round in which it survived
    bytes_up: int = 0
    bytes_down: int = 0
    refusal: str = ""  # the name of the last refusal, by it or of it


SHOWN = ("run", "model", "profile", "address", "phase", "session", "done", "of", "survivors", "waves")


@dataclass
class RunStatus(NetworkEvents, Watch):
    """The facts, changed by the coordinator's thread and the network's, and read by whoever shows them."""

    run: str
    model: str
    profile: str
    members: tuple[str, ...]
    log: EventLog
    spent: Callable[[int], Mapping[str, Any] | None] = lambda _: None  # of each unit's budget after so many training answers
    tell: Callable[[str], None] = lambda _: None  # the operator, of each new refusal, in words
    address: str = ""
    phase: str = WAITING
    session: int = 0
    done: int = 0
    of: int = 0
    survivors: tuple[str, ...] = ()
    waves: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    begun: float = field(default_factory=time.monotonic)
    _parties: dict[str, PartyStatus] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ends: deque[float] = field(default_factory=lambda: deque(maxlen=21))  # of the last 20 rounds
    _traffic: tuple[int, int] = (0, 0)  # before the round under way

    def __post_init__(self) -> None:
        self._parties = {name: PartyStatus() for name in self.members}

    # ---- what the network tells ----------------------------------------------------------------------------------------

    def connected(self, party: str) -> None:
        with self._changed:
            self._parties[party].state = CONNECTED
            self._changed.notify_all()
        self.log.write("connected", party=party)

    def lost(self, party: str, reason: str) -> None:
        with self._changed:
            self._parties[party].state = AWAY
            self._changed.notify_all()
        self.log.write("left", party=party, reason=reason)

    def refused(self, party: str, reason: str) -> None:
        """Somebody who said to be this party was not let in. The name may be any text."""
        self._count(party, reason)
        self.log.write("rejected", party=party if party in self._parties else "", refusal=reason)

    # ---- what the coordinator tells ------------------------------------------------------------------------------------

    def waits(self, condition: Callable[[], object], seconds: float) -> bool:
        """Waits until the condition holds, which may change when a party comes or leaves. Returns whether it holds."""
        with self._changed:
            return bool(self._changed.wait_for(condition, timeout=min(seconds, threading.TIMEOUT_MAX)))

    def asked(self, requests: Mapping[str, bytes]) -> None:
        with self._changed:
            self.waves += 1
            for name, message in requests.items():
                party = self._parties[name]
                party.bytes_down += len(message)
                party.state = ASKED if party.state != AWAY else AWAY

    def answered(self, party: str, length: int) -> None:
        with self._changed:
            known = self._parties[party]
            known.bytes_up += length
            known.state = ANSWERED if known.state != AWAY else AWAY

    def enters(self, phase: str) -> None:
        with self._changed:
            self.phase = phase
            self._ends.clear()
            for party in self._parties.values():
                party.state = CONNECTED if party.state != AWAY else AWAY

    def begins_session(self, done: int, of: int) -> None:
        self.enters(TRAINING)
        with self._changed:
            self.session, self.done, self.of = self.session + 1, done, of
            self._ends.append(time.monotonic())
            here = sum(party.state != AWAY for party in self._parties.values())
        self.log.write("session", session=self.session, parties=here)

    def objected(self, party: str, refusal: str) -> None:
        self._count(party, refusal)
        self.log.write("refused", party=party, refusal=refusal)

    def _count(self, party: str, refusal: str) -> None:
        with self._changed:
            known = refusal in self.refusals or len(self.refusals) < _MOST_NAMES
            self.refusals[refusal if known else OTHERS] += 1
            new = party in self._parties and self._parties[party].refusal != refusal
            if new:
                self._parties[party].refusal = refusal
            self._changed.notify_all()
        if new:
            self.tell(f"{party}: {in_words(refusal)}")

    def reasons(self, parties: Iterable[str]) -> str:
        """What each of these parties refused last, or was refused for, in words; empty if nothing was."""
        with self._changed:
            last = [(name, self._parties[name].refusal) for name in sorted(parties)]
        return "; ".join(f"{name}: {in_words(refusal)}" for name, refusal in last if refusal)

    def opened(self, serial: int, answer: Answer) -> None:  # noqa: ARG002 - a Watch
        with self._changed:
            self.survivors = tuple(answer.survivors)

    def kept(self, rounds: int) -> None:
        self.log.write("kept", round=rounds)

    def trained(self, done: int, total: int) -> None:
        with self._changed:
            self.done, self.of = done, total
            self._ends.append(time.monotonic())
            for name in self.survivors:
                self._parties[name].rounds = done
            up, down = self._sums()
            facts = {"bytes_up": up - self._traffic[0], "bytes_down": down - self._traffic[1]}
            self._traffic = up, down
            seconds = round(self._ends[-1] - self._ends[-2], 4) if len(self._ends) > 1 else 0.0
            survivors = len(self.survivors)
        self.log.write("round", round=done, of=total, survivors=survivors, seconds=seconds, **facts)

    # ---- what everybody may read ---------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        spent = self.spent(self.done)  # it may take a while, and the network must not wait for it
        with self._changed:
            ends, (up, down) = self._ends, self._sums()
            each = (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else None
            return {
                **{name: getattr(self, name) for name in SHOWN},
                "parties": {name: asdict(party) for name, party in self._parties.items()},
                "bytes_up": up,
                "bytes_down": down,
                "refusals": dict(self.refusals),
                "seconds": time.monotonic() - self.begun,
                "seconds_per_round": each,
                "seconds_left": None if each is None or self.phase != TRAINING else each * (self.of - self.done),
                "epsilon": spent,
            }

    def _sums(self) -> tuple[int, int]:
        parties = self._parties.values()
        return sum(party.bytes_up for party in parties), sum(party.bytes_down for party in parties)
