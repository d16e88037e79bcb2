"""What both ends of a channel must hold alike besides the roster, and who is told what happens on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from securetm.data_classes import dataclass
from securetm.errors import Misuse

LONGEST_FACT = 200  # characters


@dataclass(frozen=True)
class Agreed:
    """What both ends of a channel must hold alike, besides the roster."""

    agreement: bytes  # digest of the plan
    profile: bytes  # digest of the profile


class NetworkEvents:
    """Is told what happens on the network, for logs and metrics; this one ignores it. Any thread may call, and none may wait.

    At a party's end the other end is called `coordinator`.
    """

    def connected(self, party: str) -> None:
        """Called when a stream is open and both ends have proved who they are."""

    def lost(self, party: str, reason: str) -> None:
        """Called when such a stream has ended."""

    def refused(self, party: str, reason: str) -> None:
        """Called when an end is not let in; the name is the one that it claims, or empty."""

    def carried(self, party: str, received: int, sent: int) -> None:
        """Called at a party's end when a message has passed as a whole, with its bytes."""


def event_line(event: str, names: Iterable[str], facts: Mapping[str, Any]) -> str:
    """One line of a log, as JSON: when it was, the event, and these facts in their order; a text is cut."""
    cut = {name: fact[:LONGEST_FACT] if isinstance(fact := facts[name], str) else fact for name in names}
    return json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **cut})


class Rejection(Misuse):
    """the coordinator does not let this party in"""


class UnknownParty(Rejection):
    """the coordinator's roster has no party of this name"""

    hint = "the coordinator holds another roster, or the name in PARTY.toml is misspelt: compare the rosters' fingerprints"


class Declined(Rejection):
    """the coordinator has heard that this party does not take part: {reason}"""

    reason: str = ""  # one of the REASONS of refusal_errors.py


class AnotherCertificate(Rejection):
    """the certificate that this party showed is not the one that the coordinator's roster pins for it"""

    hint = "after a rotation of keys every party and the coordinator need the new roster: `securetm keys accept`"


class OtherFederation(Rejection):
    """this party and the coordinator belong to federations of different names"""

    hint = "compare `federation` at the beginning of both rosters"


class AnotherRoster(Rejection):
    """this party and the coordinator hold different rosters"""

    hint = "compare the fingerprints of both rosters by telephone, and accept the newer one: `securetm keys accept`"


class AnotherPlan(Rejection):
    """this party and the coordinator hold different plans"""

    hint = "ask the coordinator for the plan, read it, and put the same file beside PARTY.toml"


class AnotherProfile(Rejection):
    """this party and the coordinator hold different profiles of the same name"""

    hint = "the other side runs another version of securetm, or a profile file of its own: compare `securetm explain`"


class OldVersion(Rejection):
    """this party and the coordinator speak no common version of the network protocol"""

    hint = "install the same version of securetm on both sides; the older one has to be upgraded"


class OldTls(Rejection):
    """the connection does not use TLS 1.3"""

    hint = "something between both ends takes the connection apart; it has to be let through as it is"


class WrongHello(Rejection):
    """the signature of this party's hello is not by the identity that the coordinator's roster pins for it"""

    hint = "the party's identity key is not the one of the roster: compare `securetm keys show` with the roster"


class AlreadyConnected(Rejection):
    """a party of this name is connected already"""

    hint = "end the other process of this party; if its machine has failed, the coordinator notices within half a minute"


class WrongFrame(Rejection):
    """what this party sent is no frame, or came out of order"""

    hint = "the other side runs another version, or something between both ends changes what passes"


class TooSlow(Rejection):
    """the other end did not say in time who it is"""

    hint = "the network or the machine at the other end is overloaded; the party tries again by itself"


class Closing(Rejection):
    """the coordinator is stopping and will be back"""

    hint = "the party tries again by itself"
