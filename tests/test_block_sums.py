"""Sums of blocks in the fixed tree: any order and any share of the work gives the same bytes; what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.answers.block_sums import JoinedBlocks, Node, PartialSum
from securetm.errors import UnfitBlocks

RNG = np.random.default_rng(0)


def leaf(values: np.ndarray, place: int, *, read_only: bool = False) -> Node:
    vector = values[place].copy()
    vector.flags.writeable = not read_only
    return Node(0, place, PartialSum(vector, float(place), place + 1, place))


def in_order(values: np.ndarray, order: np.ndarray, workers: int = 1) -> PartialSum:
    whole = JoinedBlocks(len(values))
    for places in np.array_split(order, workers):
        here = JoinedBlocks(len(values))
        for place in places:
            here.add(leaf(values, int(place), read_only=workers == 2))
        for node in here.nodes():
            whole.add(node)
    return whole.whole()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 8, 13])
def test_no_order_and_no_share_of_the_work_changes_a_byte(blocks: int, dtype: type) -> None:
    values = (RNG.normal(0, 1e6, (blocks, 5)) * 10.0 ** RNG.integers(-8, 8, (blocks, 5))).astype(dtype)
    first = in_order(values, np.arange(blocks))
    for trial in range(20):
        again = in_order(values, np.random.default_rng(trial).permutation(blocks), 1 + trial % 4)
        assert again.vector.tobytes() == first.vector.tobytes()
        assert (again.loss, again.losses, again.lost) == (first.loss, first.losses, first.lost)
    assert first.lost == sum(range(blocks))


def test_neighbours_leave_few_sums_behind() -> None:
    values, here = np.ones((1000, 1)), JoinedBlocks(1000)
    most = 0
    for place in range(3, 990):
        here.add(leaf(values, place))
        most = max(most, len(here.nodes()))
    assert most <= 2 * 10


def test_mean_losses_are_of_all_rows_and_nothing_is_a_loss_of_no_rows() -> None:
    parts = [PartialSum(np.zeros(1), loss, count) for loss, count in ((2.0, 1), (np.inf, 0), (5.0, 2))]
    assert parts[0].plus(parts[1]).plus(parts[2]).loss == 4.0


def test_what_overflows_only_together_counts_as_lost() -> None:
    one = PartialSum(np.array([1e308, 1.0])).plus(PartialSum(np.array([1e308, 1.0]))).finite()
    assert one.vector.tolist() == [0.0, 2.0]
    assert one.lost == 1


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([(0, 0)], "missing"),
        ([(0, 0), (0, 0)], "added before"),
        ([(0, 0), (0, 1), (0, 1)], "added before"),
        ([(0, 3)], "no node"),
        ([(3, 0)], "no node"),
        ([(0, -1)], "no node"),
    ],
)
def test_sums_that_do_not_fit_are_refused(nodes: list[tuple[int, int]], problem: str) -> None:
    def joined() -> None:
        whole = JoinedBlocks(3)
        for level, index in nodes:
            whole.add(Node(level, index, PartialSum(np.ones(1))))
        whole.whole()

    with pytest.raises(UnfitBlocks, match=problem):
        joined()
