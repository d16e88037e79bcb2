"""How both ends of a channel prove who they are, beyond TLS: a challenge, a hello and a welcome, each bound to this channel.

A signature covers both certificates and a nonce of each end, so that it serves on no other channel and at no other time.
"""

from __future__ import annotations

import hashlib
from typing import Any

from securetm.credentials.key_files import Keys
from securetm.credentials.purposes import Purpose, is_signed
from securetm.credentials.roster import FederationRoster
from securetm.federation.network import network_pb2 as pb
from securetm.federation.network.events import Agreed
from securetm.federation.network.network_errors import (
    AnotherPlan,
    AnotherProfile,
    AnotherRoster,
    Declined,
    OldVersion,
    OtherFederation,
    WrongHello,
)

VERSIONS = (1,)  # of the network protocol, that this software speaks


def make_hello(
    me: str, keys: Keys, roster: FederationRoster, agreed: Agreed, challenge: bytes, nonce: bytes, declines: str = ""
) -> Any:
    """Returns the signed hello of a party, or its signed statement of why it does not take part."""
    hello = pb.Hello(versions=VERSIONS, name=me, federation=roster.federation, roster=roster.digest, nonce=nonce)
    hello.declines = declines
    hello.agreement, hello.profile = agreed.agreement, agreed.profile
    hello.signature = keys.sign(Purpose.HELLO, *_covered(roster, challenge, hello))
    return hello


def check_hello(hello: Any, roster: FederationRoster, agreed: Agreed, challenge: bytes) -> int:
    """Returns the version that both speak. Run by the coordinator, on a party whose certificate it has checked."""
    signed = _covered(roster, challenge, hello)
    if not is_signed(roster.member(hello.name).identity, hello.signature, Purpose.HELLO, *signed):
        raise WrongHello()
    if hello.declines:  # whatever it agreed to: that may be the reason
        raise Declined(hello.declines)
    version = max(set(hello.versions) & set(VERSIONS), default=0)
    alike = {
        OtherFederation: hello.federation == roster.federation,
        OldVersion: version > 0,
        AnotherRoster: hello.roster == roster.digest,
        AnotherPlan: hello.agreement == agreed.agreement,
        AnotherProfile: hello.profile == agreed.profile,
    }
    for refusal, same in alike.items():
        if not same:
            raise refusal()
    return version


def make_welcome(keys: Keys, roster: FederationRoster, challenge: bytes, hello: Any, version: int, epoch: bytes) -> Any:
    """Returns the signed welcome of the coordinator."""
    signed = (*_covered(roster, challenge, hello), version.to_bytes(4, "big"), epoch)
    return pb.Welcome(version=version, epoch=epoch, signature=keys.sign(Purpose.WELCOME, *signed))


def is_welcome(welcome: Any, roster: FederationRoster, challenge: bytes, hello: Any) -> bool:
    """Whether the coordinator of the roster signed this welcome for this channel, with a version that the party speaks."""
    signed = (*_covered(roster, challenge, hello), welcome.version.to_bytes(4, "big"), welcome.epoch)
    return welcome.version in hello.versions and is_signed(
        roster.coordinator.identity, welcome.signature, Purpose.WELCOME, *signed
    )


def _covered(roster: FederationRoster, challenge: bytes, hello: Any) -> tuple[bytes, ...]:
    """Returns the fields that both signatures cover: the channel, and all that the party says."""
    ends = (roster.coordinator, roster.member(hello.name))
    certificates = (hashlib.sha256(one.certificate.der).digest() for one in ends)
    versions = b"".join(version.to_bytes(4, "big") for version in hello.versions)
    names = (hello.name.encode(), hello.federation.encode())
    return (
        *certificates,
        challenge,
        versions,
        *names,
        hello.roster,
        hello.agreement,
        hello.profile,
        hello.nonce,
        hello.declines.encode(),
    )
