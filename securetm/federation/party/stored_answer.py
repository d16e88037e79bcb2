"""A party's own answer as it lies on its disk: deflated where that is shorter, because a table of words is mostly zeros.

It protects nothing: the file is its owner's, and what is in it leaves the party masked, encrypted or noised.
"""

from __future__ import annotations

import zlib

from securetm.aggregation.vectors import pack_vector, unpack_vector, wire_type
from securetm.contracts import State, Terms

_FAST = 1  # zeros deflate at any level


def stored(vector: State, terms: Terms) -> bytes:
    """Returns the bytes to keep. Those of a vector without a fixed length stay as they are."""
    whole = pack_vector(vector, terms)
    short = whole if terms.ragged else zlib.compress(whole, _FAST)
    return min(whole, short, key=len)  # of two as long the vector itself: that is how its length is read


def read_stored(kept: bytes, terms: Terms, owner: str) -> State:
    """Returns the vector in these bytes: bytes that have its length are the vector itself, as earlier versions kept it."""
    length = terms.size * wire_type(terms).itemsize
    whole = kept if terms.ragged or len(kept) >= length else zlib.decompressobj().decompress(kept, length)
    return unpack_vector(whole, terms, owner)
