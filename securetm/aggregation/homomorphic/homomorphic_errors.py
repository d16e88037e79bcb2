"""What an encrypted sum refuses, and combinations that do not fit it. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse, Refused, SecuretmError


class NoSealLibrary(Misuse):
    """encrypted sums need the package tenseal, which is not installed here"""

    hint = "pip install tenseal, or choose the profile masked, which hides the same and needs no such package"


class HelperDied(SecuretmError):
    """a helper process that encrypts or decrypts ended before its work was done"""

    hint = "is there enough memory? the round can be tried again; helpers are started anew"


class NoSumKey(Refused):
    """{party} holds no key of this session's encrypted sums"""

    party: str
    hint = "it was away when the key was exchanged: prepare the session again"


class UnlikeKeys(Refused):
    """{sender} encrypts under another key than the other parties"""

    sender: str


class BadCiphertext(Refused):
    """the ciphertexts from {sender} are refused: {problem}"""

    sender: str
    problem: str


class OpenedBefore(Refused):
    """a second sum was sent for a round that is already opened"""
