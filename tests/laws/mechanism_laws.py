"""What every mechanism must keep: the bound it writes, the noise it states, and the shape of what passes through it.

Subclass `MechanismLaws` and give `mechanism` and `before` (terms of the kind it is for). Accounting has laws of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse, stats

from securetm.contracts import Array, Block, Cohort, Desk, Domain, Mechanism, Needs, Noised, Rows, Terms, Unit
from securetm.entropy import OperatingSystem
from securetm.tally import SumTally
from tests.laws.toy_mechanisms import scale_of
from tests.laws.toys import some_documents

MEMBERS = ("ant", "bee", "cat", "dog")
COHORT = Cohort(b"round", 0, MEMBERS, threshold=len(MEMBERS))
SAMPLES = 40_000
CHANCE = 1e-9  # that an honest mechanism fails


@dataclass
class EmptyCupboard:
    """A role's memory for one test."""

    kept: dict[str, bytes]

    def get(self, key: str) -> bytes | None:
        return self.kept.get(key)

    def put(self, key: str, value: bytes) -> None:
        self.kept[key] = value


def desk() -> Desk:
    """A desk with the operating system's randomness."""
    return Desk(COHORT, OperatingSystem(), EmptyCupboard({}))


def summed(mechanism: Mechanism, before: Terms, admitted: Terms, rows: Rows, owners: Array) -> Array:
    """The vector of one party, on the way that it really takes, but without noise."""
    tally = SumTally(before, mechanism.row_radius(before), lambda poured: mechanism.on_rows(poured, before))
    if len(owners):
        tally.add(rows, owners)
    vector = tally.vector()
    if admitted.noised is before.noised:
        vector = mechanism.on_vector(vector, admitted, desk())
    return vector.astype(float)


def adversarial_rows(terms: Terms) -> Iterator[tuple[str, Array, Array]]:
    """Rows and owners chosen to break a bound; the last owner is the one whose presence is measured.

    Rows stay within the bounds that the query itself promised.
    """
    rng, size = np.random.default_rng(0), terms.size
    spike, ones, signs = np.eye(size)[0], np.ones(size), rng.choice([-1.0, 1.0], size)
    shapes = {"spike": spike, "flat": ones, "signs": signs, "random": rng.normal(size=size), "nothing": 0 * ones}
    for name, shape in shapes.items():
        for height in (1e-6, 0.7, 1.0, 3.0, 1e3, 1e6):
            alone = np.tile(height * shape, (6, 1))
            yield f"{name} x {height}", within(alone, terms), np.arange(6)
            if terms.linf == np.inf:  # else the query bounded the sum of an owner's rows, and these would break its promise
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


def discrete_laplace(terms: Terms) -> Callable[[Array], Array]:
    """The cumulative distribution of two-sided geometric noise of the stated deviation."""
    kept = np.exp(-1 / scale_of(terms.deviation))

    def at(values: Array) -> Array:
        tail = kept ** np.abs(np.floor(values)) / (1 + kept)
        below: Array = np.where(values < 0, tail, 1 - tail * kept)
        return below

    return at


def gaussian(terms: Terms) -> Callable[[Array], Array]:
    """The cumulative distribution of Gaussian noise of the stated deviation."""
    return lambda values: np.asarray(stats.norm.cdf(values, scale=terms.deviation))


def misfit(noise: Array, stated: Callable[[Array], Array]) -> float:
    """How many times further the noise is from what is stated than chance allows (Dvoretzky, Kiefer and Wolfowitz).

    Compared at each value and just below it, so it holds for whole numbers too.
    """
    values, counts = np.unique(noise, return_counts=True)
    upto = np.cumsum(counts) / len(noise)
    just_below = stated(np.nextafter(values, -np.inf))
    furthest = max(np.abs(stated(values) - upto).max(), np.abs(just_below - (upto - counts / len(noise))).max())
    return float(furthest / np.sqrt(np.log(2 / CHANCE) / (2 * len(noise))))


class MechanismLaws:
    """Laws of one mechanism, for the terms that the fixture `before` gives."""

    distribution: Callable[[Terms], Callable[[Array], Array]] = staticmethod(gaussian)

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
        for old, new in ((before.l1, admitted.l1), (before.l2, admitted.l2), (before.linf, admitted.linf)):
            assert new <= old or admitted.grid > 0  # a grid changes what one step is worth
        assert 0 < admitted.sampling <= before.sampling

    def test_bound(self, mechanism: Mechanism, before: Terms) -> None:
        for name, rows, owners in adversarial_rows(before):
            for poured in (rows, sparse.csr_array(rows)):
                self.presence_is_bounded(mechanism, before, poured, owners, name)

    def presence_is_bounded(self, mechanism: Mechanism, before: Terms, rows: Rows, owners: Array, name: str) -> None:
        admitted = mechanism.admit(before, COHORT)
        rows = rows.astype(np.int64 if before.domain is Domain.INTEGER else np.float64)
        others = owners != owners[-1]
        whole = summed(mechanism, before, admitted, rows, owners)
        moved = whole - summed(mechanism, before, admitted, rows[others], owners[others])
        slack = 1e-9 * (1 + np.abs(whole).max())
        for order, bound in ((1, admitted.l1), (2, admitted.l2), (np.inf, admitted.linf)):
            assert np.linalg.norm(moved, order) <= bound + slack, f"l{order} of {name}"

    def test_no_document_counts_twice(self, mechanism: Mechanism, before: Terms) -> None:
        documents, admitted = some_documents(12, seed=2), mechanism.admit(before, COHORT)
        for batch in (0, 1, 5, 100):
            taken = mechanism.on_documents(documents, replace(admitted, batch=batch), desk())
            assert len(np.unique(taken.keys)) == len(taken)
            assert set(taken.keys.tolist()) <= set(documents.keys.tolist())

    def test_vectors_keep_their_shape_and_kind(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(before, COHORT)
        vector = SumTally(admitted).vector()
        sent = mechanism.on_vector(vector.copy(), admitted, desk())
        assert sent.shape == vector.shape
        assert np.issubdtype(sent.dtype, np.integer) == (admitted.domain is Domain.INTEGER)

    def test_honesty(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(many(before), COHORT)
        if admitted.noised is Noised.NOT:
            assert admitted.deviation == before.deviation
            return
        noise = self.noise(mechanism, admitted)
        stated = type(self).distribution(admitted)
        assert misfit(noise, stated) <= 1, "the noise is not what the terms state"
        assert misfit(np.trunc(noise / 2) if admitted.domain is Domain.INTEGER else noise / 2, stated) > 1, "half of it passes"

    def noise(self, mechanism: Mechanism, admitted: Terms) -> Array:
        """What is added to nothing: by one party, or by a whole cohort if each adds a share."""
        senders = len(MEMBERS) if admitted.noised is Noised.SHARE else 1
        nothing = SumTally(admitted).vector()
        drawn = [mechanism.on_vector(nothing.copy(), admitted, desk()) for _ in range(senders)]
        total: Array = np.sum(drawn, axis=0).astype(float)
        return total

    def test_noise_is_fresh(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(many(before), COHORT)
        if admitted.noised is Noised.NOT:
            return
        assert np.any(self.noise(mechanism, admitted) != self.noise(mechanism, admitted))

    def test_noise_has_an_event_and_a_claim(self, mechanism: Mechanism, before: Terms) -> None:
        admitted = mechanism.admit(before, COHORT)
        if admitted.noised is not Noised.NOT:
            assert mechanism.event(admitted, COHORT) is not None
            assert mechanism.claims(COHORT)


def many(terms: Terms) -> Terms:
    """The same terms for a vector long enough for statistics."""
    return replace(terms, layout=(Block("many", (SAMPLES,)),))


def integer_terms(**bounds: float) -> Terms:
    """Terms of a small integer sum with the given bounds on a document's row."""
    return replace(Terms((Block("a", (3, 2)), Block("b", (5,))), domain=Domain.INTEGER, bits=64), **bounds)  # type: ignore[arg-type]


def each_terms() -> Terms:
    """Terms of a query that needs every party's own vector."""
    return Terms((Block("own", (4, 2)),), needs=Needs.EACH, ragged=True, unit=Unit.PARTY, bits=64)
