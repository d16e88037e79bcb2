"""A run of honest roles over a real network on this machine: mutual TLS, a hub, and a thread for each party, with real clocks.

Its transcript holds the times of replies. For the judge alone, it counts what took part in each answer: no party keeps that.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from securetm.auditing.leakage_errors import NotTestable
from securetm.contracts import Mechanism, RoundContext, Sampling, Terms
from securetm.federation.folder import RunFolder
from securetm.federation.party.party import Party
from securetm.federation.party.reply_times import PacedParty, SystemClock
from securetm.federation.simulation.simulation import make_party
from securetm.federation.store import read_json, write_json

if TYPE_CHECKING:  # grpc takes longer to import than the smallest audit may take
    from securetm.credentials.key_files import Keys
    from securetm.credentials.roster import FederationRoster
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.hub import Hub

RECORD = "worked.json"  # in the run's folder: party -> number of the question -> words of the documents in its answer
DEADLINE = 600.0  # seconds for one wave
_FEDERATION, _COORDINATOR, _HOST = "audit", "coordinator", "127.0.0.1"


@dataclass(frozen=True)
class OverNetwork:
    """Runs whose messages pass real connections (malicious_party.Corruption). All roles are honest."""

    varied: bool = False  # whether the judge varies how many documents take part, more than coins would

    def named(self) -> Mapping[str, Any]:
        """What distinguishes such a run from others."""
        return {"network": True, **({"varied": True} if self.varied else {})}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """The parties behind their connections, and the times of their replies."""
        parties = NetworkedParties(folder, self.varied)
        return {"parties": parties, "arrivals": parties.arrivals}


@dataclass
class NetworkedParties:
    """All parties of a run in threads, each connected to the coordinator's hub (federation.transcript.Parties)."""

    folder: RunFolder
    varied: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Makes keys and a roster, listens, and waits until everybody is connected."""
        self._called = {name: f"party-{place:04d}" for place, name in enumerate(self.folder.members)}  # on the network
        self._hub, dialers = _ends(self.folder, tuple(self._called.values()))
        self._hub.start()
        self._network, self.arrivals = self._hub.parties(DEADLINE), dict[str, float]()
        self._counts = {name: VaryWords() if self.varied else CountWords() for name in self.folder.members}
        clock = SystemClock(self._stop)
        made = {name: PacedParty(counted(make_party(self.folder, name), count), clock) for name, count in self._counts.items()}
        self._parties = made
        self._threads = []
        for name, called in self._called.items():
            dialers[called].most_bytes = _most(made[name])
            thread = threading.Thread(target=dialers[called].run, args=(made[name].handle, self._stop))
            thread.start()
            self._threads.append(thread)
        if missing := frozenset(dialers) - self._hub.wait_for(tuple(dialers), DEADLINE):
            self.close()
            raise NotTestable(f"{', '.join(sorted(missing))} could not connect to this machine")

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes | memoryview]]:
        """Asks one party after the other: each has this machine to itself while it answers, as it has its own elsewhere."""
        for name, message in requests.items():
            for called, reply in self._network.ask({self._called[name]: message}, most):
                self.arrivals[name] = self._network.arrivals[called]
                yield name, reply

    def present(self) -> frozenset[str]:
        """Returns the parties that are connected."""
        here = self._network.present()
        return frozenset(name for name, called in self._called.items() if called in here)

    def close(self) -> None:
        """Ends connections, threads and stores, and writes down what was counted."""
        self._hub.close(finished=True)
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for party in self._parties.values():
            party.close()
        write_json(self.folder.path / RECORD, {name: count.words for name, count in self._counts.items()})


@dataclass(frozen=True)
class CountWords(Mechanism):
    """The last mechanism of a party: it counts the words of the documents that take part, and changes nothing."""

    words: dict[int, int] = field(default_factory=dict, compare=False)  # by number of the question

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """The same documents."""
        del terms
        self.words[context.cohort.number] = int(documents.counts.sum())
        return documents


@dataclass(frozen=True)
class VaryWords(CountWords):
    """It also leaves out some of the documents, in each round another share of them, so that an attack has much to find."""

    sampling: ClassVar[Sampling] = Sampling.COINS

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """The first documents, from one in twenty to all."""
        share = np.random.default_rng(context.cohort.number).uniform(0.05, 1.0)
        return super().on_documents(documents.select(np.arange(max(1, int(share * len(documents))))), terms, context)


def counted(party: Party, count: CountWords) -> Party:
    """The party with one more mechanism. The agreement keeps its digest."""
    profile = party.agreement.profile
    return replace(party, agreement=replace(party.agreement, profile=replace(profile, mechanisms=(*profile.mechanisms, count))))


def worked_in(folder: Path) -> dict[str, dict[int, int]]:
    """How many words took part in each party's answers, by number of the question; empty where nobody counted."""
    if not (folder / RECORD).is_file():
        return {}
    return {name: {int(number): words for number, words in one.items()} for name, one in read_json(folder / RECORD).items()}


# ---- the network ---------------------------------------------------------------------------------------------------


def _most(paced: PacedParty) -> Any:
    return lambda: paced.most_bytes


def _ends(folder: RunFolder, members: tuple[str, ...]) -> tuple[Hub, dict[str, Dialer]]:
    """The coordinator's end and each party's. Keys, authority and roster are made for this run alone."""
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.events import Agreed
    from securetm.federation.network.hub import Hub
    from securetm.federation.network.spool import SpoolRoom

    keys, roster = _keys_and_roster(folder, members)
    agreed = Agreed(folder.agreement.digest, folder.agreement.profile.digest)
    hub = Hub(keys[_COORDINATOR], roster, agreed, SpoolRoom(folder.path / "spool"), roster.address)
    return hub, {name: Dialer(name, keys[name], roster, agreed, lambda: 0) for name in members}


def _keys_and_roster(folder: RunFolder, members: tuple[str, ...]) -> tuple[dict[str, Keys], FederationRoster]:
    from securetm.credentials.authority import open_authority
    from securetm.credentials.diagnosis import now_utc
    from securetm.credentials.key_files import make_keys
    from securetm.credentials.roster import FederationRoster, Member

    home, since = folder.path / "network", now_utc() - timedelta(minutes=1)
    authority = open_authority(home / _COORDINATOR, _FEDERATION, None, now_utc())
    keys = {name: make_keys(home / str(place) / "keys", None) for place, name in enumerate((_COORDINATOR, *members))}
    entries = [
        Member(name, one.public_identity, authority.issue(name, one.tls_public_key, (_HOST,), since, days=1))
        for name, one in keys.items()
    ]
    address = f"{_HOST}:{_free_port()}"
    return keys, FederationRoster(_FEDERATION, 1, address, entries[0], tuple(entries[1:]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
