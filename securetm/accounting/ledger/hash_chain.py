"""The hash chain of a ledger: each head is a digest of the previous head and of the new content. It keeps no file.

A head commits to everything before it. A peer that knows an older head can check with digests alone that a newer head extends
it, and learns no entry. Every content carries 16 random bytes, so that nobody can find it by hashing guesses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from securetm.entropy import OperatingSystem

BEGINNING = bytes(32)  # the head before the first entry
_CONTENT, _HEAD = b"securetm ledger content\n", b"securetm ledger head\n"  # labels of the two kinds of digests

Content = Mapping[str, Any]


def canonical(content: Content) -> str:
    """The canonical text of a content: JSON with sorted names and no spaces. Numbers that are not finite are refused."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def salted(content: Content) -> dict[str, Any]:
    """The content with 16 random bytes."""
    return {**content, "salt": OperatingSystem().bytes(16).hex()}


def digest(written: bytes) -> bytes:
    """The digest of one content as it is written."""
    return hashlib.sha256(_CONTENT + written).digest()


def extend(head: bytes, content_digest: bytes) -> bytes:
    """The head after one more entry."""
    return hashlib.sha256(_HEAD + head + content_digest).digest()


def follow(head: bytes, content_digests: Iterable[bytes]) -> bytes:
    """The head after an older head and these digests. A peer compares it with the head that it was sent."""
    for content_digest in content_digests:
        head = extend(head, content_digest)
    return head


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger, checked against the chain."""

    number: int  # from 1
    head: bytes
    content: Content
