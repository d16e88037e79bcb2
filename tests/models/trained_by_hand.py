"""Documents of three planted topics, and rounds of a model that answers with counts, without federation. It holds no tests."""

import numpy as np
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer
from securetm.models.given_documents import as_documents

WORDS = 60
VOCABULARY = tuple(f"w{v}" for v in range(WORDS))


def planted(documents=240, seed=0):
    """Documents of one of three topics, each with twenty words of its own."""
    rng = np.random.default_rng(seed)
    topic = np.arange(documents) % 3
    counts = rng.poisson(0.05, (documents, WORDS))
    for i, t in enumerate(topic):
        counts[i, 20 * t : 20 * t + 20] += rng.poisson(1.0, 20)
    return as_documents(sparse.csr_array(counts), VOCABULARY), topic


def sum_of(query, documents, memory=None, radius=np.inf, persons=None, rng=None):
    """What a party answers, added up: the clipped sum."""
    clipped_sum = ClippedRowSum(query.terms, radius, persons=persons)
    query.answer(documents, clipped_sum, {} if memory is None else memory, rng or np.random.default_rng(0))
    return clipped_sum


def counts_of(model, state, documents, memory):
    return sum_of(model.query(state), documents, memory).blocks()["counts"]


def rounds(model, state, documents, memory, number):
    for _ in range(number):
        state = model.update(state, Answer({"counts": counts_of(model, state, documents, memory)}))
    return state
