"""How both ends of a channel prove who they are: TLS 1.3 with pinned certificates, then a challenge, a hello and a welcome.

An end trusts exactly the certificates of the roster, whoever issued them. Each signature covers both certificates and a nonce
of each end, so that it serves on no other channel and at no other time.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import grpc

from securetm.credentials.certificates import CertificateRefused
from securetm.credentials.diagnosis import check_coordinator, member_with, now_utc
from securetm.credentials.hybrid_identity import FORMER_SIGNATURE, Purpose
from securetm.credentials.keys import Keys
from securetm.credentials.roster import FederationRoster, check_address
from securetm.errors import SecuretmError
from securetm.federation.network import network_pb2 as pb
from securetm.federation.network.events import (
    Agreed,
    AnotherCertificate,
    AnotherPlan,
    AnotherProfile,
    AnotherRoster,
    Declined,
    OldTls,
    OldVersion,
    OtherFederation,
    UnknownParty,
    WrongHello,
)

_SECONDS = 5.0  # for each step of a diagnosis


class CertificateNotAccepted(SecuretmError):
    """the coordinator at {address} does not accept this party's certificate"""

    address: str
    hint = "both sides need the same roster and the right time: compare fingerprints with `securetm keys show`, and both clocks"


def server_credentials(keys: Keys, roster: FederationRoster, authorities: Iterable[bytes]) -> grpc.ServerCredentials:
    """Returns the coordinator's credentials: only holders of a pinned certificate, or of one by these authorities, come in.

    With the authority that issued them, a party with an old certificate gets as far as a refusal by name.
    """
    pinned = (one.certificate.pem for one in roster.everybody)  # the coordinator asks for its own health
    key = [(keys.tls_key_pem, roster.coordinator.certificate.pem)]
    return grpc.ssl_server_credentials(key, b"\n".join((*pinned, *authorities)), require_client_auth=True)


def channel_credentials(me: str, keys: Keys, roster: FederationRoster) -> grpc.ChannelCredentials:
    """Returns a party's credentials: it accepts one certificate, the coordinator's that its roster pins."""
    own = roster.member(me).certificate.pem
    return grpc.ssl_channel_credentials(roster.coordinator.certificate.pem, keys.tls_key_pem, own)


def diagnosed(roster: FederationRoster) -> SecuretmError | None:
    """Says why a handshake with the coordinator failed, or nothing where no end answers: that may pass. Run by a party."""
    try:
        shown = _shown_certificate(roster.address)
        check_coordinator(shown, roster, now_utc())
    except CertificateRefused as refusal:
        return refusal
    except OSError:
        return None
    return CertificateNotAccepted(roster.address)


def _shown_certificate(address: str) -> str:
    """Returns the certificate that is shown there, in PEM. Nothing is sent that the other end could use."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # what it shows is compared with the roster
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    host, port = check_address(address, "the roster")
    with socket.create_connection((host, port), _SECONDS) as plain, context.wrap_socket(plain) as secured:
        return ssl.DER_cert_to_PEM_cert(secured.getpeercert(binary_form=True) or b"")


VERSIONS = (2,)  # of the network protocol, that this software speaks; 1 was signed by Ed25519 alone


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
    if not set(hello.versions) & set(VERSIONS) and len(hello.signature) == FORMER_SIGNATURE:
        raise OldVersion()  # whoever sent it: nothing follows from it but this refusal
    if not roster.member(hello.name).public.is_signed(hello.signature, Purpose.HELLO, *signed):
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
    return welcome.version in hello.versions and roster.coordinator.public.is_signed(
        welcome.signature, Purpose.WELCOME, *signed
    )


def _covered(roster: FederationRoster, challenge: bytes, hello: Any) -> tuple[bytes, ...]:
    """Returns the fields that both signatures cover: the channel, and all that the party says."""
    ends = (roster.coordinator, roster.member(hello.name))
    certificates = (hashlib.sha256(one.certificate.der).digest() for one in ends)
    versions = b"".join(version.to_bytes(4, "big") for version in hello.versions)
    said = (hello.roster, hello.agreement, hello.profile, hello.nonce, hello.declines.encode())
    return (*certificates, challenge, versions, hello.name.encode(), hello.federation.encode(), *said)


def admitted(hello: Any, roster: FederationRoster, channel: Mapping[str, Sequence[bytes]]) -> None:
    """Refuses by name who does not hold the certificate of the party in its hello. Run by the coordinator.

    `channel` is what grpc knows of the TLS connection.
    """
    if channel.get("ssl_tls_version", (b"",))[0].decode() != "TLSv1.3":
        raise OldTls()
    holder = member_with(channel.get("x509_pem_cert", (b"",))[0], roster, now_utc())
    if hello.name not in roster.members:
        raise UnknownParty()
    if hello.name != holder:
        raise AnotherCertificate()
