"""Topics of word vectors: alike words together, the same bytes each time, and something sensible where little is known."""

import numpy as np
import pytest

from securetm.contracts import Array
from securetm.models.public_knowledge import public_fits, public_knowledge

GROUPS, EACH = 4, 6


def grouped(dimensions: int = 8, spread: float = 0.2) -> Array:
    rng = np.random.default_rng(0)
    return np.repeat(np.eye(GROUPS, dimensions), EACH, axis=0) + spread * rng.normal(size=(GROUPS * EACH, dimensions)) / 3


@pytest.mark.parametrize("dimensions", [8, 100])
def test_words_that_are_alike_share_a_topic(dimensions: int) -> None:
    found = public_knowledge(grouped(dimensions), GROUPS)
    assert found.vectors.shape == (GROUPS * EACH, min(dimensions, 64))
    heaviest = {tuple(sorted(np.argsort(-topic)[:EACH] // EACH)) for topic in found.topics}
    assert heaviest == {(group,) * EACH for group in range(GROUPS)}


def test_a_last_bit_of_the_vectors_moves_nothing() -> None:
    first, again = (public_knowledge(rows, GROUPS) for rows in (grouped(), grouped() * (1 + 1e-15)))
    assert first.topics.tobytes() == again.topics.tobytes()
    assert first.vectors.tobytes() == again.vectors.tobytes()


@pytest.mark.parametrize("known", [0, 1, 2])
@pytest.mark.parametrize("topics", [1, 5])
def test_few_known_words_are_enough(known: int, topics: int) -> None:
    rows = np.zeros((7, 3))
    rows[:known] = np.eye(3)[:known]
    found = public_knowledge(rows, topics)
    assert public_fits(found.arrays(), topics, 7)
