"""Finds words of documents in bytes: as they are, in the usual encodings, packed, and as hashes. It does not decrypt anything.

It looks for words of at least ten letters, whose forms have eight bytes at least. Five megabytes of random bytes hold one of
100 such words in one of its twenty shortest forms less often than once in 10^9 times (5e6 x 100 x 20 / 2^64 = 5e-10).
"""

from __future__ import annotations

import base64
import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import numpy as np

LEAST = 10  # letters
_START = 8  # bytes of a form that are looked for first
_MOST_UNPACKED = 1 << 24
_PACKED: Mapping[bytes, Callable[[bytes], bytes]] = {  # by how a packed stream begins
    b"\x78\x01": lambda data: zlib.decompressobj().decompress(data, _MOST_UNPACKED),
    b"\x78\x9c": lambda data: zlib.decompressobj().decompress(data, _MOST_UNPACKED),
    b"\x78\xda": lambda data: zlib.decompressobj().decompress(data, _MOST_UNPACKED),
    b"\x1f\x8b\x08": lambda data: zlib.decompressobj(31).decompress(data, _MOST_UNPACKED),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data, _MOST_UNPACKED),
    b"\xfd7zXZ\x00": lambda data: lzma.LZMADecompressor().decompress(data, _MOST_UNPACKED),
}


def forms_of(word: str) -> Iterator[tuple[str, bytes]]:
    """A word as it may stand in bytes, with the name of the form."""
    for case in {word, word.upper(), word.title()}:
        raw = case.encode()
        yield "raw", raw
        yield "utf-16-le", case.encode("utf-16-le")
        yield "utf-16-be", case.encode("utf-16-be")
        yield "utf-32", case.encode("utf-32-le")
        yield "hex", raw.hex().encode()
        yield "HEX", raw.hex().upper().encode()
        yield "reversed", raw[::-1]
        for before in range(3):  # where the word stands between the groups of three bytes decides what it looks like
            packed = base64.b64encode(b"\0" * before + raw)
            whole = packed[4 * (before > 0) : len(packed) - 4] if before else packed[: len(raw) // 3 * 4]
            yield "base64", whole
    for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
        digest = hashlib.new(name, word.encode()).digest()
        yield name, digest[:16]
        yield f"{name} in hex", digest.hex().encode()[:32]
    yield "blake2b of eight bytes", hashlib.blake2b(word.encode(), digest_size=8).digest()


class Detector:
    """Finds these words in bytes."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = sorted({word.lower() for word in words if len(word) >= LEAST})
        self._forms: dict[int, list[tuple[str, str, bytes]]] = {}
        for word in self.words:
            for name, form in forms_of(word):
                if len(form) >= _START:
                    self._forms.setdefault(int.from_bytes(form[:_START], "little"), []).append((word, name, form))
        self._starts = np.array(sorted(self._forms), dtype="<u8")

    def found(self, data: bytes) -> set[tuple[str, str]]:
        """Which words are there, in which forms; also in what is packed in these bytes."""
        packed = (unpacked for unpacked in _unpacked(data))
        return self._in(data).union(*({(word, f"{name}, packed") for word, name in self._in(one)} for one in packed))

    def _in(self, data: bytes) -> set[tuple[str, str]]:
        hits = set()
        for offset in range(_START):
            length = (len(data) - offset) // _START
            if length <= 0 or not len(self._starts):
                continue
            numbers = np.frombuffer(data, "<u8", length, offset)
            places = np.minimum(np.searchsorted(self._starts, numbers), len(self._starts) - 1)
            for at in np.flatnonzero(self._starts[places] == numbers):
                here = offset + int(at) * _START
                hits |= {(w, name) for w, name, form in self._forms[int(numbers[at])] if data.startswith(form, here)}
        return hits


def _unpacked(data: bytes) -> Iterator[bytes]:
    """What can be unpacked at any place where a packed stream may begin."""
    for magic, unpack in _PACKED.items():
        at = data.find(magic)
        while at >= 0:
            with suppress(OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
                yield unpack(data[at : at + _MOST_UNPACKED])
            at = data.find(magic, at + 1)
