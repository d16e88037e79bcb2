"""Five faults that a right sum does not show: each is put in, and a test that passes without it must fail.

The tests look at what the coordinator sees, as its adversary would: seeds it can try, messages it can subtract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securetm.aggregation.masked import round as masked_round
from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.memory import Prepared
from securetm.aggregation.masked.messages import HEADER_SIZE, Header, Kind, Place, read_header
from securetm.contracts import Array
from tests.aggregation.played import TERMS, Played, flat, names, plain_sum, vectors_of

N, ROUNDS, LENGTH = 4, 2, TERMS.size

# ---- what is measured ------------------------------------------------------------------------------------------------


class Recorded:
    """Every seed from which a party's mask is made, beside the header of its message."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.masks: list[tuple[Header, list[Mask]]] = []
        honest = masked_round.MaskedPartyRound._masks

        def note(party: Any, header: Header, prepared: Prepared) -> list[Mask]:
            masks = honest(party, header, prepared)
            self.masks.append((header, masks))
            return masks

        patch.setattr(masked_round.MaskedPartyRound, "_masks", note)


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched:
        yield patched


def two_rounds(vectors: dict[str, Array]) -> tuple[Played, list[Array]]:
    """Two rounds over the same vectors."""
    played = Played(MaskedSum(), names(N)).prepare(ROUNDS)
    answers = [flat(played.play(played.cohort(number), vectors)) for number in range(ROUNDS)]
    return played, answers


def masked_messages(played: Played) -> list[tuple[Header, Array]]:
    sent = [m for _, m in played.seen if m[1] == Kind.MASKED]
    return [(read_header(m, ""), np.frombuffer(m, "<u4", offset=HEADER_SIZE)) for m in sent]


def seeds_cannot_be_tried(patch: pytest.MonkeyPatch) -> None:
    """Each seed has 256 bits that differ from seed to seed: no bit is constant, none follows from the one before."""
    recorded = Recorded(patch)
    for _ in range(8):
        two_rounds(vectors_of(names(N)))
    bits = np.unpackbits(np.array([list(seed) for _, masks in recorded.masks for seed, _ in masks], np.uint8), axis=1)
    assert bits.shape[1] == 256
    spread = bits.mean(axis=0)
    assert np.all((spread > 0.2) & (spread < 0.8))  # 256 seeds, half of them twice: nine standard deviations
    pairs = N * (N - 1) // 2
    assert len(np.unique(bits, axis=0)) == 8 * ROUNDS * (N + pairs)  # each pair's seed is seen at both ends


def masks_are_fresh(patch: pytest.MonkeyPatch) -> None:
    """The same vector twice: the difference of the two messages must not be nothing, and no seed comes again."""
    recorded = Recorded(patch)
    played, _ = two_rounds(vectors_of(names(N)))
    by_party: dict[int, list[Array]] = {}
    for header, vector in masked_messages(played):
        by_party.setdefault(header.sender, []).append(vector)
    assert all(np.any(one != two) for sent in by_party.values() for one, two in pairwise(sent))
    of_round = [{seed for header, masks in recorded.masks if header.at.index == n for seed, _ in masks} for n in range(ROUNDS)]
    assert not of_round[0] & of_round[1]


def each_pair_and_oneself_mask(patch: pytest.MonkeyPatch) -> None:
    """Under every message lie its own mask and one for each neighbour, with the right signs, and nothing else."""
    del patch
    vectors = vectors_of(names(N))
    played, _ = two_rounds(vectors)
    kept = {name: played.parties[name]._prekeys.prepared() for name in played.members}
    for header, vector in masked_messages(played):
        me, bare = played.members[header.sender], vector.copy()
        apply_masks(bare, [(seed, not plus) for seed, plus in expected_masks(kept[me], header, N)])
        assert np.array_equal(bare, vectors[me].astype(np.uint32))


def expected_masks(mine: Prepared, header: Header, parties: int) -> list[Mask]:
    """As protocols/masked_sum.md has it, not as the party computes it."""
    at, me = header.at, header.sender
    own = (b"self mask", at.body(), me.to_bytes(2, "big"), header.salt)
    masks = [(derived(mine.seeds[at.index], at.epoch, own), True)]
    for peer in range(parties):
        if peer != me:
            secret = mine.peers[peer][32 * at.index : 32 * at.index + 32]
            pair = min(me, peer).to_bytes(2, "big") + max(me, peer).to_bytes(2, "big")
            masks.append((derived(secret, at.epoch, (b"pair mask", at.body(), pair)), me < peer))
    return masks


def derived(secret: bytes, salt: bytes, fields: Sequence[bytes]) -> bytes:
    info = b"".join(len(one).to_bytes(4, "big") + one for one in (b"securetm sessions 4", *fields))
    return HKDF(hashes.SHA256(), 32, salt, info).derive(secret)


def sums_are_right(patch: pytest.MonkeyPatch) -> None:
    """Everybody's, and those of whom some leave."""
    del patch
    vectors = vectors_of(names(N))
    for leaves in ({}, {Kind.MASKED: {names(N)[1]}}):
        played = Played(MaskedSum(), names(N), leaves=leaves).prepare(ROUNDS)
        answer = played.play(played.cohort(), vectors)
        assert np.array_equal(flat(answer), plain_sum(vectors, answer.survivors))


# ---- the faults ------------------------------------------------------------------------------------------------------


def small_seeds(patch: pytest.MonkeyPatch) -> None:
    """28 bits, as where a seed was folded out of text."""
    honest = masked_round.pair_seed

    def small(secret: bytes, at: Place, one: int, two: int) -> bytes:
        seed = int.from_bytes(honest(secret, at, one, two), "big") % 2**28
        return seed.to_bytes(32, "big")

    patch.setattr(masked_round, "pair_seed", small)


def one_key_for_every_round(patch: pytest.MonkeyPatch) -> None:
    """The first prekey for ever, and seeds that do not know their round."""
    pair, own = masked_round.pair_seed, masked_round.self_seed
    always = Place(bytes(32), bytes(32), 0)
    honest = masked_round.MaskedPartyRound._masks

    def first(party: Any, header: Header, prepared: Prepared) -> list[Mask]:
        frozen = replace(prepared, seeds=prepared.seeds[:1] * 99)
        peers = {peer: secrets[:32] * 99 for peer, secrets in prepared.peers.items()}
        return honest(party, header, replace(frozen, peers=peers))

    patch.setattr(masked_round.MaskedPartyRound, "_masks", first)
    patch.setattr(masked_round, "pair_seed", lambda secret, at, one, two: pair(secret, always, one, two))
    patch.setattr(masked_round, "self_seed", lambda secret, at, owner, salt: own(secret, always, owner, bytes(16)))


def without(chosen: Callable[[Header, list[Mask]], list[Mask]]) -> Callable[[pytest.MonkeyPatch], None]:
    def fault(patch: pytest.MonkeyPatch) -> None:
        honest = masked_round.MaskedPartyRound._masks
        patch.setattr(
            masked_round.MaskedPartyRound,
            "_masks",
            lambda party, header, prepared: chosen(header, honest(party, header, prepared)),
        )

    return fault


def no_self_mask(patch: pytest.MonkeyPatch) -> None:
    """Neither added nor taken off: every sum is right."""
    without(lambda header, masks: masks[1:])(patch)
    honest = masked_round.MaskedCoordinatorRound._masks

    def pairs_only(middle: Any) -> Iterator[Mask]:
        own = {masked_round.self_seed(middle._secret(p), middle._at, p, h.salt) for p, h in middle._masked.items()}
        return (mask for mask in honest(middle) if mask[0] not in own)

    patch.setattr(masked_round.MaskedCoordinatorRound, "_masks", pairs_only)


def one_pair_missing(patch: pytest.MonkeyPatch) -> None:
    """The first two parties do not mask with each other; while both stay, every sum is right."""
    without(lambda header, masks: masks[:1] + masks[2:] if header.sender in (0, 1) else masks)(patch)


wrong_sign = without(lambda header, masks: [masks[0], *((seed, True) for seed, _ in masks[1:])])


TESTS = [seeds_cannot_be_tried, masks_are_fresh, each_pair_and_oneself_mask, sums_are_right]


@pytest.mark.parametrize("law", TESTS)
def test_without_a_fault(law: Callable[[pytest.MonkeyPatch], None], patch: pytest.MonkeyPatch) -> None:
    law(patch)


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        (small_seeds, seeds_cannot_be_tried),
        (one_key_for_every_round, masks_are_fresh),
        (no_self_mask, each_pair_and_oneself_mask),
        (one_pair_missing, each_pair_and_oneself_mask),
        (one_pair_missing, sums_are_right),
        (wrong_sign, sums_are_right),
    ],
)
def test_a_fault_is_caught(
    fault: Callable[[pytest.MonkeyPatch], None], law: Callable[[pytest.MonkeyPatch], None], patch: pytest.MonkeyPatch
) -> None:
    fault(patch)
    with pytest.raises(AssertionError):
        law(patch)
