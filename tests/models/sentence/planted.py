"""Documents whose sentences have topics of their own, and the samplers that they are drawn with. It tests nothing itself."""

import numpy as np
import pytest

from .sentence_laws import spoken

WORDS = 60
SAMPLERS = pytest.mark.parametrize("sampler", ["gibbs", "mh"])
SWEEPS = {"gibbs": 12, "mh": 25}


def planted(documents=160, seed=0, longest=12):
    """Documents of one to seven sentences; each sentence has one of three topics, each with twenty words of its own."""
    rng = np.random.default_rng(seed)
    found, topics = [], []
    for _ in range(documents):
        shares = rng.dirichlet([0.2] * 3)
        topic = rng.choice(3, p=shares, size=rng.integers(1, 8))
        found.append([list(20 * z + rng.integers(0, 20, rng.integers(2, longest))) for z in topic])
        topics.append(np.bincount(topic, minlength=3) / len(topic))
    return spoken(found, WORDS), np.array(topics)
