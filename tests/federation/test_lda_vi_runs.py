"""Variational LDA in a federation, and LDA's counts behind noise: what is learned together, what is promised, what is spent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from scipy import sparse

from securetm.accounting.ledger import Ledger
from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Memory, State
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.mechanisms.clipping import at_most
from securetm.models.given_documents import BagOfWords
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of, read_profile
from securetm.plans.schema import Plan
from securetm.route import compile_route
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import small_plan
from .private import private_plan

ROUNDS = 6
PRIVATE = ("dp-local", "dp-central", "dp-distributed")
FIVE_OF_THEM = tuple(f"party {n}" for n in range(5))


def together(parties: Mapping[str, Corpus], plan: Plan, vocabulary: tuple[str, ...]) -> BagOfWords:
    """The documents that the parties train on, end to end."""
    agreed = [corpus.project(vocabulary) for corpus in parties.values()]
    parts = [part.select(part.lengths() > 0).split(1 - plan.training.held_out, plan.seed)[0] for part in agreed]
    counts = sparse.vstack([part.counts for part in parts], format="csr")
    return BagOfWords(counts, vocabulary, np.concatenate([part.keys for part in parts]))


@pytest.mark.parametrize(("profile", "apart"), [("open", 1e-9), ("masked", 1e-3)])
def test_a_federation_expects_what_one_machine_expects(
    profile: str, apart: float, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = small_plan(profile=profile, model={"name": "lda-vi", "n_topics": 4}, training__rounds=ROUNDS)
    result = execute(begin(tmp_path / "run", plan, five), Unwatched())
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    model = agree(plan).model
    assert isinstance(model, VariationalLDA)
    alone = model.fit(together(five, plan, vocabulary), epochs=ROUNDS, seed=plan.seed).learned.state
    federated = read_arrays(tmp_path / "run/release/model.safetensors", bare=True)[0]
    np.testing.assert_allclose(federated["counts"], alone["counts"], atol=apart)
    assert result["quality"]["held_out"] < min(figures["held_out_everywhere"] for figures in result["alone"].values())


@pytest.mark.parametrize(
    ("profile", "model"),
    quick(product(PRIVATE, ("lda", "lda-vi")), ("dp-local", "lda-vi"), ("dp-central", "lda"), ("dp-distributed", "lda-vi")),
)
def test_a_budget_lasts_for_the_rounds_and_nothing_is_amplified(
    profile: str, model: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    settings = {"model": {"name": model, "n_topics": 3}, "privacy__epsilon": 8.0, "training__rounds": ROUNDS}
    folder = begin(tmp_path / "run", private_plan(tmp_path, profile, **settings), five)
    result = execute(folder, Unwatched())
    assert (result["rounds"], result["stopped"]) == (ROUNDS, "rounds")
    assert all(7.2 < spent["epsilon"] <= 8.0 and spent["unit"] == "document" for spent in result["spent"])
    with Ledger.read(folder.ledger("north")) as ledger:
        events = [spend.event for spend in ledger.spends(folder.name)]
    assert all("Sampled" not in type(event).__name__ for event in events)
    if profile != "dp-distributed":
        assert all(isinstance(event, GaussianDpEvent) for event in events)
    assert len(result["topics"]) == 3


@pytest.mark.parametrize("name", [*PRIVATE, "fortress"])
def test_counts_are_promised_to_be_few(name: str) -> None:
    profile = read_profile(name)
    model = LDA(n_topics=3)
    query = model.query(model.start(("a", "b", "c"), np.random.default_rng(0)))
    terms = compile_route(query.terms, profile, cohort_of(profile, FIVE_OF_THEM)).terms
    assert (terms.l1, terms.linf, terms.sampling) == (9, 1, 1.0)  # of three times three places each holds one at most
    wide = model.query(model.start(tuple(f"w{n}" for n in range(100)), np.random.default_rng(0)))
    terms = compile_route(wide.terms, profile, cohort_of(profile, FIVE_OF_THEM)).terms
    assert (terms.l1, terms.linf, terms.sampling) == (30, 1, 1.0)
    assert terms.l2 == pytest.approx(30**0.5)


# ---- what a party remembers ------------------------------------------------------------------------------------------


def counts_of(model: LDA, state: State, documents: Any, memory: Memory) -> Array:
    query = model.query(state)
    clipped_sum = ClippedRowSum(query.terms, on_rows=lambda rows: at_most(rows, 30, 1))
    query.answer(documents, clipped_sum, memory, np.random.default_rng(0))
    return clipped_sum.vector()


def test_a_document_more_moves_each_sum_by_its_own_bounded_row(five: Mapping[str, Corpus]) -> None:
    """Whatever was opened before: here the states are noise that neither side's documents led to."""
    corpus, rng = five["north"], np.random.default_rng(5)
    model = LDA(n_topics=4, sweeps=3)
    state = dict(model.start(corpus.vocabulary, rng))
    fewer = corpus.select(np.arange(1, len(corpus)))
    one = corpus.select(np.arange(1))
    memories: tuple[Memory, Memory, Memory] = ({}, {}, {})
    for _ in range(4):
        whole, rest, own = (counts_of(model, state, d, m) for d, m in zip((corpus, fewer, one), memories, strict=True))
        np.testing.assert_array_equal(whole - rest, own)
        assert 0 < own.sum() <= 30
        assert own.max() == 1
        noise = rng.normal(0, 20.0, state["counts"].shape)
        state = dict(model.update(state, Answer({"counts": rng.poisson(30, noise.shape) + noise})))
