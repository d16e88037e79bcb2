"""Bytes as the content of a Flower message, in pieces: Flower sends each record in a request of its own, and keeps it whole."""

from __future__ import annotations

from flwr.app import ConfigRecord, Message, RecordDict

from securetm.errors import Malformed

PIECE = 4 << 20  # bytes
MOST_PIECES = 1 << 12


def content_of(payload: bytes) -> RecordDict:
    """Packs bytes into records of at most `PIECE` bytes."""
    starts = range(0, max(1, len(payload)), PIECE)
    return RecordDict({f"{place:04d}": ConfigRecord({"bytes": payload[at : at + PIECE]}) for place, at in enumerate(starts)})


def payload_of(message: Message, sender: str) -> bytes:
    """Returns the bytes of a message, or refuses one that has none."""
    records = message.content.config_records
    names = [f"{place:04d}" for place in range(len(records))]
    if not 1 <= len(names) <= MOST_PIECES or sorted(records) != names:
        raise Malformed(sender, "its records are not pieces of one message")
    pieces = [records[name].get("bytes") for name in names]
    if not all(type(piece) is bytes for piece in pieces):
        raise Malformed(sender, "a piece of it is not bytes")
    return b"".join(pieces)
