"""Signatures under reports that are refused. No field of an error holds a secret."""

from __future__ import annotations

from securetm.errors import Misuse


class SignedFileChanged(Misuse):
    """{path} is not the file that was signed: its SHA-256 is not the one in {signature}"""

    path: str
    signature: str
    exit_code = 1  # as for every file that is not as it was
    hint = "ask for the file again, or for a new signature; do not rely on this one"


class SignedByAnotherKey(Misuse):
    """the signature in the name of {name} is by the key {fingerprint}, and that is not the key in {trusted}"""

    name: str
    fingerprint: str
    trusted: str
    hint = "compare fingerprints by telephone (`securetm keys show`), and take the newest roster"


class SignedInAnotherRole(Misuse):
    """{name} signs as {role}, and a report is signed by a party: it answers for its documents"""

    name: str
    role: str
    hint = "have the party sign it with the keys in its own home"


class BadReportSignature(Misuse):
    """the signature of {name} in {path} is wrong"""

    path: str
    name: str
    hint = "the file was changed after it was signed, or was signed for something else: ask the signer for it again"


class SignerRevoked(Misuse):
    """the key that signed in the name of {name} is revoked in {roster}"""

    name: str
    roster: str
    hint = "ask the signer for a signature by its new key"
