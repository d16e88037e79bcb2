"""Noise for parties that may be missing is taken off the sum if they are not. Honest noise never falls below the promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import Kind
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import PART, Answer, Array, Block, Cohort, Domain, RoundContext, Terms
from securetm.entropy import OperatingSystem
from securetm.federation.party_store import PartyStore
from securetm.mechanisms.noise_shares import LEAST_PART, NoiseShares, sizes_of, variances_of
from securetm.sessions.survivors import SurvivorsChanged
from securetm.testing.few_documents import EmptyStore
from tests.aggregation.played import COORDINATOR, Played, flat, names, signed_again

D = 20_000
ROOM = 7 * np.sqrt(2 / D)  # seven standard errors of a measured variance: false once in 10^11
COUNTS = Terms((Block("a", (D // 2, 2)),), domain=Domain.INTEGER, bits=64, reach=1000, l1=30, l2=30, linf=30)
N, FEWEST, HELPERS, MULTIPLIER = 6, 4, 1, 4.0
PROMISED = (MULTIPLIER * COUNTS.l2) ** 2


@dataclass
class Noised:
    """A masked federation whose parties hold no document: what is opened is noise."""

    mechanism: NoiseShares
    played: Played
    cohort: Cohort

    def __post_init__(self) -> None:
        self.terms = self.played.aggregation.admit(self.mechanism.admit(COUNTS, self.cohort), self.cohort)
        self.contexts = {m: RoundContext(self.cohort, OperatingSystem(), EmptyStore({})) for m in self.cohort.members}
        zeros = {m: np.zeros(D, np.int64) for m in self.cohort.members}
        self.vectors = {m: self.mechanism.on_vector(zeros[m], self.terms, self.contexts[m]) for m in self.cohort.members}

    def begin(self, cohort: Cohort) -> tuple[Any, dict[str, Any]]:
        asked = {m: s for m, s in self.played.parties.items() if not self.played.gone(m, Kind.MASKED)}
        blocks = {m: blocks_of(self.vectors[m], self.terms) for m in asked}
        parties = {m: s.round(cohort, self.terms, blocks[m], self.contexts[m].surplus) for m, s in asked.items()}
        return self.played.middle.round(cohort, self.terms, None), parties

    def play(self) -> Answer:
        self.played.run(*self.begin(self.cohort))
        return self.played.middle.answer(self.cohort.round_id)

    def opened(self) -> Answer:
        return self.mechanism.on_answer(self.play(), self.terms, RoundContext(self.cohort, OperatingSystem(), EmptyStore({})))

    def kept(self, party: str, survivors: int) -> Array:
        """What of a party's noise is in the sum, as an adversary computes it that knows all about that party."""
        left = self.vectors[party].copy()
        parts = self.mechanism.surplus(self.terms, self.cohort)
        for part in self.terms.unneeded(survivors):
            assert parts[part].take_off(left, self.contexts[party].surplus[part])
        return left


def noised(mechanism: NoiseShares | None = None, *, consistency: bool = True, question: bytes = b"", **leaves: Any) -> Noised:
    played = Played(MaskedSum(consistency=consistency, threshold=FEWEST), names(N)).prepare()
    played.leaves = leaves.get("leaves", {})
    cohort = Cohort(b"r" * 32, 0, played.members, threshold=FEWEST, colluding=HELPERS, question=question)
    return Noised(mechanism or NoiseShares(MULTIPLIER), played, cohort)


def variance(vector: Array) -> float:
    return float(np.mean(vector.astype(float) ** 2))


# ---- how much is measured out ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [2, 3, 6, 10, pytest.param(200, marks=pytest.mark.slow)])
def test_whoever_remains_honest_noise_is_as_promised_and_little_more(members: int) -> None:
    for threshold in range(2, members + 1):
        for colluding in range(threshold - 1):
            cohort = Cohort(b"", 0, names(members), threshold=threshold, colluding=colluding)
            sizes, parts = sizes_of(cohort), variances_of(cohort, 1e9, LEAST_PART)
            assert sizes[0] == members
            assert sizes[-1] == threshold
            assert len(parts) == len(sizes)
            for survivors in range(threshold, members + 1):
                kept = sum(parts) - sum(more for more, size in zip(parts[1:], sizes, strict=False) if survivors >= size)
                honest = (survivors - colluding) * kept
                assert honest >= 1e9 * (1 - 1e-12)
                if survivors in sizes:
                    assert honest == pytest.approx(1e9)


def test_parts_too_narrow_to_add_up_to_a_gaussian_are_not_made() -> None:
    cohort = Cohort(b"", 0, names(5), threshold=4, colluding=2)
    assert variances_of(cohort, 6 * LEAST_PART, LEAST_PART) == pytest.approx((2 * LEAST_PART, LEAST_PART))
    assert variances_of(cohort, 5.9 * LEAST_PART, LEAST_PART) == pytest.approx((2.95 * LEAST_PART,))
    narrow = NoiseShares((5.9 * LEAST_PART) ** 0.5 / COUNTS.l2).admit(COUNTS, cohort)
    assert narrow.surplus == ()
    assert narrow.deviation == pytest.approx((5.9 * LEAST_PART) ** 0.5, rel=1e-6)


def test_a_sum_without_anybody_missing_has_the_noise_of_its_honest_parties_only() -> None:
    """With five parties of which two may help the coordinator, it is 1.29 times the promise, where it was 1.58 times."""
    cohort = Cohort(b"", 0, names(5), threshold=4, colluding=2)
    mechanism, terms = NoiseShares(MULTIPLIER), NoiseShares(MULTIPLIER).admit(COUNTS, cohort)
    parts = mechanism.surplus(terms, cohort)
    vector = np.zeros(D, np.int64)
    revealed = {m: tuple(part.add(vector, OperatingSystem()) for part in parts) for m in cohort.members}
    context = RoundContext(cohort, OperatingSystem(), EmptyStore({}))
    opened = mechanism.on_answer(Answer(blocks_of(vector, terms), {}, cohort.members, revealed=revealed), terms, context)
    assert flat(opened).any() == 0
    assert opened.deviation / terms.deviation == pytest.approx((5 / 3) ** 0.5)
    silent = mechanism.on_answer(Answer(blocks_of(vector, terms), {}, cohort.members), terms, context)
    assert silent.deviation / terms.deviation == pytest.approx((5 / 2) ** 0.5)


# ---- in a masked federation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("missing", "consistency"), [(0, True), (1, False), (2, True)])
def test_the_noise_in_the_opened_sum_is_what_is_stated_and_honest_noise_is_as_promised(missing: int, consistency: bool) -> None:
    run = noised(consistency=consistency, leaves={Kind.MASKED: set(names(N)[:missing])})
    opened = run.opened()
    remaining = N - missing
    assert len(opened.survivors) == remaining
    assert opened.deviation**2 == pytest.approx(PROMISED * remaining / (remaining - HELPERS), rel=1e-6)
    assert variance(flat(opened)) == pytest.approx(opened.deviation**2, rel=ROOM)
    honest = flat(opened) - run.kept(names(N)[-1], remaining)  # one of the survivors helps the coordinator
    assert variance(honest) == pytest.approx(PROMISED, rel=ROOM)


def test_a_survivor_that_reveals_nothing_leaves_its_noise_in_the_sum() -> None:
    run = noised(leaves={Kind.UNMASKED: {names(N)[0]}})
    opened = run.opened()
    assert len(opened.survivors) == N
    parts = run.mechanism.surplus(run.terms, run.cohort)
    more = sum(part.noise.deviation**2 for part in parts)
    assert opened.deviation**2 == pytest.approx(PROMISED * N / (N - HELPERS) + more, rel=1e-6)
    assert variance(flat(opened)) == pytest.approx(opened.deviation**2, rel=ROOM)


def test_a_false_reveal_takes_nothing_off() -> None:
    run = noised()
    identity = run.played.parties[names(N)[2]]._identity

    def lie(name: str, message: bytes) -> bytes:
        if name != names(N)[2] or message[1] != Kind.UNMASKED:
            return message
        at = len(message) - 64 - PART  # of the last part's seed
        return signed_again(identity, message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :])

    run.played.change_up = lie
    opened = run.opened()
    assert opened.deviation**2 > PROMISED * N / (N - HELPERS)
    assert variance(flat(opened)) == pytest.approx(opened.deviation**2, rel=ROOM)


def test_what_was_not_drawn_is_not_taken_off() -> None:
    cohort = Cohort(b"", 0, names(5), threshold=4, colluding=2)
    part = NoiseShares(MULTIPLIER).surplus(NoiseShares(MULTIPLIER).admit(COUNTS, cohort), cohort)[0]
    vector = np.zeros(D, np.int64)
    told = part.add(vector, OperatingSystem())
    noise = vector.copy()
    assert not part.take_off(vector, bytes([told[0] ^ 1]) + told[1:])
    assert np.array_equal(vector, noise)
    assert part.take_off(vector, told)
    assert not vector.any()


def test_a_party_reveals_its_noise_for_one_list_of_survivors_only() -> None:
    """A coordinator that opened the sum of all cannot have the same vectors opened without one of them."""
    run = noised(question=b"train 0")
    first = run.play()
    assert all(len(told) == len(run.terms.surplus) for told in first.revealed.values())
    run.played.restart(COORDINATOR)
    again = replace(run.cohort, round_id=b"a" * 32)
    run.played.leaves = {Kind.MASKED: {names(N)[0]}}
    run.played.stores[COORDINATOR].kept = {k: v for k, v in run.played.stores[COORDINATOR].kept.items() if "survivors" not in k}
    with pytest.raises(SurvivorsChanged):
        run.played.run(*run.begin(again))


# ---- what is kept ------------------------------------------------------------------------------------------------------


def test_an_answer_that_is_given_again_reveals_the_same_noise(tmp_path: Any) -> None:
    store, parts = PartyStore(tmp_path), (b"a" * PART, b"b" * PART)
    store.keep_answer(("train", 3, b"who", b"what"), b"vector", parts)
    kept = store.last_answer("train")
    assert kept is not None
    assert kept.surplus == parts
    assert "aaaa" not in repr(kept)
    store.keep_answer(("train", 4, b"who", b"what"), b"vector")
    assert (after := store.last_answer("train")) is not None
    assert after.surplus == ()
    store.close()
