"""A round of the peer counts only if it opened the right sum: it ends a round that failed without an error."""

from __future__ import annotations

import pytest

from lab.peers.other_packages import FLOWER_ROUNDS, lacks_of_flower


@pytest.mark.parametrize(("error", "said"), [(1e-5, ""), (1.0, "flwr 1.2 with 100 parties: its round ended without a sum")])
def test_a_round_without_a_sum_is_missing(error: float, said: str) -> None:
    assert lacks_of_flower({"version": "1.2", "error": error}, 100) == said


def test_a_peer_that_is_not_there_is_missing() -> None:
    assert lacks_of_flower(None, 100) == FLOWER_ROUNDS
