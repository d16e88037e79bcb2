"""Bytes as the content of a Flower message, in pieces: Flower sends each record in a request of its own, and keeps it whole."""

from __future__ import annotations

from flwr.app import ConfigRecord, Message, RecordDict

from securetm.errors import Malformed, Misuse

PIECE = 4 << 20  # bytes
LONGEST = 1 << 31  # bytes of a message


class BadFlowerSetting(Misuse):
    """the Flower setting `{name}` {problem}"""

    name: str
    problem: str
    hint = "see docs/how-to/flower.md for the settings of `flwr run` and of `flower-supernode --node-config`"


def content_of(payload: bytes) -> RecordDict:
    """Packs bytes into records of at most `PIECE` bytes."""
    starts = range(0, max(1, len(payload)), PIECE)
    return RecordDict({f"{place:04d}": ConfigRecord({"bytes": payload[at : at + PIECE]}) for place, at in enumerate(starts)})


def payload_of(message: Message, sender: str, most: int = LONGEST) -> bytes:
    """Returns the bytes of a message, or refuses one that has none or too many."""
    records = message.content.config_records
    names = [f"{place:04d}" for place in range(len(records))]
    if not names or len(names) > 1 + most // PIECE or sorted(records) != names:
        raise Malformed(sender, "its records are not the pieces of one message")
    pieces = [records[name].get("bytes") for name in names]
    if not all(type(piece) is bytes for piece in pieces) or sum(map(len, pieces)) > most:
        raise Malformed(sender, "its pieces are no bytes, or too many")
    return b"".join(pieces)
