"""Documents read out of gradients, counts, centres, moves and topics: the arithmetic, and as many as there should be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.centre_inversion import presence
from securetm.auditing.attacks.gradient_inversion import decoder_gradient
from securetm.auditing.attacks.party_inference import fits
from securetm.auditing.attacks.update_inversion import gradient_behind
from securetm.auditing.ground_truth import ground_truth_of
from securetm.auditing.judging import of_chance
from securetm.auditing.parts.gradients import directions, extreme_rays, parallel, readings
from securetm.auditing.parts.shares import counts_behind, scale_of
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.runs import Demonstrations
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.models.gradients import OPTIMISERS, optimiser_moments, optimiser_step
from securetm.models.neural.cpu_kernels import FusedKernels, bags
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import EMBEDDED, PARTIES, Recorded, adversary, made_run, plan_tables, public_list
from .tried import Tried, settings, source, tried


def inputs_of(counts: np.ndarray) -> np.ndarray:
    logs = np.log1p(counts.astype(float))
    return logs / np.linalg.norm(logs)


# ---- bags of words -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 40), max_size=59).map(lambda counts: [*counts, 1]))
def test_counts_come_back_from_the_networks_inputs(counts: list[int]) -> None:
    whole = np.array(counts)
    assert (readings(inputs_of(whole))[0] == whole).all()


# ---- cones ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_corners_of_a_cone_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rays = rng.standard_normal((12, 40))
    mixed = rng.random((100, 12)) * (rng.random((100, 12)) < 0.3)
    rows = np.vstack([mixed[mixed.any(axis=1)], 3 * np.eye(12)]) @ rays
    found = extreme_rays(rng.permutation(rows), 12)
    likeness = found @ (rays / np.linalg.norm(rays, axis=1, keepdims=True)).T
    assert len(found) == 12
    assert np.allclose(np.sort(likeness.argmax(axis=1)), np.arange(12))
    assert np.allclose(likeness.max(axis=1), 1.0)


def test_parallel_rows_are_put_together_and_others_are_not() -> None:
    rng = np.random.default_rng(1)
    one, other, third = rng.standard_normal((3, 30))
    rows = np.array([one, 2 * one, other, 0.5 * one, third, 3 * other, np.zeros(30)])
    groups = parallel(rows, np.full(7, 1e-6))
    assert sorted(map(sorted, (group.tolist() for group in groups))) == [[0, 1, 3], [2, 5]]
    assert parallel(rows, np.full(7, np.inf)) == []


# ---- whole counts behind shares ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(10))
def test_a_normalised_row_gives_its_counts_back(kind: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 20.0, 800))
    found = counts_behind((counts / counts.sum()).astype(kind))
    assert found is not None
    assert (found == counts).all()


def test_the_scale_of_noisy_counts_is_found_by_its_line() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(12.0, 1500)
    total = counts.sum()
    near, strong, _ = scale_of((counts + rng.laplace(0, 1 / 8, 1500)) / total, 0.5 * total, 2.0 * total)
    assert near == pytest.approx(total, rel=1e-3)
    assert strong == pytest.approx(1 / (1 + (2 * np.pi / 8) ** 2), abs=0.05)
    _, faint, _ = scale_of((counts + rng.laplace(0, 1.0, 1500)) / total, 0.5 * total, 2.0 * total)
    assert faint < 0.2


# ---- gradients -------------------------------------------------------------------------------------------------------------


def test_the_control_changes_vectors_and_nothing_else(recorded: Recorded) -> None:
    attack = attack_called("gradient_inversion")
    for profile in ("open", "masked"):
        view = view_of(recorded(profile, 25), adversary(), attack, 2)
        drawn = of_chance(view, 5)
        assert drawn.seen["request"] == view.seen["request"]
        channel = "answer" if profile == "open" else "sealed"
        changed = 0
        for before, after in zip(view.seen[channel], drawn.seen[channel], strict=True):
            assert len(after.content) == len(before.content)
            assert (after.serial, after.sender) == (before.serial, before.sender)
            changed += after.content != before.content
        assert changed == 2 * 5
        assert of_chance(view, 5).seen[channel] == drawn.seen[channel]
        assert of_chance(view, 6).seen[channel] != drawn.seen[channel]


def test_the_judge_knows_what_took_part(recorded: Recorded) -> None:
    """Each batch has the size that the answers say, and is of the documents that its party trains on."""
    folder = recorded("open", 20)
    attack = attack_called("gradient_inversion")
    truth = ground_truth_of(folder, questions_of(folder, attack.questions, 3).values())
    assert {counts.shape[0] for counts in truth.batches.values()} == {20}
    for name in folder.members:
        trained_on = {row.tobytes() for row in truth.held[name].toarray().astype(np.int64)}
        drawn = [counts for (_, party), counts in truth.batches.items() if party == name]
        assert len(drawn) == 3
        assert {row.tobytes() for counts in drawn for row in counts.toarray().astype(np.int64)} <= trained_on
    serial = next(iter(truth.batches))[0]
    assert truth.batch(serial, "").shape == (100, len(truth.vocabulary))


# ---- by matching -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_gradient_that_is_matched_is_the_models_own() -> None:
    """Three documents through the decoder as it trains, and through the form that can be differentiated once more."""
    rng = np.random.default_rng(4)
    counts = rng.poisson(0.3, (3, 40))
    topics, background, kept = rng.normal(size=(5, 40)), rng.normal(size=40), rng.dirichlet(np.ones(5), 3)
    logits, whole = torch.from_numpy(kept @ topics), bags(sparse.csr_array(counts), np.float64)
    real = FusedKernels().reconstruct(whole, logits, torch.from_numpy(background), 0.6).back
    to_topics, to_background = decoder_gradient(
        *(torch.from_numpy(values) for values in (counts.astype(float), kept, topics, background)), 0.6
    )
    np.testing.assert_allclose(to_topics.numpy(), kept.T @ real.numpy(), atol=1e-9)
    scores = np.exp(0.6 * _normal(kept @ topics) + background)
    chances = scores / scores.sum(axis=1, keepdims=True)
    expected = (counts.sum(axis=1, keepdims=True) * chances - counts).sum(axis=0)
    np.testing.assert_allclose(to_background.numpy(), expected, atol=1e-9)


def _normal(logits: np.ndarray) -> np.ndarray:
    return (logits - logits.mean(axis=1, keepdims=True)) / np.sqrt(logits.var(axis=1, keepdims=True) + 1e-5)


# ---- counts ----------------------------------------------------------------------------------------------------------------


ATTACK = attack_called("count_reconstruction")


@pytest.fixture(scope="module")
def words_file(parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return public_list(parties, tmp_path_factory.mktemp("words"))


MATCHED = {"name": "lda-matched", "n_topics": 4, "sweeps": 3}


@pytest.fixture(scope="module", params=quick(["open", "iftm"], "iftm"))
def folder(
    request: pytest.FixtureRequest, parties: Mapping[str, Corpus], words_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunFolder:
    return made_run(tmp_path_factory.mktemp("counts") / "run", parties, plan_tables(request.param, MATCHED, 2, words_file))


def test_the_judges_table_is_what_the_party_sent(folder: RunFolder) -> None:
    """Each topic's shares are those of the table that the judge makes once more, with the noise that the party kept."""
    view = view_of(folder, adversary(model="word_occurrences"), ATTACK, 2)
    truth = ground_truth_of(folder, questions_of(folder, ATTACK.questions, 2).values())
    assert truth.tables is not None
    for table in ATTACK.attack(view, {"tables": 6}):
        held = truth.tables(table.serial, table.party)
        assert (table.counted == held.counted).all()
        assert held.real.sum() == truth.held[table.party].sum()
        if folder.agreement.plan.profile == "open":
            assert (held.real == held.counted).all()
        else:
            assert held.counted.sum() > held.real.sum()
            assert np.corrcoef(held.counted.ravel(), held.real.ravel())[0, 1] > 0.95


# ---- the tables of the judge -----------------------------------------------------------------------------------------


def test_real_words_are_counted_once_each_where_a_whole_sentence_is_one_draw(documents_file: Path, tmp_path: Path) -> None:
    settings = {
        **source(documents_file),
        "model.name": "sentence-lda-matched",
        "model.n_topics": 3,
        "model.sweeps": 2,
        "training.rounds": 1,
        "vocabulary.source": "file",
        "vocabulary.max_words": 100,
        "vocabulary.max_share": 1.0,
    }
    folder = Demonstrations(tmp_path, Unwatched()).run("iftm", settings)
    rounds = questions_of(folder, ["train"], 1)
    truth = ground_truth_of(folder, rounds.values())
    assert truth.tables is not None
    for name in folder.members[:2]:
        tables = truth.tables(next(iter(rounds)), name)
        assert tables.real.sum() == truth.held[name].sum()
        assert (tables.real.sum(axis=0) == truth.held[name].sum(axis=0)).all()
        assert (tables.real > 0).sum() < (tables.counted > 0).sum()  # noise puts words where none were


# ---- centres ---------------------------------------------------------------------------------------------------------------


def test_the_pool_holds_half_of_the_documents_and_as_many_that_took_no_part(embedded_documents: Path, tmp_path: Path) -> None:
    chosen = {
        "model.name": "semantic", "model.n_topics": 40, "model.embedding_size": EMBEDDED,
        "corpus.embedding": "embedding", "origins.embeddings": "made up", "origins.vocabulary": "made up",
        "vocabulary.file": str(embedded_documents.parent / "words.txt"), "tokeniser.numbers": True,
        "training.start": "plain", "training.rounds": 2, "training.held_out": 0.5,
    }  # fmt: skip
    folder = Demonstrations(tmp_path, Unwatched()).run("open", settings(embedded_documents) | chosen)
    found = tried(folder, "centre_inversion", {"rounds": 6, "documents": 10})
    pool, places = found.view.question, np.concatenate(list(found.truth.answer.trained.values()))
    inside = np.unique(places[places >= 0])
    assert len(inside) == -(-len(places) // 2)
    assert len(pool) == 2 * len(inside)
    assert 0.3 < inside.mean() / len(pool) < 0.7  # the order does not tell which


def test_texts_of_strangers_are_hardly_named() -> None:
    """Sixty documents in twenty topics, none of which is in the pool."""
    rng = np.random.default_rng(1)
    documents, pool = (directions(rng.standard_normal((many, 384))) for many in (60, 200))
    sums, places = np.zeros((20, 384)), rng.integers(0, 20, 200)
    np.add.at(sums, rng.integers(0, 20, 60), documents)
    assert (presence(pool, np.eye(20)[places], sums, 100) > 0.5).mean() < 0.02


# ---- moves of weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_the_gradient_behind_a_step_is_within_its_error(optimiser: str) -> None:
    """The project's own optimiser makes the step."""
    rng = np.random.default_rng(8)
    weights = rng.normal(0, 0.1, 4000).astype(np.float32)
    gradient = (rng.normal(size=4000) * 10.0 ** rng.uniform(-6, -3, 4000)).astype(np.float32)
    after, _ = optimiser_step(weights, gradient, 1.0, optimiser_moments(optimiser, weights), 1, 5e-3, 0.9)
    undone = gradient_behind(weights, after, optimiser, 5e-3)
    off = np.abs(undone.values - gradient)
    assert (off <= 3 * undone.errors).mean() > 0.99
    assert np.sum(undone.errors < 0.1 * np.abs(gradient)) > 1000
    assert undone.blur == np.median(undone.errors[undone.values != 0] / np.abs(undone.values[undone.values != 0]))


# ---- topics of parties -----------------------------------------------------------------------------------------------------


OF_SOURCE = {"rounds": 1, "documents": 200}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """One round of models that count."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def _tried(name: str, effort: dict[str, int], runs: Demonstrations, profile: str, model: str, documents: Path) -> Tried:
    more = {"model__sweeps": 3} if model.endswith("matched") else {}
    plan = settings(documents, model__name=model, training__rounds=1, **more)
    return tried(runs.run(profile, plan), name, effort)


def test_the_question_holds_documents_and_not_whose_they_are(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried("source_inference", OF_SOURCE, runs, "open", "lda-matched", documents_file)
    assert found.view.question.shape == (200, len(found.truth.vocabulary))
    names = [name for name, _ in found.truth.answer]
    assert {names.count(name) for name in PARTIES} == {40}
    assert names != sorted(names)
    for name, counts in found.truth.answer[:5]:
        held = np.asarray(found.truth.held[name].todense())
        assert (held == np.asarray(counts).ravel()).all(axis=1).any()


def test_a_document_without_words_fits_all_parties_alike() -> None:
    table = np.array([[5.0, 1.0, 0.0], [0.0, 2.0, 7.0]])
    found = fits(np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), table)
    assert found[0] < 0
    assert found[1] == 0
