"""What a role keeps on disk: the same content is the same bytes, and an interrupted write is made once, whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import safe_open

from securetm.federation.store import read_arrays, write_arrays
from securetm.models.gibbs.lda import LDA
from securetm.models.stored_model import read_model, write_model

STATE = {"counts": np.arange(6.0).reshape(2, 3), "step": np.ones(1, np.int64), "a": np.float32(3.0), "none": np.zeros((0, 4))}


def test_the_same_arrays_and_facts_are_the_same_bytes(tmp_path: Path) -> None:
    facts = {f"fact {n}": n for n in range(8)}
    for n in range(10):
        write_arrays(tmp_path / f"{n}.safetensors", STATE, facts)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    found, said = read_arrays(tmp_path / "0.safetensors")
    assert said == facts
    for name, array in STATE.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].shape, found[name].dtype) == (np.shape(array), np.asarray(array).dtype)


def test_the_same_model_is_the_same_bytes_in_whatever_order_its_arrays_stand(tmp_path: Path) -> None:
    """A header in an order of chance has five keys: ten alike have a probability below 1e-18."""
    model, words = LDA(n_topics=2), ("boat", "lake", "river")
    state = model.start(words, np.random.default_rng(0))
    for n in range(10):
        write_model(tmp_path / f"{n}.safetensors", model, dict(reversed(state.items())) if n % 2 else state, words)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    again, kept, vocabulary = read_model(tmp_path / "0.safetensors", LDA)
    assert (again, vocabulary) == (model, words)
    assert all((kept[name] == array).all() for name, array in state.items())
    with safe_open(tmp_path / "0.safetensors", framework="numpy") as stored:  # what others read it with
        assert set(stored.metadata()) >= {"kind", "version", "model", "settings", "vocabulary"}
