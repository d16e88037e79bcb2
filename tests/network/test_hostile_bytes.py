"""Hostile bytes and floods of connections: neither role crashes, hangs or grows, and honest ends are served meanwhile."""

from __future__ import annotations

import random
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from securetm.credentials.roster import write_roster
from securetm.federation.network.door import MOST_STRANGERS

from .at_work import ROSTER, AtWork, at_work
from .hostile import Insider, Stranger
from .lying import lies
from .meeting import PATIENCE, Events, Meeting, Parties

pytestmark = pytest.mark.own_draws

CEILING = 192 << 20  # bytes by which a hub or a dialer may grow under attack (protocols/network.md)
MINUTE = 60.0


@pytest.fixture
def site(meeting: Meeting) -> Meeting:
    """A meeting whose roster is in a file, for other processes."""
    write_roster(meeting.home / ROSTER, meeting.roster)
    return meeting


@pytest.fixture
def hub(site: Meeting) -> Iterator[AtWork]:
    """A hub in a process of its own, and the honest party `south` in another."""
    with at_work("hub", site.home) as running, at_work("party", site.home, "south"):
        running.hear("listening")
        running.hear("right")
        yield running


def still_right(hub: AtWork) -> None:
    """The honest party is asked and answers, after everything that the hub has said so far."""
    hub.heard()
    hub.hear("right")


def grown(process: AtWork, begun: int) -> int:
    """By how much its memory grew at most."""
    more = process.memory(most=True) - begun
    print(f"it began with {begun / 2**20:.0f} MiB, and grew by {more / 2**20:.0f} MiB at most")
    return more


def test_a_member_that_sends_anything(hub: AtWork, site: Meeting) -> None:
    begun = hub.memory()
    for attempt in Insider(site, "north", random.Random(1)).attempts().values():
        attempt()
    still_right(hub)
    assert grown(hub, begun) < CEILING


def test_strangers_on_the_network(hub: AtWork, site: Meeting) -> None:
    begun, stranger = hub.memory(), Stranger(site, random.Random(2))
    for attempt in stranger.attempts().values():
        attempt()
    still_right(hub)
    stranger.release()
    assert grown(hub, begun) < CEILING


@pytest.mark.faults
def test_a_minute_of_everything(hub: AtWork, site: Meeting) -> None:
    """Several members and strangers at once, for a minute, with draws of their own."""
    begun, seed = hub.memory(), random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    tried: list[str] = []

    def attack(attempts: Callable[[random.Random], dict[str, Callable[[], None]]], number: int) -> None:
        rng, ends = random.Random(f"{seed} {number}"), time.monotonic() + MINUTE
        while time.monotonic() < ends:
            name, attempt = rng.choice(list(attempts(rng).items()))
            attempt()
            tried.append(name)

    strangers = [Stranger(site, random.Random(number)) for number in range(2)]
    with ThreadPoolExecutor(4) as attackers:
        done = [attackers.submit(attack, lambda rng, name=name: Insider(site, name, rng).attempts(), number)
                for number, name in enumerate(("north", "east"))]  # fmt: skip
        done += [
            attackers.submit(attack, lambda rng, one=one: one.attempts(), 10 + number) for number, one in enumerate(strangers)
        ]
        for one in done:
            one.result()
    for one in strangers:
        one.release()
    still_right(hub)
    print(f"{len(tried)} attempts")
    assert len(tried) > 100
    assert grown(hub, begun) < CEILING


@pytest.mark.faults
def test_ten_thousand_connections(hub: AtWork, site: Meeting) -> None:
    """They are opened and held, as far as the hub lets them; honest ends that are connected are served, and new ones soon."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    begun, stranger = hub.memory(), Stranger(site, random.Random(3))
    for number in range(10_000):
        with suppress(OSError):
            stranger.hold(b"\x16\x03\x01\x02\x00\x01" if number % 2 else b"")
    still_right(hub)
    stranger.release()
    with at_work("party", site.home, "west"):
        hub.hear("connected", "west")
    assert grown(hub, begun) < CEILING


@pytest.mark.parametrize("rounds", [1, pytest.param(40, marks=pytest.mark.faults)])
def test_a_coordinator_that_lies(site: Meeting, rounds: int) -> None:
    """A server with the coordinator's own keys sends anything; afterwards the party joins the true coordinator."""
    with at_work("party", site.home, "south") as party:
        party.hear("refused")  # nobody listens yet
        begun, rng = party.memory(), random.Random(4)
        for _ in range(rounds):
            for lie in lies(site, rng):
                lie()
        with at_work("hub", site.home) as true:
            true.hear("right")
        assert grown(party, begun) < CEILING


# ---- floods ----------------------------------------------------------------------------------------------------------------


TEN = tuple(f"party-{number}" for number in range(10))
ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 102))
HALF = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40)  # the beginning of a handshake, of which no more comes


@dataclass
class Flood:
    """So many idle and half-open connections from a hundred addresses. One that the hub ends is opened again."""

    address: tuple[str, int]
    idle: int
    half: int
    held: list[socket.socket] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    stands: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.ended.is_set():
            still = {one: _is_open(one) for one in self.held}
            for one in [one for one, is_open in still.items() if not is_open]:
                one.close()
            self.held = [one for one, is_open in still.items() if is_open]
            for number in range(len(self.held), self.idle + self.half):
                if self.ended.is_set():
                    break
                self._open(number)
            self.stands.set()
            self.ended.wait(0.02)  # what it does beside that takes the processor from those who are tried

    def _open(self, number: int) -> None:
        with suppress(OSError):
            one = socket.create_connection(self.address, PATIENCE, (ADDRESSES[number % len(ADDRESSES)], 0))
            self.held.append(one)
            if number % 2:
                one.sendall(HALF)

    def close(self) -> None:
        for one in self.held:
            one.close()


def _is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return bool(one.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextmanager
def flooded(meeting: Meeting, idle: int, half: int) -> Iterator[Flood]:
    """The flood has begun before the block, and goes on through it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    host, _, port = meeting.roster.address.rpartition(":")
    flood = Flood((host, int(port)), idle, half)
    thread = threading.Thread(target=flood.run)
    thread.start()
    try:
        assert flood.stands.wait(PATIENCE * 4)
        yield flood
    finally:
        flood.ended.set()
        thread.join(PATIENCE)
        flood.close()


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Meeting:
    return Meeting.of(TEN, tmp_path_factory.mktemp("ten"))


@pytest.mark.parametrize("each", [200, pytest.param(5_000, marks=pytest.mark.slow)])
def test_ten_parties_come_and_answer_while_connections_that_say_nothing_stand(ten: Meeting, each: int) -> None:
    each = min(each, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 2_000) // 4)  # this process holds both ends of them
    meeting = ten.at_another_port()
    events = Events()
    hub = meeting.hub(events)
    hub.start()
    with Parties() as parties:
        with flooded(meeting, each, each):
            for name in TEN:
                parties.run(meeting.dialer(name), lambda request: request[::-1])
            assert hub.wait_for(TEN, PATIENCE) == frozenset(TEN)
            for number in range(5):
                request = bytes([number]) * 100_000
                replies = dict(hub.parties(PATIENCE).ask(dict.fromkeys(TEN, request), 1 << 20))
                assert {name: bytes(reply) for name, reply in replies.items()} == dict.fromkeys(TEN, request[::-1])
        assert [one for one in events.told if one[0] == "lost"] == []
        hub.close(finished=True)


def test_strangers_from_one_address_leave_room_for_a_member_behind_it(ten: Meeting) -> None:
    """All of them from the address of the parties, which are behind one router with the attacker."""
    meeting = ten.at_another_port()
    hub = meeting.hub()
    hub.start()
    host, _, port = meeting.roster.address.rpartition(":")
    held = [socket.create_connection((host, int(port)), PATIENCE) for _ in range(MOST_STRANGERS * 2)]
    with Parties() as parties:
        parties.run(meeting.dialer(TEN[0]), lambda request: request)
        assert hub.wait_for(TEN[:1], PATIENCE) == {TEN[0]}
        assert sum(map(_is_open, held)) <= MOST_STRANGERS // 8 + len(TEN)
        hub.close(finished=True)
    for one in held:
        one.close()


def test_what_is_no_handshake_does_not_pass_the_door(ten: Meeting) -> None:
    meeting = ten.at_another_port()
    hub = meeting.hub()
    hub.start()
    host, _, port = meeting.roster.address.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as one:
        one.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert one.recv(1) == b""
    hub.close()
