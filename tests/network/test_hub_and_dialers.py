"""Hub and dialers: whole messages in both directions, in roster order, over mutual TLS 1.3 with a post-quantum group."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from grpc._cython import cygrpc

from securetm.federation.network import dialing
from securetm.federation.network import hub as listening
from securetm.federation.network.handshake import channel_credentials, server_credentials

from .meeting import FIVE, PATIENCE, Events, Meeting, Parties
from .relay import Relay

pytestmark = pytest.mark.own_draws  # threads draw at once, and the stream of a test serves one of them


def test_replies_come_whole_and_in_roster_order(meeting: Meeting) -> None:
    """Also where they are longer than a chunk, empty, or arrive in another order."""
    events = Events()
    hub = meeting.hub(events, most=3_000_000)  # so that some of them wait on disk
    assert hub.start() > 0
    lengths = dict(zip(FIVE, (0, 1, 262_144, 262_145, 5_000_000), strict=True))
    turn = {name: threading.Event() for name in FIVE}

    def answers(name: str, after: str | None):
        def handle(request: bytes) -> bytes:
            if after is not None:
                assert turn[after].wait(PATIENCE)
            turn[name].set()
            return hashlib.sha256(name.encode() + request).digest()[:1] * lengths[name]

        return handle

    with Parties() as parties:
        for name, after in zip(FIVE, (*FIVE[1:], None), strict=True):  # the last one in the roster answers first
            parties.run(meeting.dialer(name), answers(name, after))
        assert hub.wait_for(FIVE, PATIENCE) == frozenset(FIVE)
        requests = {name: name.encode() * 200_000 for name in reversed(FIVE)}
        replies = dict(network := list(hub.parties(PATIENCE).ask(requests, 1 << 30)))
        assert [name for name, _ in network] == list(FIVE)
        for name in FIVE:
            assert replies[name] == hashlib.sha256(name.encode() + requests[name]).digest()[:1] * lengths[name]
        hub.close(finished=True)
    assert parties.ended == dict.fromkeys(FIVE, True)


def test_whoever_hears_that_a_party_has_come_finds_it_present(meeting: Meeting) -> None:
    """A coordinator that waits for parties looks when it is told, and not again until the next one comes."""
    found: list[bool] = []

    class Looking(Events):
        def connected(self, party: str) -> None:
            found.append(party in hub.present())
            super().connected(party)

    events = Looking()
    hub = meeting.hub(events)
    hub.start()
    with Parties() as parties:
        parties.run(meeting.dialer("north"), bytes)
        events.wait("connected", "north")
        hub.close(finished=True)
    assert found == [True]


@pytest.mark.faults
def test_a_party_that_nobody_asks_stays_connected(meeting: Meeting) -> None:
    """For longer than five of its keepalive pings: too many of them would end the stream."""
    events = Events()
    hub = meeting.hub(events)
    hub.start()
    with Parties() as parties:
        parties.run(meeting.dialer("north"), bytes)
        events.wait("connected", "north")
        with pytest.raises(AssertionError):  # nothing is lost while it waits
            events.wait("lost", "north", patience=130.0)
        hub.close(finished=True)
    assert parties.ended == {"north": True}


def test_a_party_that_leaves_while_it_answers_sends_nothing(meeting: Meeting) -> None:
    """Its interval may not have passed yet, and an early reply would tell how long the answer took."""
    hub, leaving, stops = meeting.hub(), threading.Event(), list[threading.Event]()
    hub.start()

    def answer(_: bytes) -> bytes:
        assert leaving.wait(PATIENCE)
        stops[0].set()
        return b"too early"

    with Parties() as parties:
        stops.append(parties.run(meeting.dialer("north"), answer))
        leaving.set()
        assert hub.wait_for(("north",), PATIENCE) == {"north"}
        assert list(hub.parties(1.0).ask({"north": b"a question"}, 1_000)) == []
    hub.close()
    assert parties.ended == {"north": False}


def test_a_reply_after_the_deadline_is_dropped_and_noted(meeting: Meeting) -> None:
    hub, free = meeting.hub(), threading.Event()
    hub.start()
    asked = hub.parties(0.05)

    def answer(request: bytes) -> bytes:
        assert request == b"again" or free.wait(PATIENCE)
        return request

    with Parties() as parties:
        parties.run(meeting.dialer("north"), answer)
        assert hub.wait_for(("north",), PATIENCE) == {"north"}
        assert list(asked.ask({"north": b"a question"}, 1_000)) == []
        assert not asked.late
        free.set()
        # it comes after the late one
        assert list(hub.parties(PATIENCE).ask({"north": b"again"}, 1_000)) == [("north", b"again")]
        assert [len(seconds) for seconds in asked.late.values()] == [1]
        assert min(asked.late["north"]) > 0.05
        hub.close(finished=True)


def test_grpc_knows_every_option_that_it_is_given() -> None:
    """It ignores the others without a word."""
    library = Path(cygrpc.__file__).read_bytes()
    assert [name for name in (*listening._LIMITS, *dialing._LIMITS) if name.encode() + b"\0" not in library] == []


# ---- the group of TLS ------------------------------------------------------------------------------------------------------


X25519_ML_KEM_768 = 0x11EC
SUPPORTED_GROUPS, KEY_SHARE = 10, 51


class Answering(grpc.GenericRpcHandler):
    """Answers every call."""

    def service(self, _: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request)


def extensions(hello: bytes) -> dict[int, bytes]:
    """Of a ClientHello or ServerHello at the beginning of a stream."""
    body = hello[5:]  # behind the head of the record
    at = 4 + 2 + 32
    at += 1 + body[at]  # the session
    at += 3 if body[0] == 2 else 2 + int.from_bytes(body[at : at + 2], "big") + 2  # the cipher, or ciphers and no compression
    end, found = at + 2 + int.from_bytes(body[at : at + 2], "big"), dict[int, bytes]()
    at += 2
    while at < end:
        kind, length = int.from_bytes(body[at : at + 2], "big"), int.from_bytes(body[at + 2 : at + 4], "big")
        found[kind] = body[at + 4 : at + 4 + length]
        at += 4 + length
    return found


def test_both_ends_agree_on_a_group_that_outlasts_the_recording(keyring: Meeting) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Answering(),))
    port = server.add_secure_port("127.0.0.1:0", server_credentials(keyring.keys["coordinator"], keyring.roster, ()))
    server.start()
    try:
        with Relay(port) as relay:
            credentials = channel_credentials("north", keyring.keys["north"], keyring.roster)
            with grpc.secure_channel(f"127.0.0.1:{relay.port}", credentials) as channel:
                assert channel.unary_unary("/any/call")(b"said", timeout=60) == b"said"
            client, answer = (bytes(relay.passed[way]) for way in ("to the coordinator", "to the parties"))
    finally:
        server.stop(None)
    assert int.from_bytes(extensions(client)[SUPPORTED_GROUPS][2:4], "big") == X25519_ML_KEM_768
    assert int.from_bytes(extensions(answer)[KEY_SHARE][:2], "big") == X25519_ML_KEM_768
