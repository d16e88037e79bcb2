"""A vector as bytes and back, exactly as its terms say. It hides nothing: the aggregations do.

Bytes from the network are checked for length and finiteness before anything is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Array, Domain, Message, Terms
from securetm.errors import BadVector, BrokenPromise

_AT_ONCE = 1 << 16  # values that are checked at once, so that beside a long vector there are only short ones
CLAMPED = "clamped"  # in the party's own store: how many values it clamped so far


def wire_type(terms: Terms) -> np.dtype[np.generic]:
    """How one coordinate travels."""
    kind = "i" if terms.domain is Domain.INTEGER else "f"
    return np.dtype(f"<{kind}{terms.bits // 8}")


def parts_of(vector: Mapping[str, Array], terms: Terms) -> list[Array]:
    """The named arrays in the order of the layout, each of the promised shape."""
    for block in terms.layout:
        part = vector[block.name]
        fits = part.shape[1:] == block.shape[1:] and (part.shape[0] == block.shape[0] or terms.ragged)
        if not fits or part.shape[0] > block.shape[0]:
            raise BrokenPromise(f"block {block.name!r}", part.size, int(np.prod(block.shape)))
    return [vector[block.name] for block in terms.layout]


def pack_vector(vector: Mapping[str, Array], terms: Terms) -> bytes:
    """Named arrays end to end, in the order of the layout."""
    kind = wire_type(terms)
    return b"".join(np.ascontiguousarray(part).astype(kind, copy=False).tobytes() for part in parts_of(vector, terms))


def whole_numbers(parts: Sequence[Array], reach: int, into: Array, grid: float = 1.0) -> int:
    """Run by a party: writes its vector as whole numbers within the reach. Returns how many were beyond it or no numbers.

    What is no finite number counts as nothing: a refusal that depended on the data would tell something about it.
    """
    at = changed = 0
    for part in map(np.ravel, parts):
        for start in range(0, part.size, _AT_ONCE):
            piece = part[start : start + _AT_ONCE]
            if piece.dtype.kind == "f":
                numbers = np.isfinite(piece)
                changed += int((~numbers).sum())
                with np.errstate(over="ignore"):  # what is then infinite is clamped
                    piece = np.rint(np.where(numbers, piece, 0.0).astype(np.float64) / grid)
            if piece.max() > reach or piece.min() < -reach:
                changed += int(np.count_nonzero((piece > reach) | (piece < -reach)))
                piece = np.clip(piece, -reach, reach)
            into[at : at + piece.size] = piece
            at += piece.size
    return changed


def unpack_vector(message: Message, terms: Terms, sender: str) -> dict[str, Array]:
    """Named arrays from untrusted bytes, or a refusal that names the sender."""
    kind = wire_type(terms)
    row = int(np.prod(terms.layout[0].shape[1:])) if terms.ragged else terms.size
    found, rest = divmod(len(message), kind.itemsize * row)
    if rest or found > (terms.layout[0].shape[0] if terms.ragged else 1) or (found == 0 and not terms.ragged):
        raise BadVector(sender, f"has {len(message)} bytes where its terms give {kind.itemsize * terms.size}")
    flat = np.frombuffer(message, dtype=kind)
    if terms.domain is Domain.REAL and not np.isfinite(flat).all():
        raise BadVector(sender, "holds values that are not finite")
    return blocks_of(flat.reshape(-1, *terms.layout[0].shape[1:]) if terms.ragged else flat, terms)
