"""Refusals of keys and signatures."""

from __future__ import annotations

from securetm.errors import Misuse, Refused, SecuretmError


class UnknownIdentity(Refused):
    """no key of {name} is pinned in the roster"""

    name: str
    hint = "every member's public key has to be in the roster that every party holds"


class NoIdentity(Misuse):
    """this party's own private key is missing, or is not the one whose public key is pinned in the roster"""

    hint = "put its 32 bytes into the party's store under the name identity"


class BadSignature(Refused):
    """the signature of {sender} on its {what} is wrong"""

    sender: str
    what: str


class StaleSignature(Refused):
    """{sender} signed this head before the last invitation of the ledger's owner"""

    sender: str


class NotSealedForUs(Refused):
    """what {sender} sealed for this party cannot be opened"""

    sender: str


class BadKey(Refused):
    """{sender} sent a public key that no honest party makes"""

    sender: str


class UnexpectedMessage(Refused):
    """a message from {sender} comes where none of its kind is expected"""

    sender: str


class TooFewInSum(Refused):
    """a sum over {found:party|parties} is below the {need} that this round was promised"""

    found: int
    need: int


class TooFewDocuments(Refused):
    """a sum over {parties:party|parties} with {found:document|documents} announced is below the {need} that were promised"""

    found: int
    parties: int
    need: int
    hint = "the roster says how many documents each party brings at least: wait for more parties, or have them announce more"


class SurvivorsMissing(SecuretmError):
    """this round was begun before with {missing}, from which no message came now"""

    missing: str  # their names
    hint = "a sum without them would show what they sent: resume the run when they are there again, or begin a new one"


class SurvivorsChanged(Refused):
    """this question was opened before, over other survivors"""

    hint = "two sums over lists one party apart show its vector: wait until the same parties are there, or begin a new run"
