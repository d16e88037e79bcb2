"""Stores named arrays and a few facts as one safetensors file. The same content gives the same bytes.

The library writes the facts of the header in an order that changes from file to file; here they are sorted. One of them is a
SHA-256 of the content, by which a changed file is found.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from securetm.contracts import Array

_LENGTH = 8  # bytes before the header that hold its length, and the alignment of its end
_FACTS = "__metadata__"
DIGEST = "sha256"


def packed(arrays: Mapping[str, Array], facts: Mapping[str, str]) -> bytes:
    """The whole file: arrays in the library's fixed order, facts by their names."""
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    facts = {**facts, DIGEST: _digest(ordered, facts)}
    whole = save(ordered, facts)
    end = _LENGTH + int.from_bytes(whole[:_LENGTH], "little")
    header = json.loads(whole[_LENGTH:end])
    header = {_FACTS: dict(sorted(facts.items())), **{name: header[name] for name in header if name != _FACTS}}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _LENGTH)
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, memoryview(whole)[end:]])


def unpacked(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """The facts and arrays of such a file. Raises `SafetensorError` for any other or changed file."""
    with safe_open(path, framework="numpy") as stored:
        facts = dict(stored.metadata() or {})
        arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - it is no mapping
    written = facts.pop(DIGEST, None)
    if written != _digest(arrays, facts):
        raise SafetensorError("its SHA-256 is not the one in its header")
    return facts, arrays


def _digest(arrays: Mapping[str, Array], facts: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sorted(facts.items())).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
