"""Connections that never become a member's stand in nobody's way: parties meet their coordinator while thousands of them do."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from securetm.federation.network.door import MOST_STRANGERS

from .meeting import PATIENCE, Events, Meeting, Parties

pytestmark = pytest.mark.own_draws

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
