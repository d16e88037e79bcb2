"""What interrupts messages: a cut connection, a coordinator that stops, a full disk, a taken port, an end that is silent."""

from __future__ import annotations

import resource
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import grpc
import pytest

from securetm.errors import Failed
from securetm.federation.network import hub as hub_module
from securetm.federation.network.dialing import channel_options
from securetm.federation.network.events import Closing, TooSlow, WrongFrame
from securetm.federation.network.frames import METHOD, unpacked
from securetm.federation.network.handshake import channel_credentials

from .meeting import PATIENCE, Events, Meeting, Parties

pytestmark = pytest.mark.own_draws
LONG = 3_000_000


class Wire:
    """A relay between a party and the hub, which cuts its first connection once so many bytes have passed to the hub."""

    def __init__(self, to: str, after: int) -> None:
        self.connections, self._after, self._to = 0, after, to
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open: list[socket.socket] = [self._server]
        self._threads[0].start()

    def _accept(self) -> None:
        host, _, port = self._to.rpartition(":")
        with suppress(OSError):
            while True:
                here, _ = self._server.accept()
                self.connections += 1
                there = socket.create_connection((host, int(port)))
                self._open += [here, there]
                left = self._after if self.connections == 1 else 1 << 40
                for one, other, most in ((here, there, left), (there, here, 1 << 40)):
                    self._threads.append(threading.Thread(target=self._pass, args=(one, other, most), daemon=True))
                    self._threads[-1].start()

    @staticmethod
    def _pass(one: socket.socket, other: socket.socket, left: int) -> None:
        with suppress(OSError):
            while left > 0 and (content := one.recv(1 << 16)):
                other.sendall(content)
                left -= len(content)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)
        for one in self._open:
            one.close()


def test_a_connection_cut_in_the_middle_of_a_vector(meeting: Meeting) -> None:
    """The party dials again and sends the same reply. It is asked to work once."""
    hub = meeting.hub()
    hub.start()
    wire = Wire(meeting.roster.address, LONG // 2)
    dialer, handled = meeting.dialer("north"), []
    dialer.roster = replace(meeting.roster, address=wire.address)
    hub.roster = dialer.roster  # the address is a part of what both compare

    def handle(request: bytes) -> bytes:
        handled.append(request)
        return request * LONG

    with Parties() as parties:
        parties.callback(wire.close)
        parties.callback(hub.close)
        parties.run(dialer, handle)
        assert hub.wait_for(["north"], PATIENCE)
        assert list(hub.parties(PATIENCE).ask({"north": b"x"}, LONG)) == [("north", b"x" * LONG)]
        assert (len(handled), wire.connections) == (1, 2)


def test_a_coordinator_that_stops_and_comes_back(meeting: Meeting) -> None:
    heard = Events()
    first, second = meeting.hub(), meeting.hub()
    first.start()
    with Parties() as parties:
        parties.run(meeting.dialer("north", events=heard), lambda request: request)
        assert first.wait_for(["north"], PATIENCE)
        first.close()
        assert heard.wait("refused", "coordinator").startswith((Closing.__name__, "UNAVAILABLE"))
        with pytest.raises(Failed, match="the network was closed while messages were under way"):
            list(first.parties(PATIENCE).ask({"north": b"x"}, 100))
        second.start()
        assert second.wait_for(["north"], PATIENCE)
        second.close(finished=True)
    assert parties.ended == {"north": True}


def test_closing_ends_what_waits(meeting: Meeting) -> None:
    hub = meeting.hub()
    hub.start()
    begun = hub.begin({"north": b"nobody is there"}, 100)
    hub.close()
    with pytest.raises(Failed, match="the network was closed while messages were under way"):
        begun["north"].reply.result(PATIENCE)


def test_a_late_reply_is_dropped_and_the_next_one_counts(meeting: Meeting) -> None:
    hub, may = meeting.hub(), threading.Event()
    hub.start()

    def handle(request: bytes) -> bytes:
        if request == b"slow":
            assert may.wait(PATIENCE)
        return request * 2

    with Parties() as parties:
        parties.callback(hub.close)
        parties.run(meeting.dialer("north"), handle)
        assert hub.wait_for(["north"], PATIENCE)
        assert list(hub.parties(0.05).ask({"north": b"slow"}, 100)) == []
        may.set()
        assert list(hub.parties(PATIENCE).ask({"north": b"next"}, 100)) == [("north", b"nextnext")]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """What a full disk does to a file that grows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_room_for_replies(meeting: Meeting) -> None:
    hub = meeting.hub(most=0)  # everything goes to the disk
    hub.start()
    with Parties() as parties:
        parties.callback(hub.close)
        parties.run(meeting.dialer("north"), lambda request: request * 2_000_000)
        assert hub.wait_for(["north"], PATIENCE)
        with files_of_at_most(1_000_000), pytest.raises(Failed, match="there is no room for the replies of the parties in"):
            list(hub.parties(PATIENCE).ask({"north": b"x"}, LONG))
        assert list(hub.parties(PATIENCE).ask({"north": b"y"}, LONG)) == [("north", b"y" * 2_000_000)]


@contextmanager
def raw_stream(meeting: Meeting, frames: Iterator[bytes]) -> Iterator[grpc.Call]:
    """A stream of the party north, without anything of ours."""
    credentials = channel_credentials("north", meeting.keys["north"], meeting.roster)
    options = tuple(channel_options(meeting.roster).items())
    with grpc.secure_channel(meeting.roster.address, credentials, options) as channel:
        yield channel.stream_stream(METHOD)(frames, timeout=PATIENCE)


def test_an_end_that_does_not_say_who_it_is(meeting: Meeting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "_HELLO_SECONDS", 0.1)
    events, ended = Events(), threading.Event()
    hub = meeting.hub(events)
    hub.start()

    def silent() -> Iterator[bytes]:
        ended.wait(PATIENCE)
        yield from ()

    with raw_stream(meeting, silent()) as stream:
        frames = [unpacked(frame, "it", "challenge", "rejected") for frame in stream]
        ended.set()
    hub.close()
    assert frames[-1][1].name == events.wait("refused", "") == TooSlow.__name__


def test_a_frame_that_is_none(meeting: Meeting) -> None:
    hub = meeting.hub()
    hub.start()
    with raw_stream(meeting, iter([b"\xff\xff"])) as stream:
        frames = [unpacked(frame, "it", "challenge", "rejected") for frame in stream]
    hub.close()
    assert frames[-1][1].name == WrongFrame.__name__


def test_only_tls_1_3_is_spoken(meeting: Meeting) -> None:
    hub = meeting.hub()
    hub.start()
    host, _, port = meeting.roster.address.rpartition(":")
    try:
        for version, spoken in ((ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, True)):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.minimum_version = context.maximum_version = version
            with socket.create_connection((host, int(port)), PATIENCE) as plain:
                try:
                    context.wrap_socket(plain).close()
                    found = True
                except (ssl.SSLError, ConnectionError):
                    found = False
            assert found is spoken
    finally:
        hub.close()
