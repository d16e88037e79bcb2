"""The scikit-learn methods of every topic model: fit, transform, top words, save and load, on one machine.

`fit` asks the query of the model and adds its rows to the same clipped sum as a federation. A new model of securetm derives
from `Estimator`, in a file or folder of its own, and gets a line in `securetm/models/__init__.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Memory, Perturbed, State, TopicModel
from securetm.errors import BadSetting
from securetm.models.model_errors import NoKnownWords, NoMatrix, NotFitted, OtherVocabulary
from securetm.models.stored_model import read_model, write_model

_KINDS = {"int": (Integral, int, "a whole number"), "float": (Real, float, "a number")}  # by their annotation
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class BagOfWords:
    """Bare counts as a model reads them (contracts.Documents), for callers with a matrix and no corpus."""

    counts: Any
    vocabulary: tuple[str, ...]
    keys: Array
    tokens: Array | None = None
    token_ends: Array | None = None
    sentence_ends: Array | None = None
    embeddings: Array | None = None
    persons: Array | None = None
    perturbed: Perturbed | None = None

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    def select(self, rows: Array) -> Self:
        """These documents only."""
        persons = self.persons[rows] if self.persons is not None else None
        return type(self)(self.counts[rows], self.vocabulary, self.keys[rows], persons=persons)


@dataclass(frozen=True)
class FitProgress:
    """The progress of `fit`. It depends on the documents and is not sent."""

    epoch: int
    epochs: int
    loss: float
    held_out: float | None = None  # log-likelihood per word of the held-out documents, given themselves


@dataclass(frozen=True)
class LearnedState:
    """The result of fitting."""

    state: State
    vocabulary: tuple[str, ...]
    history: tuple[FitProgress, ...] = field(default=())

    @property
    def score(self) -> float:
        """Of held-out documents; where there are none, a later state is better."""
        last = self.history[-1]
        return last.epoch if last.held_out is None else last.held_out


class Estimator(TopicModel):
    """A topic model with scikit-learn's methods. Settings are frozen; `fit` and `load` set the learned state."""

    n_topics: int
    _learned: ClassVar[LearnedState | None] = None  # `fit` and `load` set it on the instance

    def __post_init__(self) -> None:
        """Refuses settings that are not numbers, or not whole numbers; a number of numpy's becomes a plain one."""
        for setting in fields(self):  # type: ignore[arg-type]  # every model is a dataclass
            value, (number, kind, named) = getattr(self, setting.name), _KINDS.get(str(setting.type), (object, None, ""))
            if kind is None:
                continue
            if isinstance(value, bool | np.bool_) or not isinstance(value, number):
                raise BadSetting(type(self).__name__, setting.name, repr(value), f"must be {named}")
            object.__setattr__(self, setting.name, kind(value))

    @property
    def most_shown_topics(self) -> int:
        """`n_topics`."""
        return self.n_topics

    def fit(
        self,
        documents: Any,
        validation: Any = None,
        *,
        epochs: int = 30,
        early_stopping: float = 0.0,
        patience: int = 5,
        seed: int = 0,
        vocabulary: Sequence[str] | None = None,
        on_progress: Callable[[FitProgress], None] | None = None,
    ) -> Self:
        """Learns from documents, or from a matrix of counts. The same seed gives the same bytes.

        `early_stopping=0.25` holds that share of the documents back, chosen by their keys; learning ends once their
        likelihood has not risen for `patience` epochs, and the best state is kept. `validation` names them instead.
        """
        _check_fit(epochs, early_stopping, patience)
        train, held = _split(as_documents(documents, vocabulary), validation, early_stopping)
        best: LearnedState | None = None
        for now in self._epochs(train, held, epochs, np.random.default_rng(seed)):
            if on_progress is not None:
                on_progress(now.history[-1])
            best = now if best is None or now.score > best.score else best
            if held is not None and len(now.history) - len(best.history) >= patience:
                break
        assert best is not None
        object.__setattr__(self, "_learned", best)
        return self

    def transform(self, documents: Any) -> Array:
        """Each document's topic shares: documents x topics, rows sum to one.

        A document without a known word gets the model's expectation of any document; a warning counts such documents.
        """
        known = self._known(documents)
        warn_of_unknown(known)
        return self.infer(self.learned.state, known)

    def known_words(self, documents: Any) -> Array:
        """The number of words of each document that the model knows, repeated ones each time."""
        return words_of(self._known(documents))

    def fit_transform(self, documents: Any, validation: Any = None, **options: Any) -> Array:
        """`fit`, then `transform` of the same documents."""
        return self.fit(documents, validation, **options).transform(documents)

    def score(self, documents: Any) -> float:
        """Log-likelihood per word of documents, given their own topic shares: higher is better."""
        known = self._known(documents)
        return _per_word(self, self.learned.state, known)

    @property
    def learned(self) -> LearnedState:
        """State and vocabulary after `fit` or `load`."""
        if self._learned is None:
            raise NotFitted(type(self).__name__)
        return self._learned

    @property
    def components_(self) -> Array:
        """Topics x vocabulary, rows sum to one."""
        return self.topics(self.learned.state)

    def top_words(self, n: int = 10) -> list[list[str]]:
        """The n heaviest words of each topic, heaviest first."""
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n]
        return [[self.learned.vocabulary[word] for word in row] for row in order]

    def save(self, path: str | Path) -> None:
        """Writes weights, vocabulary and settings as one safetensors file: no code in it, nothing of the documents."""
        write_model(Path(path), self, self.learned.state, self.learned.vocabulary)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model that `save` wrote, ready to transform or to be fitted anew."""
        model, state, vocabulary = read_model(Path(path), cls)
        object.__setattr__(model, "_learned", LearnedState(state, vocabulary))
        return model

    # ---- one machine's side of the query path ----

    def advance(self, state: State, total: Any, in_place: bool) -> State:  # noqa: ARG002 - some models can, most need not
        """The state after one total; a model that can reuse the state's arrays says so by overriding this."""
        return self.update(state, Answer(total))

    def _known(self, documents: Any) -> Any:
        return over(documents, self.learned.vocabulary)

    def _epochs(self, train: Any, held: Any, epochs: int, rng: np.random.Generator) -> Iterator[LearnedState]:
        vocabulary = tuple(train.vocabulary)
        state, memory = self.start(vocabulary, rng), Memory()
        history: tuple[FitProgress, ...] = ()
        for epoch in range(1, epochs + 1):
            state, loss = self._epoch(state, train, memory, rng)
            score = None if held is None else _per_word(self, state, held)
            history = (*history, FitProgress(epoch, epochs, loss, score))
            # Later epochs reuse the arrays in place, so a state that may turn out the best is copied out.
            kept = state if held is None else {name: values.copy() for name, values in state.items()}
            yield LearnedState(kept, vocabulary, history)

    def _epoch(self, state: State, train: Any, memory: Memory, rng: np.random.Generator) -> tuple[State, float]:
        loss = 0.0
        for rows in _batches(len(train), self.query(state).terms.batch, rng):
            query = self.query(state)
            clipped_sum = ClippedRowSum(query.terms)
            query.answer(train if rows is None else train.select(rows), clipped_sum, memory, rng)
            state = self.advance(state, clipped_sum.blocks(), in_place=True)
            loss += clipped_sum.loss * (len(train) if rows is None else len(rows))
        return state, loss / max(len(train), 1)


def as_documents(documents: Any, vocabulary: Sequence[str] | None = None) -> Any:
    """The documents, or a matrix of counts as documents, whose keys are their row numbers spread over 64 bits."""
    if hasattr(documents, "keys") and hasattr(documents, "counts"):
        return documents
    counts = _counts_of(documents)
    words = tuple(vocabulary) if vocabulary is not None else tuple(f"word {v}" for v in range(counts.shape[1]))
    if len(words) != counts.shape[1]:
        raise OtherVocabulary(counts.shape[1], len(words))
    return BagOfWords(counts, words, np.arange(1, counts.shape[0] + 1, dtype=np.uint64) * _GOLDEN)


def words_of(documents: Any) -> Array:
    """The number of words of each document, repeated ones each time."""
    return np.asarray(documents.counts.sum(axis=1)).reshape(-1).astype(np.int64)


def warn_of_unknown(documents: Any) -> None:
    """Counts the documents without a word, whose topic shares would look like any other's."""
    if unknown := int((words_of(documents) == 0).sum()):
        several = len(documents)
        have = "document has" if several == 1 else "documents has" if unknown == 1 else "documents have"
        sentence = (
            f"{unknown} of {several} {have} no word that the model knows: the topic shares given for "
            f"{'it' if unknown == 1 else 'them'} are what the model expects of any document"
        )
        warnings.warn(sentence, NoKnownWords, stacklevel=3)


def _counts_of(matrix: Any) -> Any:
    """The matrix as CSR without repeated entries. Refuses anything but a table of numbers that can be counts."""
    table = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    if table.dtype.kind not in "biuf" or table.ndim != 2 or table.shape[1] == 0:
        shape = " x ".join(map(str, table.shape))
        raise NoMatrix(f"{'numbers' if table.dtype.kind in 'biuf' else 'texts or other things'}, {shape or 'a single one'}")
    counts = sparse.csr_array(table)
    if not counts.has_canonical_format:
        counts = counts.copy()  # the caller's matrix stays as it is
        counts.sum_duplicates()
    if counts.nnz and not (np.isfinite(counts.data).all() and counts.data.min() >= 0):
        raise BadSetting("documents", "counts", "a matrix", "must hold no negative, infinite or missing counts")
    return counts


def over(documents: Any, vocabulary: tuple[str, ...]) -> Any:
    """The documents, or the matrix, if they are counted over these words."""
    known = as_documents(documents, vocabulary)
    if tuple(known.vocabulary) != vocabulary:
        raise OtherVocabulary(len(known.vocabulary), len(vocabulary))
    return known


def held_back(keys: Array, share: float) -> Array:
    """Which documents a split of that share holds back: decided by the key alone, so it does not change with the corpus."""
    mixed = (keys ^ (keys >> np.uint64(29))) * _GOLDEN
    mixed ^= mixed >> np.uint64(32)
    chosen: Array = mixed.astype(np.float64) < share * 2.0**64
    return chosen


def _split(documents: Any, validation: Any, share: float) -> tuple[Any, Any]:
    if validation is not None:
        return documents, over(validation, tuple(documents.vocabulary))
    if share == 0.0:
        return documents, None
    back = held_back(np.asarray(documents.keys), share)
    if back.all() or not back.any():
        raise BadSetting("fit", "early_stopping", str(share), f"leaves one side of {len(documents)} documents empty")
    return documents.select(np.flatnonzero(~back)), documents.select(np.flatnonzero(back))


def _check_fit(epochs: Any, early_stopping: float, patience: int) -> None:
    if not isinstance(epochs, Integral) or epochs < 1:
        raise BadSetting("fit", "epochs", str(epochs), "must be a whole number, at least 1")
    if not 0 <= early_stopping < 1:
        raise BadSetting("fit", "early_stopping", str(early_stopping), "must be at least 0 and below 1")
    if patience < 1:
        raise BadSetting("fit", "patience", str(patience), "must be at least 1")


def _batches(count: int, size: int, rng: np.random.Generator) -> list[Array] | list[None]:
    """Row numbers of each batch of one shuffled epoch; None stands for all documents in one."""
    return np.split(rng.permutation(count), range(size, count, size)) if size else [None]


def _per_word(model: TopicModel, state: State, documents: Any) -> float:
    return float(model.log_likelihood(state, documents, documents).sum() / max(documents.counts.sum(), 1))
