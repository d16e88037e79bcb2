"""Named arrays and a few facts as one safetensors file: the same content gives the same bytes. It knows no model and no run.

The library itself writes the facts of the header in an order that changes from file to file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
from safetensors.numpy import save

from securetm.contracts import Array

_LENGTH = 8  # bytes before the header, that say how long it is; the header ends at a multiple of as many
_FACTS = "__metadata__"


def packed(arrays: Mapping[str, Array], facts: Mapping[str, str]) -> bytes:
    """The whole file: arrays in the library's fixed order, facts by their names."""
    whole = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, dict(facts))
    end = _LENGTH + int.from_bytes(whole[:_LENGTH], "little")
    header = json.loads(whole[_LENGTH:end])
    header = {_FACTS: dict(sorted(facts.items())), **{name: header[name] for name in header if name != _FACTS}}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _LENGTH)
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, memoryview(whole)[end:]])
