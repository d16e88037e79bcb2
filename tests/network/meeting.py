"""A coordinator and parties that meet on the loopback interface: keys, a roster, a hub, and a thread for each party."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from securetm.credentials.diagnosis import now_utc
from securetm.credentials.issuing import Authority, open_authority
from securetm.credentials.keys import Keys, make_keys
from securetm.credentials.roster import FederationRoster, Member
from securetm.federation.network.dialing import BackOff, Dialer
from securetm.federation.network.events import Agreed, NetworkEvents
from securetm.federation.network.hub import Hub

PATIENCE = 60.0  # seconds that a test waits for what happens in milliseconds
AGREED = Agreed(hashlib.sha256(b"a plan").digest(), hashlib.sha256(b"a profile").digest())
MACHINES = ("localhost", "127.0.0.1")


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass
class Events(NetworkEvents):
    """Remembers what it is told, and lets a test wait for it."""

    told: list[tuple[str, str, str]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def connected(self, party: str) -> None:
        self._tell("connected", party, "")

    def lost(self, party: str, reason: str) -> None:
        self._tell("lost", party, reason)

    def refused(self, party: str, reason: str) -> None:
        self._tell("refused", party, reason)

    def wait(self, what: str, party: str, times: int = 1, patience: float = PATIENCE) -> str:
        """Waits until it was told so, and returns the last reason."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._of(what, party)) >= times, patience), self.told
            return self._of(what, party)[-1]

    def _of(self, what: str, party: str) -> list[str]:
        return [reason for kind, name, reason in self.told if (kind, name) == (what, party)]

    def _tell(self, what: str, party: str, reason: str) -> None:
        with self._changed:
            self.told.append((what, party, reason))
            self._changed.notify_all()


@dataclass
class Meeting:
    """Keys of everybody in one federation, and the roster that pins them."""

    home: Path
    roster: FederationRoster
    keys: dict[str, Keys]
    authority: Authority

    @classmethod
    def of(cls, names: Sequence[str], home: Path) -> Meeting:
        """New keys for a coordinator and these parties."""
        authority = open_authority(home / "coordinator", "clinics", None, now_utc())
        keys = {name: make_keys(home / name / "keys", None) for name in ("coordinator", *names)}
        entries = {name: cls.entry(authority, name, one) for name, one in keys.items()}
        first = entries.pop("coordinator")
        roster = FederationRoster("clinics", 1, f"127.0.0.1:{free_port()}", first, tuple(entries.values()))
        return cls(home, roster, keys, authority)

    @staticmethod
    def entry(authority: Authority, name: str, keys: Keys, since: datetime | None = None, days: int = 30) -> Member:
        """A member with a new certificate."""
        names = (name, *(MACHINES if name == "coordinator" else ()))
        certificate = authority.issue(name, keys.tls_public_key, names, since or now_utc() - timedelta(minutes=1), days)
        return Member(name, keys.public_identity, certificate, lasting=keys.public.lasting)

    def at_another_port(self) -> Meeting:
        """The same people at another place."""
        return replace(self, roster=replace(self.roster, address=f"127.0.0.1:{free_port()}"))

    def with_member(self, changed: Member) -> Meeting:
        """The same with another entry in place of one."""
        rest = tuple(one for one in self.roster.parties if one.name != changed.name)
        return replace(self, roster=replace(self.roster, parties=(*rest, changed), version=self.roster.version + 1))

    def hub(self, events: Events | None = None, agreed: Agreed = AGREED, most: int = 64 << 20) -> Hub:
        """The coordinator's end, not started."""
        place, told = (self.home / "spool", self.roster.address), events or Events()
        return Hub(self.keys["coordinator"], self.roster, agreed, *place, told, (self.authority.pem,), most)

    def dialer(
        self, name: str, most: Callable[[], int] = lambda: 1 << 30, agreed: Agreed = AGREED, events: Events | None = None
    ) -> Dialer:
        """One party's end."""
        quick = BackOff(0.05, 0.2)
        return Dialer(name, self.keys[name], self.roster, agreed, most, events or Events(), quick)


@dataclass
class Parties(ExitStack):
    """Threads of parties, which end with the block."""

    def __post_init__(self) -> None:
        super().__init__()
        self.ended: dict[str, object] = {}

    def run(self, dialer: Dialer, handle: Callable[[bytes], bytes]) -> threading.Event:
        """Starts a party. Returns what stops it; what its `run` returned or raised is in `ended`."""
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(dialer, handle, stop))
        thread.start()

        def end() -> None:
            stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()

        self.callback(end)
        return stop

    def _run(self, dialer: Dialer, handle: Callable[[bytes], bytes], stop: threading.Event) -> None:
        try:
            self.ended[dialer.name] = dialer.run(handle, stop)
        except Exception as problem:  # noqa: BLE001 - the test looks at it
            self.ended[dialer.name] = problem


FIVE = ("centre", "east", "north", "south", "west")
