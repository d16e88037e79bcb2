"""Refusals and failures where Flower carries the messages. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, Refused, SecuretmError


class NotIntroduced(Refused):
    """the message is of no channel that is open"""

    hint = "the coordinator opens a new channel by itself"


class ReplayedMessage(Refused):
    """message {number} of this channel came before"""

    number: int
    hint = "the relay delivered a message twice; the coordinator takes the party for missing, and asks anew"


class OtherRoster(Refused):
    """the two ends of the channel hold different rosters"""

    hint = "compare the digests: `securetm keys show`; accept the roster that all members signed"


class UnprovenName(Refused):
    """what {sender} signed does not fit its key in the roster"""

    sender: str
    hint = "it is another organisation, or the relay changed the message; nothing was sent to it"


class NodeFailed(SecuretmError):
    """a node sent no sealed reply: {reason}"""

    reason: str
    hint = "look into that SuperNode's log, and whether its party's process runs and holds the same roster"


class PartyNotReached(SecuretmError):
    """the party's process does not answer at {socket}: {problem}"""

    socket: str
    problem: str
    hint = "start it: `securetm join PARTY.toml --socket {socket}`"


class BadFlowerSetting(Misuse):
    """the Flower setting `{name}` {problem}"""

    name: str
    problem: str
    hint = "see docs/how-to/flower.md for the settings of `flwr run` and of `flower-supernode --node-config`"
