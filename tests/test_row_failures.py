"""A document whose row fails counts as nothing: the answer is that of the other documents, bit for bit, and only home knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from securetm.answers.block_answers import SoundRows
from securetm.answers.block_sums import PartialSum
from securetm.answers.route import Route
from securetm.contracts import Array, ClippedSum, Mechanism, Memory, RoundContext, Terms
from securetm.corpus.corpus import Corpus
from securetm.entropy import Seeded
from securetm.errors import BadSetting, CountsNotWhole
from securetm.federation.questions import PerPerson
from securetm.models.questions.model_quality import CooccurrenceCounts
from tests.test_block_answers import CASES, COHORT, VOCABULARY, Kept

FAILURES = (MemoryError(), ValueError("a row"), FloatingPointError(), CountsNotWhole())


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, 61)
    tokens = np.minimum(rng.geometric(0.1, lengths.sum()) - 1, len(VOCABULARY) - 1)
    return Corpus.from_tokens(tokens, np.cumsum(lengths), VOCABULARY, persons=rng.integers(0, 20, 61))


@dataclass(frozen=True)
class FailsAt:
    """The question, whose answer fails after all is computed and remembered, if one of these documents is there."""

    inner: Any
    keys: tuple[int, ...]
    failure: Exception = FAILURES[0]
    together: int = 1  # so many of them must be there

    @property
    def terms(self) -> Terms:
        terms: Terms = self.inner.terms
        return terms

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        self.inner.answer(documents, clipped_sum, memory, rng)
        memory["left behind"] = rng.random(3)
        self._fail(documents)
        del memory["left behind"]

    def own_words(self, documents: Any) -> Any:
        self._fail(documents)
        return self.inner.own_words(documents)

    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array:
        row: Array = self.inner.row(words, counts, documents)
        return row

    def _fail(self, documents: Any) -> None:
        if np.isin(np.array(self.keys, np.uint64), documents.keys).sum() >= self.together:
            raise self.failure


def told(query: Any, documents: Corpus, mechanisms: Sequence[Mechanism] = ()) -> tuple[bytes, dict[str, bytes], int]:
    """The vector, what is remembered, and how many rows were lost."""
    memory: Memory = {}
    route = Route.through(query.terms, mechanisms, COHORT)
    context = RoundContext(COHORT, Seeded(bytes(32), unsafe=True), Kept())
    found = route.answer(query, documents, context, memory, np.random.default_rng(0))
    vector = b"".join(np.ascontiguousarray(block).tobytes() for block in found.vector.values())
    return vector, {name: array.tobytes() for name, array in memory.items()}, found.lost


FAILING = [(0,), (1, 20, 59), *(pytest.param(some, marks=pytest.mark.slow) for some in ((30, 31), (60,)))]


@pytest.mark.parametrize("name", [name for name, (_, mechanisms) in CASES.items() if not mechanisms])
@pytest.mark.parametrize("failing", FAILING, ids=str)
def test_the_answer_is_that_of_the_other_documents(name: str, failing: tuple[int, ...], corpus: Corpus) -> None:
    query = CASES[name][0]
    bad = FailsAt(query, tuple(map(int, corpus.keys[list(failing)])), FAILURES[len(failing)])
    others = corpus.select(np.setdiff1d(np.arange(len(corpus)), failing))
    vector, remembered, lost = told(query, others)
    assert told(bad, corpus) == (vector, remembered, lost + len(failing))


def test_a_person_fails_as_a_whole_and_alone(corpus: Corpus) -> None:
    query = PerPerson(CooccurrenceCounts(np.arange(12).reshape(2, 6)))
    others = corpus.select(np.flatnonzero(corpus.persons != corpus.persons[7]))
    vector, _, _ = told(query, others)
    assert told(FailsAt(query, (int(corpus.keys[7]),)), corpus)[::2] == (vector, 1)


def test_documents_that_fail_only_together_are_all_counted(corpus: Corpus) -> None:
    """As where memory is enough for each half of them, and not for all at once."""
    query = CooccurrenceCounts(np.arange(12).reshape(2, 6))
    bad = FailsAt(query, (int(corpus.keys[2]), int(corpus.keys[50])), together=2)
    assert told(bad, corpus)[::2] == told(query, corpus)[::2]


def test_what_is_no_documents_fault_is_raised(corpus: Corpus) -> None:
    query = CooccurrenceCounts(np.arange(12).reshape(2, 6))
    with pytest.raises(BadSetting):  # each document fails
        told(FailsAt(query, tuple(map(int, corpus.keys)), BadSetting("", "x", "1", "is wrong")), corpus)
    with pytest.raises(ValueError, match="a row"):  # even without any document
        told(FailsAt(query, (), FAILURES[1], together=0), corpus)


def test_a_block_of_failing_documents_is_no_veto_for_the_others(corpus: Corpus) -> None:
    query = CASES["lda"][0]
    blocks = corpus.replace(persons=None, block_documents=7).in_blocks()
    last = np.flatnonzero(blocks.block_numbers == blocks.block_numbers.max())
    bad = FailsAt(query, tuple(map(int, blocks.keys[last])))
    others = blocks.select(np.setdiff1d(np.arange(len(blocks)), last))
    vector, _, _ = told(query, others)
    assert told(bad, blocks)[::2] == (vector, len(last))


# ---- the law can fail ----------------------------------------------------------------------------------------------


def veto(rows: SoundRows) -> PartialSum:
    """One failure, and no document of the party counts."""
    try:
        return rows.answered(rows.documents, rows.memory, rows.rng)
    except Exception:  # noqa: BLE001 - the fault that is tried
        return rows.answered(rows.documents.select(np.arange(0)), rows.memory, rows.rng)


def drop_half(rows: SoundRows) -> PartialSum:
    """A half in which something fails counts as nothing."""
    middle, parts = len(rows.documents) // 2, []
    for half in (np.arange(middle), np.arange(middle, len(rows.documents))):
        alone = replace(rows, documents=rows.documents.select(half))
        parts.append(veto(alone))
    return parts[0].plus(parts[1])


_SOUND = SoundRows.answer


def remember_trials(rows: SoundRows) -> PartialSum:
    """What was tried to find out which document fails is remembered as if it had been asked."""
    tried = _SOUND(rows)
    rows.memory["left behind"] = np.zeros(1)
    return tried


@pytest.mark.parametrize("mutant", [veto, drop_half, remember_trials])
def test_a_fault_is_caught(mutant: Callable[[SoundRows], PartialSum], corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    query = CASES["lda"][0]
    others = corpus.select(np.setdiff1d(np.arange(len(corpus)), (30,)))
    expected = told(query, others)[:2]
    monkeypatch.setattr(SoundRows, "answer", mutant)
    assert told(FailsAt(query, (int(corpus.keys[30]),)), corpus)[:2] != expected
