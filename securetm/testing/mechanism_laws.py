"""The laws of every mechanism: it keeps the bound in its terms, adds the noise that it states and spends, and keeps shapes.

Subclass `MechanismLaws` and give `mechanism` and `before` (terms of the kind it is for). Composition is not tried here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from dp_accounting import PoissonSampledDpEvent
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum, blocks_of
from securetm.answers.route import Route
from securetm.contracts import (
    Answer,
    Array,
    Block,
    Cohort,
    Domain,
    Mechanism,
    Needs,
    NoiseBy,
    Noised,
    RoundContext,
    Rows,
    Sampling,
    Terms,
    Unit,
)
from securetm.data_classes import dataclass, fields, replace
from securetm.entropy import OperatingSystem
from securetm.testing.few_documents import EmptyStore, some_documents
from securetm.testing.stated_noise import CHANCE, deviation, gaussian, misfit, scale_of

MEMBERS = ("ant", "bee", "cat", "dog")
COHORT = Cohort(b"round", 0, MEMBERS, threshold=len(MEMBERS))
SHRUNK = replace(COHORT, threshold=3, colluding=1)  # one party may drop out, and one may tell its share of noise
SAMPLES = 40_000


def context(cohort: Cohort = COHORT) -> RoundContext:
    """A context with the operating system's randomness."""
    return RoundContext(cohort, OperatingSystem(), EmptyStore({}))


@dataclass(frozen=True)
class InTurn(Mechanism):
    """Several mechanisms one after the other, as a party and the role that opens the sum run them."""

    parts: tuple[Mechanism, ...]

    def route(self, terms: Terms, cohort: Cohort = COHORT) -> Route:
        """Each part with the terms before and after it."""
        return Route.through(terms, self.parts, cohort)

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return self.route(terms, cohort).terms

    def row_radius(self, terms: Terms) -> float:
        return self.route(terms).radius

    def on_rows(self, rows: Rows, terms: Terms) -> Rows:
        return self.route(terms).on_rows(rows)

    def through(self, vector: Array, before: Terms, here: RoundContext) -> Array:
        """A party's vector through every part."""
        for step in self.route(before, here.cohort).steps:
            vector = step.mechanism.on_vector(vector, step.after, here)
        return vector

    def on_answer(self, answer: Answer, terms: Terms, here: RoundContext) -> Answer:
        for part in reversed(self.parts):
            answer = part.on_answer(answer, terms, here)
        return answer


def summed(mechanism: Mechanism, before: Terms, admitted: Terms, rows: Rows, owners: Array) -> Array:
    """The vector of one party, computed as in a run, but without noise."""
    clipped_sum = ClippedRowSum(before, mechanism.row_radius(before), lambda given: mechanism.on_rows(given, before))
    if len(owners):
        clipped_sum.add(rows, owners)
    vector = clipped_sum.vector()
    if isinstance(mechanism, InTurn):
        vector = mechanism.through(vector, before, context())
    elif admitted.noised is before.noised:
        vector = mechanism.on_vector(vector, admitted, context())
    return vector.astype(float)


def adversarial_rows(terms: Terms) -> Iterator[tuple[str, Array, Array]]:
    """Rows and owners chosen to break a bound. The law measures how much the last owner adds.

    Rows stay within the bounds that the query itself promises.
    """
    rng, size = np.random.default_rng(0), terms.size
    spike, ones, signs = np.eye(size)[0], np.ones(size), rng.choice([-1.0, 1.0], size)
    shapes = {"spike": spike, "flat": ones, "signs": signs, "random": rng.normal(size=size), "nothing": 0 * ones}
    for name, shape in shapes.items():
        for height in (1e-6, 0.7, 1.0, 3.0, 1e3, 1e6):
            alone = np.tile(height * shape, (6, 1))
            yield f"{name} x {height}", within(alone, terms), np.arange(6)
            if terms.linf == np.inf:  # else the query promises a bound on the sum of an owner's rows, which these would break
                yield f"{name} x {height}, several of one owner", alone, np.array([0, 1, 1, 2, 2, 2])
            yield (
                f"{name} x {height} among others",
                within(np.vstack([rng.poisson(1, (5, size)), alone[:1]]), terms),
                np.arange(6),
            )


def within(rows: Array, terms: Terms) -> Array:
    """The rows as the query may send them."""
    whole = np.trunc(rows) if terms.domain is Domain.INTEGER else rows
    return whole if terms.linf == np.inf else np.clip(whole, -terms.linf, terms.linf)


class MechanismLaws:
    """Laws of one mechanism, for the terms that the fixture `before` gives."""

    distribution: Callable[[Terms], Callable[[Array], Array]] = staticmethod(gaussian)
    mixes = False  # whether coordinates are mixed, so that only the length of a row is kept

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        raise NotImplementedError("a subclass gives the mechanism")

    @pytest.fixture
    def before(self) -> Terms:
        return Terms((Block("a", (3, 2)), Block("b", (5,))), bits=64)

    def test_admitting_is_repeatable_and_keeps_the_layout(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(before, COHORT)
        assert admitted == mechanism.admit(before, COHORT)
        assert admitted.layout == before.layout
        assert (admitted.needs, admitted.data_only, admitted.unit) == (before.needs, before.data_only, before.unit)

    def test_a_bound_is_never_loosened(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(before, COHORT)
        old, new = ((terms.l2, terms.l1, terms.linf) for terms in (before, admitted))
        for was, became in list(zip(old, new, strict=True))[: 1 if type(self).mixes else 3]:
            assert became <= was or admitted.grid > 0  # a grid changes what one step is worth
        assert 0 < admitted.sampling <= before.sampling

    def test_bound(self, mechanism: Mechanism, before: Terms) -> None:
        for name, rows, owners in adversarial_rows(before):
            for given in (rows, sparse.csr_array(rows)):
                self.presence_is_bounded(mechanism, before, given, owners, name)

    def presence_is_bounded(self, mechanism: Mechanism, before: Terms, rows: Rows, owners: Array, name: str) -> None:
        admitted = mechanism.admit(before, COHORT)
        rows = rows.astype(np.int64 if before.domain is Domain.INTEGER else np.float64)
        others = owners != owners[-1]
        whole = summed(mechanism, before, admitted, rows, owners)
        moved = whole - summed(mechanism, before, admitted, rows[others], owners[others])
        failure_probability = 1e-9 * (1 + np.abs(whole).max())
        for order, bound in ((1, admitted.l1), (2, admitted.l2), (np.inf, admitted.linf)):
            assert np.linalg.norm(moved, order) <= bound + failure_probability, f"l{order} of {name}"

    def test_no_document_counts_twice(self, mechanism: Mechanism, before: Terms) -> None:
        documents, admitted = some_documents(12, seed=2), mechanism.admit(before, COHORT)
        for batch in (0, 1, 5, 100):
            taken = mechanism.on_documents(documents, replace(admitted, batch=batch), context())
            assert len(np.unique(taken.keys)) == len(taken)
            assert set(taken.keys.tolist()) <= set(documents.keys.tolist())

    def test_vectors_keep_their_shape_and_kind(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(before, COHORT)
        vector = ClippedRowSum(admitted).vector()
        sent = mechanism.on_vector(vector.copy(), admitted, context())
        assert sent.shape == vector.shape
        assert np.issubdtype(sent.dtype, np.integer) == (admitted.domain is Domain.INTEGER)

    def test_each_row_is_bounded_by_itself(self, mechanism: Mechanism, before: Terms) -> None:
        """A row is changed in the same way whatever the other rows are, and wherever it is among them."""
        for name, rows, _ in adversarial_rows(before):
            rows = rows.astype(np.int64 if before.domain is Domain.INTEGER else np.float64)
            order = np.random.default_rng(1).permutation(len(rows))
            kept = _dense(mechanism.on_rows(rows, before))
            np.testing.assert_array_equal(_dense(mechanism.on_rows(rows[order], before)), kept[order], name)
            for i, row in enumerate(rows):
                np.testing.assert_array_equal(_dense(mechanism.on_rows(row[None], before))[0], kept[i], name)

    def test_the_stated_sampling_is_applied(self, mechanism: Mechanism, before: Terms) -> None:
        asks, documents = replace(before, batch=5), some_documents(3000, seed=3)
        rate = mechanism.admit(asks, COHORT).sampling
        if rate == before.sampling:
            return
        first, second = (set(mechanism.on_documents(documents, asks, context()).keys.tolist()) for _ in range(2))
        room = np.sqrt(3000 * np.log(4 / CHANCE) / 2)  # Hoeffding
        assert abs(len(first) - 3000 * rate) <= room
        assert abs(len(first & second) - 3000 * rate**2) <= room, "the second coins are the first ones"

    def test_honesty(self, mechanism: Mechanism, before: Terms) -> None:
        self.noise_is_what_is_stated(mechanism, before, COHORT)

    def test_honesty_when_parties_drop_out_and_collude(self, mechanism: Mechanism, before: Terms) -> None:
        self.noise_is_what_is_stated(mechanism, before, SHRUNK)

    def noise_is_what_is_stated(self, mechanism: Mechanism, before: Terms, cohort: Cohort) -> None:
        admitted = mechanism.admit(many(before), cohort)
        if not adds_noise(mechanism, admitted):
            assert admitted.deviation == before.deviation or admitted.noised is before.noised
            return
        noise, deviation = self.noise(mechanism, admitted, cohort), stated_deviation(mechanism, admitted)
        stated = type(self).distribution(replace(admitted, deviation=deviation))
        assert misfit(noise, stated) <= 1, "the noise is not what the terms state"
        room = 7 * np.sqrt(5 / len(noise))  # seven standard errors of a variance, as wide as Laplace noise makes them
        assert abs((noise**2).mean() / deviation**2 - 1) <= room, "the noise is not what the terms state"
        assert misfit(np.trunc(noise / 2) if admitted.domain is Domain.INTEGER else noise / 2, stated) > 1, "half of it passes"

    def noise(self, mechanism: Mechanism, admitted: Terms, cohort: Cohort = COHORT) -> Array:
        """The noise that is added to zeros: by one party, by the fewest honest parties' shares, or by the opener of the sum."""
        nothing = ClippedRowSum(admitted).vector()
        if noises_total(mechanism):
            opened = mechanism.on_answer(Answer(blocks_of(nothing, admitted)), admitted, context(cohort)).total
            assert opened is not None
            return np.concatenate([block.ravel() for block in opened.values()]).astype(float)
        senders = cohort.threshold - cohort.colluding if admitted.noised is Noised.SHARE else 1
        drawn = [mechanism.on_vector(nothing.copy(), admitted, context(cohort)) for _ in range(senders)]
        total: Array = np.sum(drawn, axis=0).astype(float)
        return total

    def test_an_opened_total_says_how_much_noise_is_in_it(self, mechanism: Mechanism, before: Terms) -> None:
        """The noise of all parties that add to the total; models read it from the answer."""
        admitted = mechanism.admit(before, COHORT)
        opened = mechanism.on_answer(Answer(blocks_of(ClippedRowSum(admitted).vector(), admitted)), admitted, context())
        in_words = admitted.unit is Unit.WORD  # then the noise is in the documents, and the total has none of its own
        if not adds_noise(mechanism, admitted) or before.noised is admitted.noised is not Noised.NOT or in_words:
            assert opened.deviation == 0
            return
        honest = COHORT.threshold - COHORT.colluding if admitted.noised is Noised.SHARE else 1
        added = 1 if noises_total(mechanism) else len(COHORT.members)
        assert opened.deviation == pytest.approx(stated_deviation(mechanism, admitted) * np.sqrt(added / honest))

    def test_what_is_declared_is_what_is_done(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(replace(before, batch=5), COHORT)
        if mechanism.event(admitted, COHORT) is not None:
            assert mechanism.noise_by is not NoiseBy.NOBODY
        if admitted.sampling != before.sampling and not isinstance(mechanism, InTurn):
            assert mechanism.sampling is Sampling.COINS
        own = {one.name for one in fields(mechanism)}  # type: ignore[arg-type]
        assert set(mechanism.plan_numbers.values()) <= own

    def test_noise_is_fresh(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(many(before), COHORT)
        if adds_noise(mechanism, admitted):
            assert np.any(self.noise(mechanism, admitted) != self.noise(mechanism, admitted))

    def test_the_reach_has_room_for_the_noise(self, mechanism: Mechanism, before: Terms) -> None:
        """A vector beyond its reach would be clamped before it is sealed, and clamped noise is not the noise that is spent."""
        admitted = mechanism.admit(many(replace(before, reach=9.0)), COHORT)
        if admitted.noised not in (Noised.NOT, before.noised):
            sent = mechanism.on_vector(ClippedRowSum(admitted).vector(), admitted, context())
            assert admitted.reach >= 9.0 + 2 * np.abs(sent).max()

    def test_noise_has_an_event_and_a_claim(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(before, COHORT)
        if adds_noise(mechanism, admitted):
            assert mechanism.event(admitted, COHORT) is not None
            assert mechanism.claims(COHORT)

    def test_the_event_spends_no_less_than_the_noise_hides(self, mechanism: Mechanism, before: Terms) -> None:
        for cohort in (COHORT, SHRUNK):
            admitted = mechanism.admit(before, cohort)
            if adds_noise(mechanism, admitted):
                claimed, hidden = multiplier(mechanism.event(admitted, cohort), admitted, mechanism)
                assert 0.7 * hidden < claimed <= hidden * (1 + 1e-9)

    def test_the_event_claims_no_more_amplification_than_the_sampling_gives(self, mechanism: Mechanism, before: Terms) -> None:
        rare = mechanism.admit(replace(before, sampling=0.01), COHORT)
        if adds_noise(mechanism, rare):
            event: Any = mechanism.event(rare, COHORT)
            always: Any = mechanism.event(mechanism.admit(before, COHORT), COHORT)
            assert rate_of(event, always) >= 0.01 * (1 - 1e-9)

    def test_the_failure_probability_is_a_small_probability(self, mechanism: Mechanism, before: Terms) -> None:
        failure_probability = mechanism.failure_probability(mechanism.admit(before, COHORT), COHORT)
        assert 0 <= failure_probability < 1e-3


def _dense(rows: Rows) -> Array:
    dense: Array = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return dense


def noises_total(mechanism: Mechanism) -> bool:
    """Whether the opener of the sum adds the noise."""
    return mechanism.noise_by is NoiseBy.OPENER


def adds_noise(mechanism: Mechanism, admitted: Terms) -> bool:
    """Whether what is opened under these terms carries noise of this mechanism."""
    return admitted.noised is not Noised.NOT or noises_total(mechanism)


def stated_deviation(mechanism: Any, admitted: Terms) -> float:
    """The deviation of the opened sum: as the terms say, or as the mechanism says where the opener adds the noise."""
    return float(mechanism.total_deviation(admitted)) if noises_total(mechanism) else admitted.deviation


def multiplier(event: Any, terms: Terms, mechanism: Mechanism) -> tuple[float, float]:
    """The noise in units of the bound: what the event says, and what the terms say."""
    stated = stated_deviation(mechanism, terms)
    match type(event).__name__:
        case "PoissonSampledDpEvent":
            return multiplier(event.event, terms, mechanism)
        case "SymmetricZCDpEvent":
            return 1 / np.sqrt(2 * (event.rho + event.xi)), stated / terms.l2
        case "GaussianDpEvent":
            return float(event.noise_multiplier), stated / terms.l2
        case "DiscreteLaplaceDpEvent":
            return deviation(1 / event.noise_parameter) / event.sensitivity, stated / int(terms.l1)
        case _:
            return float(event.noise_multiplier), scale_of(stated) / terms.l1


def rate_of(event: Any, unsampled: Any) -> float:
    """The rate at which an event was sampled: stated, or computed from its pure epsilon, log(1 + rate (e^eps - 1))."""
    if event == unsampled:
        return 1.0
    if isinstance(event, PoissonSampledDpEvent):
        return float(event.sampling_probability)
    pure, whole = (np.expm1(one.noise_parameter * one.sensitivity) for one in (event, unsampled))
    return float(pure / whole)


def many(terms: Terms) -> Terms:
    """The same terms for a vector long enough for statistics."""
    return replace(terms, layout=(Block("many", (SAMPLES,)),))


def integer_terms(**bounds: float) -> Terms:
    """Terms of a small integer sum with the given bounds on a document's row."""
    return replace(Terms((Block("a", (3, 2)), Block("b", (5,))), domain=Domain.INTEGER, bits=64), **bounds)  # type: ignore[arg-type]


def each_terms() -> Terms:
    """Terms of a query that needs every party's own vector."""
    return Terms((Block("own", (4, 2)),), needs=Needs.EACH, ragged=True, unit=Unit.PARTY, bits=64)
