"""Whether a party may connect: its certificate, its hello, and what both ends must hold alike. It keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from securetm.credentials.diagnosis import member_with, now_utc
from securetm.credentials.key_files import Keys
from securetm.credentials.roster import FederationRoster
from securetm.federation.network.events import Agreed
from securetm.federation.network.handshake import check_hello, make_welcome
from securetm.federation.network.network_errors import AnotherCertificate, OldTls, UnknownParty
from securetm.federation.network.tls import NEWEST


@dataclass(frozen=True)
class Admission:
    """Checks parties against the coordinator's roster."""

    keys: Keys
    roster: FederationRoster
    agreed: Agreed
    epoch: bytes

    def welcome(self, hello: Any, challenge: bytes, channel: Mapping[str, Sequence[bytes]]) -> Any:
        """Returns the welcome of a party, or refuses it by name. `channel` is what grpc knows of the TLS connection."""
        if channel.get("ssl_tls_version", (b"",))[0].decode() != NEWEST:
            raise OldTls()
        holder = member_with(channel.get("x509_pem_cert", (b"",))[0], self.roster, now_utc())
        if hello.name not in self.roster.members:
            raise UnknownParty()
        if hello.name != holder:
            raise AnotherCertificate()
        version = check_hello(hello, self.roster, self.agreed, challenge)
        return make_welcome(self.keys, self.roster, challenge, hello, version, self.epoch)
