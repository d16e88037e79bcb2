"""What this processor makes of fixed inputs, as digests in JSON: a test runs it under several settings. No test of its own.

Arguments: which results, or none for all.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from securetm.entropy import Seeded
from securetm.mechanisms.samplers import discrete_gaussian, discrete_laplace, rounded_gaussian, skellam
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.models.estimator import Estimator
from securetm.plans.profiles import make_model
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import split, trained

SEED = bytes(range(32))
MODELS: dict[str, dict[str, Any]] = {
    "lda": {"n_topics": 3, "sweeps": 2},
    "lda by mh": {"n_topics": 3, "sweeps": 2, "sampler": "mh"},
    "sentence-lda": {"n_topics": 3, "sweeps": 2},
    "lda-vi": {"n_topics": 3},
    "moments": {"n_topics": 3},
    "nmf": {"n_topics": 3},
    "prodlda": {"n_topics": 3, "hidden": 8, "batch": 16, "dtype": "float64", "device": "cpu"},
}


def digest(*arrays: Any) -> str:
    """Of every bit of them."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(f"{np.asarray(array).dtype.str} {np.shape(array)}".encode() + np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:16]


def model_of(name: str) -> str:
    """The tensors of a model that was trained for four rounds by three parties."""
    made = make_model(name.split(" ")[0], MODELS[name])
    assert isinstance(made, Estimator)
    state = trained(made, split(some_documents(30)))
    return digest(*(state[key] for key in sorted(state)))


def noise() -> str:
    """Draws of every sampler from one stream."""
    samplers = [
        make(scale) for make in (discrete_laplace, discrete_gaussian, rounded_gaussian, skellam) for scale in (3.0, 3e7)
    ]
    return digest(*(sampler.draw(Seeded(SEED, unsafe=True), 2000) for sampler in samplers))


def slot_noise() -> str:
    """Noise on words, whole and fine."""
    words = np.arange(40, dtype=np.int32)
    return digest(*(part for whole in (True, False) for part in SlotNoise(40, 1.0, 0.2, whole).draw(SEED, words, 0)))


RESULTS: dict[str, Callable[[], str]] = {
    "noise": noise,
    "slot noise": slot_noise,
    **{name: (lambda name=name: model_of(name)) for name in MODELS},  # type: ignore[misc]
}

if __name__ == "__main__":
    print(json.dumps({name: RESULTS[name]() for name in sys.argv[1:] or RESULTS}))
