"""What the TLS of grpc agrees on by itself: X25519MLKEM768, offered first by the party and taken by the coordinator."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from securetm.federation.network.handshake import channel_credentials, server_credentials

from .meeting import Meeting
from .relay import Relay

pytestmark = pytest.mark.own_draws
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
