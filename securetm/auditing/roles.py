"""Roles that take the place of honest ones in an audit's run: malicious parties, a malicious coordinator, a real network.

Malicious roles follow the protocol in everything that another role can check. Behind a network all are honest: mutual TLS, a
hub and a thread for each party, whose replies have real times.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from securetm.auditing.attack import Attack, Effort, broken_attack
from securetm.auditing.views import NotTestable
from securetm.contracts import Answer, Array, Mechanism, RoundContext, Sampling, State, Terms
from securetm.data_classes import dataclass, field, replace
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.folder import RunFolder
from securetm.federation.party.party import Party
from securetm.federation.party.reply_times import PacedParty, SystemClock
from securetm.federation.questions import TRAIN
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.store import read_json, write_json

if TYPE_CHECKING:
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.hub import Hub


@dataclass(frozen=True)
class Corruption:
    """Roles that take the place of honest ones in a run."""

    named: Mapping[str, Any]  # what distinguishes such a run from others; it is part of the run's name
    roles: Callable[[RunFolder], Mapping[str, Any]]


HONEST = Corruption({"liars": 0, "lie": ""}, lambda _: {})


def malicious_parties(number: int, attack: Attack) -> Corruption:
    """So many parties, the first ones, that send what the attack makes of their vectors.

    They have one more mechanism. The agreement keeps its digest, so other roles notice nothing.
    """

    def roles(folder: RunFolder) -> Mapping[str, Any]:
        if attack.malicious_vector is None:
            raise broken_attack(attack.name, "a malicious_vector for its parties")
        parties = {name: make_party(folder, name) for name in folder.members}
        lie = _SubstituteVector(attack.malicious_vector)
        return {
            "parties": InProcess({**parties, **{one: with_mechanism(parties[one], lie) for one in folder.members[:number]}})
        }

    return Corruption({"liars": number, "lie": attack.name}, roles)


def with_mechanism(party: Party, last: Mechanism) -> Party:
    """The party with one more mechanism. The agreement keeps its digest."""
    profile = party.agreement.profile
    return replace(party, agreement=replace(party.agreement, profile=replace(profile, mechanisms=(*profile.mechanisms, last))))


@dataclass(frozen=True)
class _SubstituteVector(Mechanism):
    """The last mechanism of a malicious party, after clipping, rounding and noise, and before the sum is sealed."""

    substitute: Callable[[Array, Terms], Array]

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        return self.substitute(vector, terms).astype(vector.dtype)


# ---- a malicious coordinator: in some rounds it sends other weights than the model's --------------------------------


def malicious_rounds(number: int, attack: Attack, effort: Effort) -> Corruption:
    """In so many rounds of training, the first ones, the coordinator sends what the attack makes of the model's state.

    Attacks that send the same state share their runs.
    """
    made = attack.malicious_state
    lie = f"{made.__module__}.{made.__qualname__}" if made is not None else attack.name
    named = {"meddled": number, "lie": lie, **{f"lie {name}": amount for name, amount in effort.items()}}
    return Corruption(
        named, lambda _: {"coordinating": partial(MaliciousCoordinator, rounds=number, attack=attack, effort=effort)}
    )


@dataclass(kw_only=True)
class MaliciousCoordinator(Coordinator):
    """Asks about weights that were made for the answer. If parties learn by themselves, it is honest."""

    rounds: int
    attack: Attack
    effort: Effort

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        """One question to all parties. An answer about other weights counts as that of no document: the model stays."""
        if question != TRAIN or self.numbers.get(TRAIN, 0) >= self.rounds or self.parties_open:
            return super().ask(question, state, keep=keep)
        if self.attack.malicious_state is None:
            raise broken_attack(self.attack.name, "a malicious_state for its coordinator")
        shown = self.attack.malicious_state(state, self.agreement.model, self.effort)
        answer = super().ask(question, shown, keep=keep)
        total: Mapping[str, Any] = answer.total or {}
        return replace(answer, total={name: np.zeros_like(block) for name, block in total.items()})


# ---- parties behind a network of this machine -----------------------------------------------------------------------
# For the judge alone it counts what took part in each answer: no party keeps that.

RECORD = "worked.json"  # in the run's folder: party -> number of the question -> words of the documents in its answer
DEADLINE = 600.0  # seconds for one wave
_FEDERATION, _COORDINATOR, _HOST = "audit", "coordinator", "127.0.0.1"


def over_network(*, varied: bool = False) -> Corruption:
    """Real connections carry the messages. All roles are honest; the judge may vary how many documents take part."""

    def roles(folder: RunFolder) -> Mapping[str, Any]:
        parties = NetworkedParties(folder, varied)
        return {"parties": parties, "arrivals": parties.arrivals}

    return Corruption({"network": True, **({"varied": True} if varied else {})}, roles)


@dataclass
class NetworkedParties:
    """All parties of a run in threads, each connected to the coordinator's hub (federation.transcript.Parties)."""

    folder: RunFolder
    varied: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Makes keys and a roster, listens, and waits until everybody is connected."""
        self._called = {name: f"party-{place:04d}" for place, name in enumerate(self.folder.members)}  # on the network
        self._hub, dialers = _connections(self.folder, tuple(self._called.values()))
        self._hub.start()
        self._network, self.arrivals = self._hub.parties(DEADLINE), dict[str, float]()
        self._counts = {name: VaryWords() if self.varied else CountWords() for name in self.folder.members}
        clock, self._threads = SystemClock(self._stop), list[threading.Thread]()
        counting = {name: with_mechanism(make_party(self.folder, name), count) for name, count in self._counts.items()}
        self._parties = {name: PacedParty(party, clock) for name, party in counting.items()}
        for name, called in self._called.items():
            dialers[called].most_bytes = partial(getattr, self._parties[name], "most_bytes")
            self._threads.append(threading.Thread(target=dialers[called].run, args=(self._parties[name].handle, self._stop)))
            self._threads[-1].start()
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
        self.words[context.cohort.number] = int(documents.counts.sum())
        return documents


@dataclass(frozen=True)
class VaryWords(CountWords):
    """It also leaves out some documents. Of two answers one is of few and one of most, so no other work hides which."""

    sampling: ClassVar[Sampling] = Sampling.COINS

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """The first documents: of an even question and the one after it, a coin decides which has few."""
        pair, second = divmod(context.cohort.number, 2)
        few = np.random.default_rng(pair).integers(2) == second
        share = np.random.default_rng(context.cohort.number).uniform(*((0.05, 0.2) if few else (0.8, 1.0)))
        return super().on_documents(documents.select(np.arange(max(1, int(share * len(documents))))), terms, context)


def worked_in(folder: Path) -> dict[str, dict[int, int]]:
    """How many words took part in each party's answers, by number of the question; empty where nobody counted."""
    if not (folder / RECORD).is_file():
        return {}
    return {name: {int(number): words for number, words in one.items()} for name, one in read_json(folder / RECORD).items()}


# ---- the network ---------------------------------------------------------------------------------------------------


def _connections(folder: RunFolder, members: tuple[str, ...]) -> tuple[Hub, dict[str, Dialer]]:
    """The coordinator's end and each party's. Keys, authority and roster are made for this run alone."""
    from securetm.credentials.diagnosis import now_utc
    from securetm.credentials.issuing import open_authority
    from securetm.credentials.keys import make_keys
    from securetm.credentials.roster import FederationRoster, Member
    from securetm.federation.network.dialing import Dialer
    from securetm.federation.network.events import Agreed
    from securetm.federation.network.hub import Hub

    home, since = folder.path / "network", now_utc() - timedelta(minutes=1)
    authority = open_authority(home / _COORDINATOR, _FEDERATION, None, now_utc())
    keys = {name: make_keys(home / str(place) / "keys", None) for place, name in enumerate((_COORDINATOR, *members))}
    entries = []
    for name, one in keys.items():
        certificate = authority.issue(name, one.tls_public_key, (_HOST,), since, days=1)
        entries.append(Member(name, one.public_identity, certificate, 0, one.public.lasting))
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        address = f"{_HOST}:{probe.getsockname()[1]}"
    roster = FederationRoster(_FEDERATION, 1, address, entries[0], tuple(entries[1:]))
    agreed = Agreed(folder.agreement.digest, folder.agreement.profile.digest)
    hub = Hub(keys[_COORDINATOR], roster, agreed, folder.path / "spool", roster.address)
    return hub, {name: Dialer(name, keys[name], roster, agreed, lambda: 0) for name in members}
