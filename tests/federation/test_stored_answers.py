"""What a party keeps of its own answer is the answer, however it lies on the disk; workers hand on one reply at a time."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from securetm.aggregation.vectors import pack_vector
from securetm.clipped_sum import blocks_of
from securetm.contracts import Block, Domain, Terms
from securetm.federation.party.kept import read_stored, stored
from securetm.federation.simulation.parties import Workers
from securetm.federation.wire.wire import MOST_BYTES

from .plain_workers import echo

TABLE = Terms((Block("documents", (1,)), Block("cells", (5_000, 24))), domain=Domain.INTEGER, bits=32)


@pytest.mark.parametrize("density", [0.0, 0.01, 1.0])
def test_an_answer_is_read_as_it_was_kept_and_takes_no_more_room(density: float) -> None:
    rng = np.random.default_rng(1)
    flat = rng.integers(-(2**31), 2**31, TABLE.size) * (rng.random(TABLE.size) < density)
    vector = blocks_of(flat.astype(np.int64), TABLE)
    kept, whole = stored(vector, TABLE), pack_vector(vector, TABLE)
    assert len(kept) <= len(whole)
    assert (len(kept) < len(whole) / 10) == (density < 0.5)
    for one in (kept, whole):  # earlier versions kept it whole
        read = read_stored(one, TABLE, "north")
        assert pack_vector(read, TABLE) == whole


def test_an_answer_that_deflates_to_its_own_length_is_kept_as_it_is() -> None:
    terms, rng = Terms((Block("cells", (60,)),), domain=Domain.INTEGER, bits=32), np.random.default_rng(0)
    ties = 0
    for _ in range(2_000):
        flat = rng.integers(-(2**31), 2**31, terms.size) * (np.arange(terms.size) < rng.integers(30, 60))
        vector = blocks_of(flat.astype(np.int64), terms)
        whole = pack_vector(vector, terms)
        ties += len(zlib.compress(whole, 1)) == len(whole)
        assert pack_vector(read_stored(stored(vector, terms), terms, "north"), terms) == whole
    assert ties > 0


def test_whoever_stops_listening_to_workers_leaves_no_reply_behind() -> None:
    workers = Workers(echo, {name: (name,) for name in "abcde"}, 2)
    said, then = ({name: text.encode() * 100_000 for name in "abcde"} for text in ("first", "then"))
    listening = iter(workers.ask(said, MOST_BYTES))
    first = [next(listening), next(listening)]
    listening.close()  # type: ignore[attr-defined]
    heard = dict(workers.ask(then, MOST_BYTES))
    workers.close()
    assert [name for name, _ in first] == ["a", "b"]
    assert list(heard) == list("abcde")
    assert all(b"then" in reply and b"first" not in reply for reply in heard.values())
