"""Words of one document or sentence, out of real sums over five parties that nobody sees a single answer of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.rare_documents import (
    DOCUMENT,
    SENTENCE,
    companion,
    companions,
    link_scores,
    linked,
    lone_words,
    mutual_companions,
    same_topics,
    topic_probabilities,
    topics_of,
)
from securetm.auditing.recorded import view_of
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.questions import TRAIN

from .conftest import PARTIES, adversary, made_run, plan_tables
from .tried import scored, share

ATTACK = attack_called("rare_documents")
ROUNDS = 14
EFFORT = {"rounds": ROUNDS, "words": 2000}


def _document(rng: np.random.Generator, number: int) -> str:
    """Four sentences of two frequent words each; three codes in each stand nowhere else."""
    common = [f"frequent{chr(97 + int(n))}" for n in rng.integers(0, 20, 8)]
    codes = [f"code{number:04d}{chr(97 + n)}" for n in range(12)]
    return " ".join(" ".join([*common[2 * n : 2 * n + 2], *codes[3 * n : 3 * n + 3]]) + "." for n in range(4))


@pytest.fixture(scope="module")
def sentences() -> Mapping[str, Corpus]:
    rng = np.random.default_rng(1)
    texts = {name: [_document(rng, 100 * at + n) for n in range(34)] for at, name in enumerate(PARTIES)}
    return {name: Corpus.from_strings(own, name=name) for name, own in texts.items()}


@pytest.fixture(scope="module")
def folder(sentences: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Masked sums of a model whose documents move from topic to topic."""
    tables = plan_tables("masked", {"name": "sentence-lda", "n_topics": 8, "sweeps": 1}, ROUNDS)
    words = {"min_documents": 1, "max_share": 1.0, "most_candidates": 3000}
    reading = {"numbers": True, "pattern": r"\w+"}
    return made_run(tmp_path_factory.mktemp("moving") / "run", sentences, {**tables, "tokeniser": reading, "vocabulary": words})


def codes_by_sentence(folder: RunFolder, words: np.ndarray) -> list[tuple[int, ...]]:
    """Which of these words really stand in one sentence, two at least, in the parties' own folders."""
    vocabulary = tuple((folder.coordinator / "vocabulary.txt").read_text("utf-8").split("\n"))
    found = []
    for name in PARTIES:
        documents = PartyDocuments(Corpus.load(folder.party(name) / "corpus.npz"))
        documents.adopt(vocabulary, folder.agreement)
        held = documents.for_question(TRAIN)
        assert held.tokens is not None
        assert held.sentence_ends is not None
        ends = np.unique(np.concatenate([held.sentence_ends, held.token_ends]))
        found += [tuple(np.intersect1d(part, words).tolist()) for part in np.split(held.tokens, ends[:-1])]
    return [part for part in found if len(part) > 1]


def test_a_sum_of_sentences_shows_which_rare_words_stand_in_one(folder: RunFolder) -> None:
    found = scored(folder, "rare_documents", EFFORT, adversary())
    assert share(found, companion(SENTENCE)) > 0.55
    assert share(found, linked(SENTENCE)) > 0.9
    assert share(found, companion(DOCUMENT)) >= share(found, companion(SENTENCE))
    (told,) = ATTACK.attack(view_of(folder, adversary(), ATTACK, ROUNDS), EFFORT)
    assert told.party == ""
    real = codes_by_sentence(folder, told.words)
    said = {tuple(np.sort(group).tolist()) for group in told.groups}
    assert len(real) > 300
    assert len(said & set(real)) / len(real) > 0.3  # whole sentences, as far as they are made of words that occur once
    assert len(said & set(real)) / len(said) > 0.9


# ---- the arithmetic ------------------------------------------------------------------------------------------------


def tables_of(topics: np.ndarray, topics_in_all: int = 6) -> np.ndarray:
    """Tables in which each word occurs once: in these topics, rounds x words."""
    return np.stack([(topics == topic).astype(np.float64) for topic in range(topics_in_all)], axis=1)


def test_words_that_go_together_are_told_from_words_that_do_not() -> None:
    rng = np.random.default_rng(2)
    way = np.repeat(rng.integers(0, 6, (20, 30)), 2, axis=1)  # thirty pairs
    tables = tables_of(way)
    assert lone_words(tables).tolist() == list(range(60))
    assert (topics_of(tables, np.arange(60)) == way).all()
    likely = topic_probabilities(tables, way)
    assert (likely > 0).all()
    likeness = link_scores(way, likely, 0.5)
    assert (companions(likeness) == np.arange(60) ^ 1).all()
    assert {tuple(pair.tolist()) for pair in mutual_companions(likeness)} == {(n, n + 1) for n in range(0, 60, 2)}
    assert {tuple(group.tolist()) for group in same_topics(way, likely)} == {(n, n + 1) for n in range(0, 60, 2)}
