"""What a party's own user sees of a run under way: connection, round, answers, bytes. It holds public facts and counts only.

Several threads write here, and a view reads. It draws nothing.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from securetm.data_classes import dataclass, field
from securetm.errors import Refused
from securetm.federation.network.events import NetworkEvents, event_line
from securetm.federation.party.failure_log import Failure
from securetm.federation.party.state import PartyWatch

Tell = Callable[[str, Mapping[str, Any]], None]  # an event by its name, and its facts
# What a log says of each event. Reasons and hints of refusals and failures are not in it: they may tell of documents.
LOGGED: Mapping[str, tuple[str, ...]] = {
    "started": ("party", "federation", "run"),
    "connected": ("to",),
    "lost": ("to", "reason"),
    "not_connected": ("reason",),
    "answered": ("question", "number", "round", "bytes"),
    "refused": ("name",),
    "failed": ("name",),
    "warned": ("reason",),
    "finished": ("rounds",),
}


def log_line(event: str, facts: Mapping[str, Any]) -> str:
    """One line of JSON, in the form of a coordinator's log."""
    return event_line(event, LOGGED[event], facts)


@dataclass
class JoinStatus(PartyWatch, NetworkEvents):
    """The status of one party in a run. It is the party's watch, and the network's."""

    party: str
    federation: str
    rounds: int  # of training, at most
    tell: Tell = lambda *_: None
    connected_to: str = ""
    why_not: str = ""  # the last reason for being without a connection
    serial: int = 0  # of the last round
    trained: int = 0  # the number of the next question of the training
    began_at: int = 0  # the number of the first one since this process came
    answers: Counter[str] = field(default_factory=Counter)  # by question
    refusals: Counter[str] = field(default_factory=Counter)  # by name, with the party's own failures
    trouble: str = ""  # the last of them: what is wrong, and what to do
    bytes_up: int = 0
    bytes_down: int = 0
    spent: Mapping[str, Any] | None = None  # of the ledger, as it was looked at last
    looks: int = 0  # of the view
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # ---- what the party tells

    def answered(self, question: str, number: int, serial: int, sent: int) -> None:
        with self._lock:
            if question == "train" and not self.answers[question]:
                self.began_at = number
            self.answers[question] += 1
            self.serial = max(serial, self.serial)
            self.trained = max(self.trained, number + 1) if question == "train" else self.trained
        self.tell("answered", {"question": question, "number": number, "round": serial, "bytes": sent})

    def refuses(self, refusal: Refused) -> None:
        self._trouble("refused", type(refusal).__name__, str(refusal), refusal.advice())

    def failed(self, failure: Failure) -> None:
        """Something failed here, which no reply shows."""
        self._trouble("failed", failure.name, failure.reason, failure.advice)

    def _trouble(self, event: str, name: str, reason: str, hint: str) -> None:
        with self._lock:
            self.refusals[name] += 1
            self.trouble = f"{reason}: {hint}" if hint else reason
        self.tell(event, {"name": name, "reason": reason, "hint": hint})

    # ---- what the network tells

    def refused(self, party: str, reason: str) -> None:  # noqa: ARG002 - there is one other end
        with self._lock:
            new, self.why_not, self.connected_to = reason != self.why_not, reason, ""
        if new:  # a coordinator that is away is dialed again and again
            self.tell("not_connected", {"reason": reason})

    def connected(self, party: str) -> None:
        with self._lock:
            self.connected_to, self.why_not = party, ""
        self.tell("connected", {"to": party})

    def lost(self, party: str, reason: str) -> None:
        with self._lock:
            self.connected_to, self.why_not = "", reason
        self.tell("lost", {"to": party, "reason": reason})

    def carried(self, party: str, received: int, sent: int) -> None:  # noqa: ARG002 - there is one other end
        with self._lock:
            self.bytes_down, self.bytes_up = self.bytes_down + received, self.bytes_up + sent

    # ---- what an operator may read

    def facts(self) -> dict[str, Any]:
        """How the run stands for this party now, ready for JSON. No number of documents and no text of them is in it."""
        with self._lock:
            return {
                "party": self.party,
                "federation": self.federation,
                "connected": bool(self.connected_to),
                "why_not": self.why_not,
                "round": self.trained,
                "rounds": self.rounds,
                "answers": dict(self.answers),
                "refusals": dict(self.refusals),
                "bytes_up": self.bytes_up,
                "bytes_down": self.bytes_down,
                "spent": None if self.spent is None else dict(self.spent),
            }
