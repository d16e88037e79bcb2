"""Each model in a federation: what all parties learn together is what one machine would, and what a budget is spent on."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.ledger import Ledger
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.answers.route import compile_route
from securetm.contracts import Answer, Array, Memory, State
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.mechanisms.clipping import at_most
from securetm.models.lda.lda import LDA
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of, read_profile
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import FIVE, SHARED, small_plan
from .killed_run import ended
from .private import private_plan

ROUNDS = 6
PRIVATE = ("dp-local", "dp-central", "dp-distributed")
EXACT, COUNTS = 0.0, ("counts",)
MOMENTS = ("topics", "prevalence", "spectrum", "beyond")
LEARNED = [  # model, its settings, profile, the arrays that are compared, and how far apart they may be
    ("lda", {}, "masked", COUNTS, EXACT),
    ("sentence-lda", {"sampler": "mh"}, "open", COUNTS, EXACT),
    ("sentence-lda", {"sampler": "auto"}, "masked", COUNTS, EXACT),
    ("lda-vi", {}, "masked", COUNTS, 1e-3),
    ("nmf", {}, "open", ("weights",), 1e-9),
    ("moments", {}, "masked_strict", MOMENTS, EXACT),
]
SPENT = [  # model, profile and unit
    *quick(
        [(model, profile, "document") for model in ("lda", "lda-vi") for profile in PRIVATE],
        ("lda", "dp-distributed", "document"),
    ),
    *quick(
        [(model, profile, unit) for model in ("nmf", "moments") for profile in PRIVATE for unit in ("document", "person")],
        ("nmf", "dp-local", "person"),
    ),
]


def texts(subject: list[str], documents: int, seed: int) -> list[str]:
    """Documents of a few sentences, each either about a subject or about what everybody talks about."""
    rng = np.random.default_rng(seed)

    def sentence() -> str:
        words = subject if rng.random() < 0.5 else SHARED
        return " ".join(rng.choice(words, size=int(rng.integers(2, 7)))).capitalize() + "."

    return [" ".join(sentence() for _ in range(rng.integers(2, 6))) for _ in range(documents)]


@pytest.fixture(scope="module")
def speakers() -> Mapping[str, Corpus]:
    """Five parties whose documents have sentences."""
    return {name: Corpus.from_strings(texts(FIVE[name], 60, n), name=name) for n, name in enumerate(FIVE)}


def plan_of(name: str, profile: str = "open", **settings: Any) -> Plan:
    return small_plan(profile=profile, model={"name": name, "n_topics": 4, **settings}, training__rounds=ROUNDS)


def learned(folder: Path) -> Mapping[str, Any]:
    return read_arrays(folder / "release/model.safetensors", bare=True)[0]


def together(parties: Mapping[str, Corpus], plan: Plan, vocabulary: tuple[str, ...]) -> Corpus:
    """The documents that the parties train on, end to end."""
    agreed = [corpus.project(vocabulary) for corpus in parties.values()]
    parts = [part.select(part.lengths() > 0).split(1 - plan.training.held_out, plan.seed)[0] for part in agreed]
    return Corpus.concat(parts).project(vocabulary)


@pytest.mark.parametrize(
    ("name", "settings", "profile", "arrays", "apart"), quick(LEARNED, LEARNED[0], LEARNED[1], LEARNED[3], LEARNED[4])
)
def test_a_federation_learns_what_one_machine_learns(
    name: str,
    settings: dict[str, Any],
    profile: str,
    arrays: tuple[str, ...],
    apart: float,
    speakers: Mapping[str, Corpus],
    tmp_path: Path,
) -> None:
    plan = plan_of(name, profile, **settings)
    result = execute(begin(tmp_path / "run", plan, speakers), Unwatched(), comparison=name == "lda")
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    documents, federated = together(speakers, plan, vocabulary), learned(tmp_path / "run")
    alone = agree(plan).model.fit(documents, epochs=result["rounds"], seed=plan.seed).learned.state
    for array in arrays:
        if apart:
            np.testing.assert_allclose(federated[array], alone[array], atol=apart)
        else:
            np.testing.assert_array_equal(federated[array], alone[array])
    if name == "lda":
        np.testing.assert_array_equal(federated["counts"].sum(axis=0), documents.counts.sum(axis=0))
    if name == "moments":
        assert result["rounds"] == 1
        assert np.isclose(sum(result["topic_prevalence"]), 1.0, atol=1e-3)
    else:
        assert result["rounds"] == ROUNDS
        alone_at_best = min((figures["held_out_everywhere"] for figures in result["alone"].values()), default=np.inf)
        assert result["quality"]["held_out"] < alone_at_best


# ---- under a budget --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "profile", "unit"), SPENT)
def test_a_budget_lasts_for_the_rounds_and_is_spent_by_document_or_person(
    name: str, profile: str, unit: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    if unit == "person":
        five = {party: corpus.replace(persons=np.arange(len(corpus)) // 2) for party, corpus in five.items()}
    settings = {"model": {"name": name, "n_topics": 3}, "privacy__epsilon": 8.0, "training__rounds": ROUNDS}
    plan = private_plan(tmp_path, profile, privacy__unit=unit, **settings)
    folder = begin(tmp_path / "run", plan, five)
    result = execute(folder, Unwatched(), comparison=False)
    assert (result["rounds"], result["stopped"]) == (1 if name == "moments" else ROUNDS, "rounds")
    assert all(7.0 < spent["epsilon"] <= 8.0 and spent["unit"] == unit for spent in result["spent"])
    assert len(result["topics"]) == 3
    if name in ("lda", "lda-vi"):  # all documents take part, so nothing is amplified
        with Ledger.read(folder.ledger("north")) as ledger:
            events = [spend.event for spend in ledger.spends(folder.name)]
        assert all("Sampled" not in type(event).__name__ for event in events)
        assert profile == "dp-distributed" or all(isinstance(event, GaussianDpEvent) for event in events)


@pytest.mark.parametrize("name", [*PRIVATE, "fortress"])
def test_counts_are_promised_to_be_few(name: str) -> None:
    profile, model = read_profile(name), LDA(n_topics=3)
    members = tuple(f"party {n}" for n in range(5))
    for words, most in ((3, 9), (100, 30)):  # of three times three places each holds one at most
        query = model.query(model.start(tuple(f"w{n}" for n in range(words)), np.random.default_rng(0)))
        terms = compile_route(query.terms, profile, cohort_of(profile, members)).terms
        assert (terms.l1, terms.linf, terms.sampling) == (most, 1, 1.0)
    assert terms.l2 == pytest.approx(30**0.5)


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
    divided = (corpus, corpus.select(np.arange(1, len(corpus))), corpus.select(np.arange(1)))
    memories: tuple[Memory, Memory, Memory] = ({}, {}, {})
    for _ in range(4):
        whole, rest, own = (counts_of(model, state, d, m) for d, m in zip(divided, memories, strict=True))
        np.testing.assert_array_equal(whole - rest, own)
        assert 0 < own.sum() <= 30
        assert own.max() == 1
        noise = rng.normal(0, 20.0, state["counts"].shape)
        state = dict(model.update(state, Answer({"counts": rng.poisson(30, noise.shape) + noise})))


# ---- local steps -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "moments"), [("round", 4), pytest.param("fsync", 26, marks=pytest.mark.slow)])
def test_topic_weights_outlive_a_kill(moment: str, moments: int, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Parties go on from the weights of their documents that they had, so the model has the same bytes."""
    plan = small_plan(model={"name": "fednmf", "n_topics": 3, "local_epochs": 2, "server": "adam"}, training__rounds=8)
    execute(begin(tmp_path / "unbroken", plan, dict(sorted(five.items()))), Unwatched(), comparison=False)
    for name, corpus in five.items():
        corpus.save(tmp_path / f"{name}.npz")
    settings = json.dumps({name: value for name, value in plan.tables().items() if name != "tokeniser"})
    assert ended(tmp_path / "killed", "begin", moment, moments, str(tmp_path), settings) == -signal.SIGKILL
    execute(reopen(tmp_path / "killed"), Unwatched(), comparison=False)
    unbroken, killed = learned(tmp_path / "unbroken"), learned(tmp_path / "killed")
    for name, array in unbroken.items():
        np.testing.assert_array_equal(killed[name], array)
