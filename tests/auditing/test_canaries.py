"""Made documents: a fair coin decides and only the judge knows who is in; what guesses show of a run, and what they cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attack import Challenge, Estimate, GroundTruth, Score
from securetm.auditing.attacks import one_run
from securetm.auditing.attacks.one_run import ONE_RUN_EPSILON, SHOWN
from securetm.auditing.ground_truth import RECORD, ground_truth_of, with_canaries
from securetm.auditing.judging import measured
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.runs import Demonstrations
from securetm.auditing.verdicts import judged_alone
from securetm.auditing.views import AdversaryView, NotTestable
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.stages import Unwatched

from .conftest import EMBEDDED, PARTIES, adversary
from .tried import reachable, source

EACH = 40
AT = 0.999


# ---- how they are made ----------------------------------------------------------------------------------------------


def test_about_half_are_put_in_and_the_record_says_which(parties: Mapping[str, Corpus]) -> None:
    put, record = with_canaries(parties, 200, 1)
    inside = np.isin(record.keys, np.concatenate([corpus.keys for corpus in put.values()]))
    assert record.labels is not None
    np.testing.assert_array_equal(inside, record.labels == "in")
    assert 400 < inside.sum() < 600
    for name, corpus in put.items():
        mine = record.select(np.flatnonzero((record.parties == name) & inside))
        assert len(corpus) == len(parties[name]) + len(mine)
        assert set(mine.keys) <= set(corpus.keys)


def _coins(record: Corpus) -> np.ndarray:
    assert record.labels is not None
    return np.asarray(record.labels == "in")


def test_coins_follow_from_nothing_that_an_attacker_knows(parties: Mapping[str, Corpus]) -> None:
    """The same documents, plan and seed twice: the canaries are the same, and the coins are others."""
    first, again = (with_canaries(parties, 100, 1)[1] for _ in range(2))
    np.testing.assert_array_equal(first.keys, again.keys)
    assert 150 < (_coins(first) == _coins(again)).sum() < 350  # of 500: outside once in 10^18


def test_a_party_s_documents_carry_no_mark(parties: Mapping[str, Corpus]) -> None:
    labelled = {name: corpus.replace(labels=np.full(len(corpus), "a subject")) for name, corpus in parties.items()}
    put, _ = with_canaries(labelled, 30, 1)
    for corpus in put.values():
        assert corpus.labels is not None
        assert set(corpus.labels) == {"a subject", ""}
        assert corpus.parties is None


# ---- in a run -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def plain(documents_file: Path, parties: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Settings of runs over the same few documents, whose words are public."""
    words = tmp_path_factory.mktemp("words") / "words.txt"
    often = Corpus.concat(list(parties.values()))
    words.write_text("\n".join(word for word, n in zip(often.vocabulary, often.document_frequencies(), strict=True) if n >= 5))
    return {
        **source(documents_file),
        "model.name": "lda",
        "model.n_topics": 5,
        "training.rounds": 2,
        "training.held_out": 0.01,
        "vocabulary.source": "file",
        "vocabulary.file": str(words),
        "origins.vocabulary": "made up",
    }


@pytest.fixture(scope="session")
def meant(embedded_documents: Path) -> Mapping[str, Any]:
    """Settings of runs that cluster the embeddings of documents."""
    return {
        "corpus.source": str(embedded_documents),
        "corpus.party": "party",
        "corpus.partition": "column",
        "corpus.embedding": "embedding",
        "model.name": "semantic",
        "model.n_topics": 5,
        "model.embedding_size": EMBEDDED,
        "training.start": "plain",
        "training.rounds": 2,
        "training.held_out": 0.01,
        "tokeniser.numbers": True,
        "vocabulary.source": "file",
        "vocabulary.file": str(embedded_documents.parent / "words.txt"),
        "origins.vocabulary": "made up",
        "origins.embeddings": "made up",
    }


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def _played(
    folder: RunFolder, who: tuple[str, str] = ("coordinator", "private_answers")
) -> tuple[AdversaryView, GroundTruth, Challenge]:
    """Eyes, truth and question, as the frame puts them together."""
    view = view_of(folder, adversary(*who), ONE_RUN_EPSILON, 2)
    truth = replace(ground_truth_of(folder, questions_of(folder, ONE_RUN_EPSILON.questions, 2).values()), confidence=AT)
    posed = one_run.pose(truth, {"rounds": 2}, np.random.default_rng(0))
    return replace(view, question=posed.question), replace(truth, answer=posed.answer), posed


def _judged(view: AdversaryView, truth: GroundTruth) -> Estimate:
    found = _whole(view, truth).measures[SHOWN]
    assert isinstance(found, Estimate)
    return found


def _whole(view: AdversaryView, truth: GroundTruth) -> Score:
    return one_run.judge_guesses(one_run.guess_coins(view, {"rounds": 2}), truth)


def test_no_attack_sees_who_is_in(runs: Demonstrations, plain: Mapping[str, Any]) -> None:
    folder = runs.run("open", plain, canaries=EACH)
    view, truth, posed = _played(folder)
    coins = np.asarray(posed.answer)
    assert len(coins) == EACH * len(PARTIES)
    reached = list(reachable(view))
    same = [a for a in reached if isinstance(a, np.ndarray) and a.shape == coins.shape and np.isin(a, (0, 1)).all()]
    assert same == []
    assert "in" not in [text for a in reached if isinstance(a, np.ndarray) and a.dtype.kind == "U" for text in a]
    keys = set(view.question.documents.keys)
    for others in view.question.others.values():  # what the parties held beside: no canary among them
        assert not keys & set(others.keys)
    assert truth.canaries is not None
    assert (folder.path / RECORD).is_file()


def test_centres_that_a_party_sees_are_no_sums_of_rows(runs: Demonstrations, meant: Mapping[str, Any]) -> None:
    with pytest.raises(NotTestable, match="no sum of documents' rows"):
        one_run.canary_scores(_played(runs.run("open", meant, canaries=EACH), ("party", "model_reader"))[0])


def _verdict(found: Estimate, epsilon: float) -> tuple[str, str]:
    whole = measured(SHOWN, "epsilon", found, AT)
    return judged_alone(whole, measured(SHOWN, "epsilon", Estimate(0.0, 0.0, 0.1, found.ceiling), AT), epsilon)


@pytest.mark.slow
def test_a_run_that_shows_more_than_it_claims_is_refuted_whatever_the_ceiling(
    runs: Demonstrations, plain: Mapping[str, Any]
) -> None:
    """No noise at all behind a claim of 1: the bound itself then lies above the claim, and above any ideal attacker's."""
    view, truth, _ = _played(runs.run("open", plain, canaries=EACH))
    claimed = replace(_played(runs.run("dp-local", plain, canaries=EACH))[1].claimed, epsilon=1.0)  # type: ignore[type-var]
    found = _judged(view, replace(truth, claimed=claimed))
    assert _verdict(found, 1.0)[0] == "refuted"
