"""TLS 1.3 with the certificates that the roster pins, for both ends, and what went wrong where a handshake fails.

An end trusts exactly the certificates of the roster, whoever issued them.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable

import grpc

from securetm.credentials.certificate_errors import CertificateRefused
from securetm.credentials.diagnosis import check_coordinator, now_utc
from securetm.credentials.key_files import Keys
from securetm.credentials.roster import FederationRoster, check_address
from securetm.errors import SecuretmError
from securetm.federation.network.network_errors import CertificateNotAccepted

NEWEST = "TLSv1.3"
_SECONDS = 5.0  # for each step of a diagnosis


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
