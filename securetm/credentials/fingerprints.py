"""Fingerprints that people compare by telephone: twelve groups of five decimal digits, the same in every language.

They say nothing about who holds a key.
"""

from __future__ import annotations

import hashlib
import hmac
import re

DIGITS, GROUP = 60, 5  # 10^60 is 199 bits: two contents with one fingerprint take about 2^99 trials


def fingerprint(digest: bytes) -> str:
    """The fingerprint of a SHA-256, as in `04217 99120 …`."""
    digits = f"{int.from_bytes(digest, 'big') % 10**DIGITS:0{DIGITS}d}"
    return " ".join(digits[at : at + GROUP] for at in range(0, DIGITS, GROUP))


def fingerprint_of(content: bytes) -> str:
    """The fingerprint of a public key or a certificate, as bytes."""
    return fingerprint(hashlib.sha256(content).digest())


def parsed_fingerprint(text: str) -> str | None:
    """A typed fingerprint in its usual form; None if it is none. Spaces, dots, dashes and ends of lines do not matter."""
    digits = re.sub(r"[\s.\-]+", "", text[: 4 * DIGITS])
    if len(digits) != DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    return " ".join(digits[at : at + GROUP] for at in range(0, DIGITS, GROUP))


def same_fingerprint(typed: str, shown: str) -> bool:
    """Whether these are the same digits."""
    return hmac.compare_digest(parsed_fingerprint(typed) or "", shown)
