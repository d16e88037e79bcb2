"""What hiding the sums costs a whole federation: the same run under `open` and under another profile, in turn.

It measures rounds as the coordinator's own record has them, on one machine where all parties take turns. With the length of a
vector it measures the network instead: all roles in processes of their own, on this machine's loopback. Parties hold vectors in
place of documents there, so that what is measured is the sum and its carrier."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from lab.bench.sessions import PlannedSession
from lab.federations import begun
from lab.measuring import OnProgress, Row, beside, figure, least_by_turns, record, stepper
from lab.peers.other_packages import beside_flower, flower_rounds, lacks_of_flower
from lab.processes import memory_now
from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.contracts import Block, Domain, Exchange, Terms
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.federation.simulation.simulation import train
from securetm.federation.store import CoordinatorStore
from securetm.federation.wire import wire
from securetm.sessions.identities import COORDINATOR
from securetm.stages import Unwatched

WAYS: Mapping[str, Mapping[str, Any]] = {
    "one local epoch a round": {"model": {"name": "prodlda", "local_epochs": 1}, "training": {"rounds": 5}},
    "a gradient per mini-batch": {"model": {"name": "prodlda"}, "training": {"rounds": 60}},
}
REPEATS = 3


def bench(parties: int = 10, length: int = 0, on_progress: OnProgress | None = None) -> Row:
    """Seconds per round under `masked` beside `open`, runs in turn; the fastest of each counts.

    With a `length`, masked rounds of such vectors over the network, beside the same roles in one process and Flower's SecAgg+.
    """
    if length:
        rows, missing = over_the_network(parties, length, on_progress)
        return record("federation", rows, missing=missing, parties=parties, length=length, packages=("grpcio",))
    nodes = lda_nodes(LdaNodes(nodes=1, topics=20, words=2_000, documents=1_900 * parties), seed=0)
    corpora = equal(next(iter(nodes.train.values())), parties, seed=0)
    step = stepper(len(WAYS) * REPEATS * 2, on_progress)
    rows = []
    for way, settings in WAYS.items():
        works = {profile: partial(_seconds_per_round, profile, settings, corpora) for profile in ("masked", "open")}
        least = least_by_turns(works, REPEATS, step)
        rows.append(beside(f"masked, {way}", least["masked"], least["open"], "s per round", "open", digits=4))
    return record("federation", rows, parties=parties)


def _seconds_per_round(profile: str, settings: Mapping[str, Any], corpora: Mapping[str, Corpus]) -> float:
    words = next(iter(corpora.values())).vocabulary
    with begun(corpora, words, {**settings, "profile": profile}) as run:
        train(run, Unwatched())
        store = CoordinatorStore(run.coordinator)
        found = [row[0] for row in store.rows("SELECT seconds FROM rounds WHERE question = 'train' ORDER BY serial")]
        store.close()
    return float(np.mean(found[1:]))  # the first also waits for whatever is compiled or set up once


# ---- masked rounds over the network -----------------------------------------------------------------------------------


ROUNDS = 10
WORKERS = 2  # processes of parties
MOST_IN_ONE = 30  # parties that one process plays; each takes tens of megabytes where vectors have a million values
DEADLINE = 600.0  # seconds
Ask = Callable[[Mapping[str, bytes], int], Iterator[tuple[str, bytes | memoryview]]]


def load_of(parties: int, length: int) -> PlannedSession:
    """What is asked of every role: so many parties, each with a vector of so many values."""
    whole = Terms((Block("values", (length,)),), domain=Domain.INTEGER, reach=2**20)
    return PlannedSession(MaskedSum(), tuple(f"party-{place:03}" for place in range(parties)), whole)


def _values(load: PlannedSession) -> np.ndarray:
    return np.arange(load.promised.size) % 1000


class SummingParty:
    """A party that has a vector and no documents. It answers with the project's own messages."""

    def __init__(self, load: PlannedSession, name: str) -> None:
        self._load, self._terms, self._role, self._vector = load, load.terms, load.party(name), {"values": _values(load)}

    def handle(self, request: bytes) -> bytes | memoryview:
        session, body = wire.unpack_request(request)
        if isinstance(body, wire.Prepare):
            self._exchange: Exchange = self._role.prepare(body.rounds)
            parcels = self._exchange.begin()
        else:
            assert isinstance(body, wire.Forward)
            if body.parcel:
                parcels = self._exchange.receive(COORDINATOR, body.parcel)
            else:
                number = int.from_bytes(body.round_id, "big")
                self._exchange = self._role.round(self._load.cohort(number), self._terms, self._vector)
                parcels = self._exchange.begin()
        return wire.pack_reply(session, wire.Accepted(tuple(parcel for _, parcel in parcels)))


@dataclass
class SummingCoordinator:
    """A coordinator that runs masked rounds, whoever carries its messages."""

    load: PlannedSession
    ask: Ask
    up: int = 0
    down: int = 0
    setup: float = 0.0  # seconds
    seconds: list[float] = field(default_factory=list)

    def run(self, step: Callable[[], None] = lambda: None) -> None:
        """Sets up, and runs all rounds. Each sum must be right."""
        begun = time.perf_counter()
        role, terms = self.load.coordinator(), self.load.terms
        self._carry(role.prepare(ROUNDS), wire.Prepare(b"set-up", 1, ROUNDS), b"set-up")
        self.up = self.down = 0
        self.setup = time.perf_counter() - begun
        for number in range(ROUNDS):
            cohort, begun = self.load.cohort(number), time.perf_counter()
            self._carry(role.round(cohort, terms, None), wire.Forward(cohort.round_id, b""), cohort.round_id)
            total = role.answer(cohort.round_id).total
            assert total is not None
            assert np.array_equal(total["values"], _values(self.load) * len(self.load.members))
            self.seconds.append(time.perf_counter() - begun)
            step()

    def _carry(self, exchange: Exchange, first: wire.Body, name: bytes) -> None:
        requests = dict.fromkeys(self.load.members, wire.pack_request(bytes(32), first))
        while requests:
            self.down += sum(map(len, requests.values()))
            for member, reply in self.ask(requests, wire.MOST_BYTES):
                self.up += len(reply)
                outcome = wire.unpack_reply(reply, member)[1]
                assert isinstance(outcome, wire.Accepted)
                for parcel in outcome.parcels:
                    exchange.receive(member, parcel)
            further = exchange.expire(())
            requests = {member: wire.pack_request(bytes(32), wire.Forward(name, bytes(parcel))) for member, parcel in further}


def over_the_network(parties: int, length: int, on_progress: OnProgress | None) -> tuple[list[Row], list[str]]:
    """Rounds over the network; beside them in one process, where all parties fit into one, and Flower's SecAgg+.

    Returns rows, and what peer is missing.
    """
    load, is_compared = load_of(parties, length), parties <= MOST_IN_ONE
    step = stepper((1 + is_compared) * ROUNDS + 1, on_progress)
    alone = None
    if is_compared:
        roles = {name: SummingParty(load, name) for name in load.members}
        alone = SummingCoordinator(load, lambda requests, _: ((n, roles[n].handle(r)) for n, r in requests.items()))
        alone.run(step)
    network, peak, before = _over_the_network(load, step)
    flower = flower_rounds(parties, length)
    step()
    ours = median(network.seconds)
    case = f"masked sum over the network, {parties} parties, {length:,} values"
    figures = {
        "rounds per minute": (60 / ours, "rounds per minute"),
        "bytes of a round to the coordinator": (network.up / ROUNDS / 1e6, "MB"),
        "bytes of a round from the coordinator": (network.down / ROUNDS / 1e6, "MB"),
        "coordinator's peak memory, its whole process": (peak, "MiB"),
        "coordinator's peak memory above its start": (peak - before, "MiB"),
    }
    rows = [figure(f"{case}: a round", ours, "s")]
    if alone is not None:
        peer = "the same roles in one process, without a network"
        rows = [beside(f"{case}: a round", ours, median(alone.seconds), "s", peer)]
    rows += [figure(f"{case}: {what}", value, unit) for what, (value, unit) in figures.items()]
    lacking = lacks_of_flower(flower, parties)
    if flower is None or lacking:
        return rows, [lacking]
    whole = (network.setup + sum(network.seconds)) / ROUNDS
    return rows + beside_flower(case, flower, whole, network.up / ROUNDS / 1e6, peak), []


# ---- over the network ------------------------------------------------------------------------------------------------


def _over_the_network(load: PlannedSession, step: Callable[[], None]) -> tuple[SummingCoordinator, float, float]:
    """Returns the coordinator after its rounds, and its process's memory at its peak and before, in MiB."""
    context = multiprocessing.get_context("spawn")
    with TemporaryDirectory() as folder:
        home = Path(folder)
        _make_keys(home, load)
        here, there = context.Pipe()
        processes = [context.Process(target=_coordinate, args=(there, home, load), daemon=True)]
        shares = [load.members[first::WORKERS] for first in range(WORKERS)]
        processes += [context.Process(target=_take_part, args=(home, load, share), daemon=True) for share in shares]
        for one in processes:
            one.start()
        there.close()
        for _ in range(ROUNDS):
            here.recv()
            step()
        seconds, setup, up, down, peak, before = here.recv()
        for one in processes:
            one.join()
    return SummingCoordinator(load, lambda *_: iter(()), up, down, setup, seconds), peak, before


def _make_keys(home: Path, load: PlannedSession) -> None:
    import socket

    from securetm.credentials.diagnosis import now_utc
    from securetm.credentials.issuing import open_authority
    from securetm.credentials.keys import make_keys
    from securetm.credentials.roster import FederationRoster, Member, write_roster

    since = now_utc() - timedelta(minutes=1)
    authority = open_authority(home / "authority", "measured", None, since)
    entries = []
    for name in (COORDINATOR, *load.members):
        keys = make_keys(home / name, None)
        certificate = authority.issue(name, keys.tls_public_key, (name,), since, 1)
        entries.append(Member(name, keys.public_identity, certificate, lasting=keys.public.lasting))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    write_roster(home / "roster.toml", FederationRoster("measured", 1, address, entries[0], tuple(entries[1:])))


def _coordinate(to: Any, home: Path, load: PlannedSession) -> None:
    with _hub(home) as hub:
        assert hub.wait_for(load.members, DEADLINE) == frozenset(load.members)
        before = memory_now("VmRSS")
        coordinator = SummingCoordinator(load, hub.parties(DEADLINE).ask)
        coordinator.run(lambda: to.send(None))
        to.send((coordinator.seconds, coordinator.setup, coordinator.up, coordinator.down, memory_now(), before))


@contextmanager
def _hub(home: Path) -> Iterator[Any]:
    from securetm.credentials.keys import Keys
    from securetm.credentials.roster import read_roster
    from securetm.federation.network.hub import Hub

    roster = read_roster(home / "roster.toml")
    hub = Hub(Keys.open(home / COORDINATOR), roster, _agreed(), home / "spool", roster.address)
    hub.start()
    try:
        yield hub
    finally:
        hub.close(finished=True)


def _take_part(home: Path, load: PlannedSession, names: tuple[str, ...]) -> None:
    from securetm.credentials.keys import Keys
    from securetm.credentials.roster import read_roster
    from securetm.federation.network.dialing import BackOff, Dialer

    roster = read_roster(home / "roster.toml")
    threads = []
    for name in names:
        dialer = Dialer(name, Keys.open(home / name), roster, _agreed(), lambda: wire.MOST_BYTES, back_off=BackOff(0.2, 1.0))
        threads.append(threading.Thread(target=dialer.run, args=(SummingParty(load, name).handle, threading.Event())))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _agreed() -> Any:
    from securetm.federation.network.events import Agreed

    return Agreed(bytes(32), bytes(32))
