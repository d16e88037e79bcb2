"""Mechanisms in any order: a route is the plain fold over them, and no row moves the sum by more than noise is made for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.answers.route import Route
from securetm.contracts import INF, Array, Block, Cohort, Domain, Mechanism, NoiseBy, Noised, RoundContext, Terms
from securetm.entropy import OperatingSystem
from securetm.errors import SecuretmError
from securetm.federation.budget.prices import spend_of
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.mechanisms.gaussian_noise import CentralNoise, GaussianNoise
from securetm.mechanisms.laplace_noise import DiscreteLaplaceNoise
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.mechanisms.normalising import TopicWise
from securetm.mechanisms.quantising import Clamped, FixedPoint
from securetm.mechanisms.rotating import Rotation
from securetm.mechanisms.sampling import PoissonSample, ShuffledBatches
from securetm.testing.few_documents import EmptyStore

COHORT = Cohort(b"r" * 32, 0, tuple(f"party {n}" for n in range(7)), 6, 2)
PARTS: tuple[Callable[[], Mechanism], ...] = (
    *(partial(Clip, radius) for radius in (0.1, 5.0)),
    *(partial(BoundedCounts, most, each) for most, each in ((1, 1), (3, 2), (30, 1))),
    *(partial(FixedPoint, span=span, headroom=0.02) for span in (1.0, 4096.0)),
    *(partial(GaussianNoise, noise) for noise in (0.5, 4.0)),
    partial(NoiseShares, 4.0),
    partial(CentralNoise, 1.0),
    partial(DiscreteLaplaceNoise, 1.0),
    partial(PoissonSample, 0.05),
    *(Rotation, ShuffledBatches, Clamped, TopicWise),
)
ASKED = (
    Terms((Block("w", (40,)),)),
    Terms((Block("w", (300,)),), bits=64),
    Terms((Block("w", (40,)),), l2=2.0, reach=50.0, batch=16),
    Terms((Block("w", (4, 10)), Block("n", (1,))), domain=Domain.INTEGER, bits=64),
    Terms((Block("w", (40,)),), domain=Domain.INTEGER, linf=1.0, l1=10.0, l2=3.2),
)
ROUNDED = 1 + 1e-6  # a sum of rows that nobody clips may be in 32 bits


def stacks(seed: int, tries: int = 250) -> Iterator[tuple[Terms, tuple[Mechanism, ...]]]:
    drawn = random.Random(seed)
    for _ in range(tries):
        yield drawn.choice(ASKED), tuple(drawn.choice(PARTS)() for _ in range(drawn.randint(1, 5)))


def folded(asked: Terms, stack: tuple[Mechanism, ...]) -> list[tuple[Terms, Terms]]:
    """The terms before and after each mechanism."""
    pairs = []
    for mechanism in stack:
        pairs.append((asked, mechanism.admit(asked, COHORT)))
        asked = pairs[-1][1]
    return pairs


@pytest.mark.parametrize("seed", range(3))
def test_a_route_is_the_fold_over_its_mechanisms(seed: int) -> None:
    for asked, stack in stacks(seed):
        try:
            pairs = folded(asked, stack)
        except SecuretmError as refusal:
            with pytest.raises(type(refusal)):
                Route.through(asked, stack, COHORT)
            continue
        route = Route.through(asked, stack, COHORT)
        assert [(step.before, step.after) for step in route.steps] == pairs
        events = [event for part, (_, after) in zip(stack, pairs, strict=True) if (event := part.event(after, COHORT))]
        assert [step.event for step in route.steps if step.event is not None] == events
        assert ((spent := spend_of(route)) is None) == (not events)
        failures = sum(part.failure_probability(after, COHORT) for part, (_, after) in zip(stack, pairs, strict=True))
        assert spent is None or spent.failure_probability == failures
        assert route.radius == min(part.row_radius(before) for part, (before, _) in zip(stack, pairs, strict=True))


def rows_of(asked: Terms, seed: int) -> Iterator[Array]:
    """Rows that keep what the question promises of them, some of them very long."""
    rng, shape = np.random.default_rng(seed), (6, asked.size)
    for rows in (*(rng.normal(size=shape) * far for far in (1e-3, 1.0, 1e6)), np.eye(*shape) * 1e9, np.ones(shape) * 1e3):
        if asked.domain is Domain.INTEGER:
            whole = np.round(np.abs(rows))
            yield np.minimum(whole, 1) * (np.arange(asked.size) < 10) if asked.l2 < INF else whole
        else:
            yield rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True) / asked.l2)


def before_noise(route: Route, rows: Array, steps: int) -> Array:
    """The vector of these rows after so many steps."""
    summed, context = (
        ClippedRowSum(route.row_terms, route.radius, route.on_rows),
        RoundContext(COHORT, OperatingSystem(), EmptyStore({})),
    )
    summed.add(rows, np.arange(len(rows)))
    vector = summed.vector()
    for step in route.steps[:steps]:
        vector = step.mechanism.on_vector(vector, step.after, context)
    return np.asarray(vector, dtype=np.float64)


@pytest.mark.parametrize("seed", range(3))
def test_one_row_more_moves_the_sum_by_no_more_than_noise_is_made_for(seed: int) -> None:
    tried = 0
    for asked, stack in stacks(seed):
        try:
            route = Route.through(asked, stack, COHORT)
        except SecuretmError:
            continue
        for number, step in enumerate(route.steps):
            promised = step.before
            if step.mechanism.noise_by is NoiseBy.NOBODY or promised.noised is not Noised.NOT or promised.l2 == INF:
                continue
            for rows in rows_of(asked, seed):
                moved = np.abs(before_noise(route, rows, number) - before_noise(route, rows[:-1], number))
                said = f"{stack} of {asked}"
                assert moved.sum() <= promised.l1 * ROUNDED, said
                assert np.linalg.norm(moved) <= promised.l2 * ROUNDED, said
                assert moved.max() <= promised.linf * ROUNDED, said
                tried += 1
    assert tried > 100
