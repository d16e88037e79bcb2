"""The one face of all topic models: fit, transform, top words, save and load as in scikit-learn, on one machine.

`fit` asks the query of the model and adds its rows to the same clipped sum as a federation. A new model of securetm derives
from `Estimator`, in a file of its own, and gets a line in `securetm/models/__init__.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast, get_args, get_origin, get_type_hints

import numpy as np

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, ClippedSum, Losses, Memory, Needs, Query, Reads, State, Terms, TopicModel, Unit
from securetm.contracts.origin import Origin
from securetm.data_classes import dataclass, field, fields, replace
from securetm.data_frames import FRAMES, framed
from securetm.errors import BadSetting, Failed, Mistake, Misuse, NeedsSum, NotFound
from securetm.models.batches import shuffled
from securetm.models.given_documents import (
    SPREAD,
    as_documents,
    numbered,
    over,
    tokeniser_for,
    warn_of_left_out,
    warn_of_unknown,
    words_of,
)
from securetm.models.stored_model import StoredModel, write_model
from securetm.settings import Limit, above, at_least, require

if TYPE_CHECKING:
    from securetm.corpus.tokeniser import Tokeniser


_OUTPUT = "_sklearn_output_config"  # under this name scikit-learn keeps what `set_output` was told


class NotFitted(Misuse, ValueError, AttributeError):
    """this {model} has not learned anything yet"""

    model: str
    hint = "call fit(documents) first, or {model}.load(path)"


_KINDS: dict[Any, tuple[type, str]] = {int: (Integral, "a whole number"), float: (Real, "a number")}

# What the settings of models may be, beside their type; a model names others where it has them.
Count = Annotated[int, at_least(1)]
OrNone = Annotated[int, at_least(0)]
Positive = Annotated[float, above(0)]
Finite = Annotated[float, Limit(lambda value: 0 < value < np.inf, "must be positive and finite")]
Fraction = Annotated[float, Limit(lambda value: 0 <= value < 1, "must be at least 0 and below 1")]
Part = Annotated[float, Limit(lambda value: 0 < value <= 1, "must be above 0 and at most 1")]
Inside = Annotated[float, Limit(lambda value: 0 < value < 1, "must be above 0 and below 1")]
Smoothing = Annotated[float, Limit(lambda value: 1e-9 <= value < np.inf, "must be at least 1e-9 and finite")]


@dataclass(frozen=True)
class FitProgress:
    """The progress of `fit`. It depends on the documents and is not sent."""

    epoch: int
    epochs: int
    loss: float
    held_out: float | None = None  # log-likelihood per word of the held-out documents, given themselves


@dataclass(frozen=True)
class LearnedState:
    state: State
    vocabulary: tuple[str, ...]
    history: tuple[FitProgress, ...] = field(default=())
    sums: Mapping[str, Array] | None = None  # that the state was made of; `partial_fit` adds to them
    tokeniser: Tokeniser | None = None  # of the texts that were learned from; None: the usual one
    from_file: bool = False  # where there are no sums
    origin: Origin | None = None  # as the file says that it was read from; nothing where nobody said it

    @property
    def score(self) -> float:
        """Of held-out documents; where there are none, a later state is better."""
        last = self.history[-1]
        return last.epoch if last.held_out is None else last.held_out


_FITTED_FURTHER = Origin.unbounded("fitted further on documents of which nothing is said")


@dataclass(frozen=True)
class Question:
    """What a model asks about a state. The model itself says under which terms, and how documents answer."""

    model: Estimator
    state: State

    @property
    def terms(self) -> Terms:
        return self.model.terms(self.state)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        self.model.answer(self.state, documents, clipped_sum, memory)


class Estimator(TopicModel):
    """A topic model with scikit-learn's methods. `fit` and `load` set the learned state.

    Settings are frozen: nobody assigns them. `set_params` replaces them, because a search over settings needs it.
    """

    n_topics: int
    _learned: ClassVar[LearnedState | None] = None  # `fit` and `load` set it on the instance

    def __new__(cls, *_: Any, **__: Any) -> Self:
        _take_notes(cast("Any", cls))
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuses settings of another kind or beyond their limits; a number of numpy's becomes a plain one."""
        where = type(self).__name__
        for name, (kind, *limits) in _settings_of(type(self)).items():
            value = getattr(self, name)
            if kind in _KINDS:
                number, named = _KINDS[kind]
                fine = isinstance(value, number) and not isinstance(value, bool | np.bool_)
                require(fine, where, name, value, f"must be {named}")
                value = kind(value)
                object.__setattr__(self, name, value)
            for limit in limits:
                require(limit.allows(value), where, name, value, limit.said, limit.known)

    @property
    def most_shown_topics(self) -> int:
        return self.n_topics

    def fit(
        self,
        documents: Any,
        y: Any = None,
        *,
        validation: Any = None,
        epochs: int = 30,
        early_stopping: float = 0.0,
        patience: int = 5,
        seed: int = 0,
        vocabulary: Sequence[str] | None = None,
        tokeniser: Tokeniser | None = None,
        on_progress: Callable[[FitProgress], None] | None = None,
    ) -> Self:
        """Learns from documents, texts (read by the tokeniser), or a matrix of counts. The same seed gives the same bytes.

        Without a tokeniser, markup is dropped and stop words are those of the texts' language; a warning names another one
        than English.
        `early_stopping=0.25` holds that share of the documents back, chosen by their keys; learning ends once their
        likelihood has not risen for `patience` epochs, and the best state is kept. `validation` names them instead.
        """
        _check_fit(epochs, early_stopping, patience)
        tokeniser = tokeniser_for(documents, tokeniser)
        train, held = _split(as_documents(documents, vocabulary, tokeniser), validation, early_stopping, tokeniser)
        best: LearnedState | None = None
        begun, rng = self._begun(train, tokeniser, seed)
        for now in self._epochs(begun, train, held, epochs, rng):
            if on_progress is not None:
                on_progress(now.history[-1])
            best = now if best is None or now.score > best.score else best
            if held is not None and len(now.history) - len(best.history) >= patience:
                break
        assert best is not None
        object.__setattr__(self, "_learned", best)
        return self

    def partial_fit(
        self,
        documents: Any,
        y: Any = None,
        *,
        epochs: int = 5,
        seed: int = 0,
        vocabulary: Sequence[str] | None = None,
        tokeniser: Tokeniser | None = None,
    ) -> Self:
        """Learns from some documents more: their sum is added to the sums of all that were given before.

        The words are those of the first call. Give each document once: given twice, it counts twice. A model that learns in
        steps, such as ProdLDA, takes its steps on these documents, and has no sums.
        """
        _check_fit(epochs, 0.0, 1)
        before = self._learned
        if before is None:
            tokeniser = tokeniser_for(documents, tokeniser)
            train = as_documents(documents, vocabulary, tokeniser)
            before, rng = self._begun(train, tokeniser, seed)
        else:
            before = replace(before, origin=before.origin and _FITTED_FURTHER)
            train = over(documents, before.vocabulary, before.tokeniser)
            rng = np.random.default_rng([seed, len(before.history)])
        terms, model = self.query(before.state).terms, type(self).__name__
        if terms.needs is not Needs.SUM:
            raise NeedsSum("partial_fit")
        if before.from_file and _adds_up(terms):
            raise Mistake(
                "this {model} does not hold the sums that it learned from, so no documents can be added to them",
                hint="a model from a file holds topics only: fit a new one, or give all documents to partial_fit, "
                "a part at a time",
                model=model,
            )
        *_, last = self._epochs(before, train, None, epochs, rng)
        object.__setattr__(self, "_learned", last)
        return self

    def transform(self, documents: Any) -> Any:
        """Each document's topic shares: documents x topics, rows sum to one. `set_output` says whether as a data frame.

        A document without a known word gets the model's expectation of any document; a warning counts such documents.
        """
        warn_of_left_out(documents)
        known = self._known(documents)
        if self.reads_words:
            warn_of_unknown(known)
        shares, own = self.infer(self.learned.state, known), vars(self).get(_OUTPUT, {})
        form = own.get("transform") or _configured()
        return shares if form == "default" else framed(form, shares, self.get_feature_names_out(), documents)

    def known_words(self, documents: Any) -> Array:
        """The number of words of each document that the model knows, repeated ones each time."""
        return words_of(self._known(documents))

    def fit_transform(self, documents: Any, y: Any = None, **options: Any) -> Any:
        """`fit`, then `transform` of the same documents."""
        return self.fit(documents, y, **options).transform(documents)

    def score(self, documents: Any, y: Any = None) -> float:
        """Log-likelihood per word of documents, given their own topic shares: higher is better."""
        return _per_word(self, self.learned.state, self._known(documents))

    @property
    def learned(self) -> LearnedState:
        """State and vocabulary after `fit` or `load`."""
        if self._learned is None:
            theirs = sys.modules.get("sklearn.exceptions")  # who waits for scikit-learn's own error has imported it
            raise (NotFitted if theirs is None else _both(theirs.NotFittedError))(type(self).__name__)
        return self._learned

    @property
    def components_(self) -> Array:
        """Topics x vocabulary, rows sum to one."""
        return self.topics(self.learned.state)

    def top_words(self, n: int = 10) -> list[list[str]]:
        """The n heaviest words of each topic, heaviest first."""
        order = np.argsort(-self.components_, axis=1, kind="stable")[:, :n]
        return [[self.learned.vocabulary[word] for word in row] for row in order]

    def save(self, path: str | Path, *, public: str = "") -> None:
        """Writes weights, vocabulary and settings as one safetensors file: no code in it, and no document.

        `public` says why anybody may know the documents that were learned from. Without it, no run under a budget starts from
        the file unless its plan gives a reason. A model that was read from a file keeps the origin that stands there.
        """
        learned = self.learned
        fine = not public or learned.origin is None
        known = f"cannot be given, because an origin is known: {learned.origin.in_words()}" if learned.origin else ""
        require(fine, "save", "public", public, known)
        origin = Origin.public(public) if public else learned.origin
        write_model(Path(path), self, learned.state, learned.vocabulary, learned.tokeniser, origin)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model that `save` wrote, ready to transform or to be fitted anew."""
        stored = StoredModel.open(Path(path))
        model, state, vocabulary = stored.model_of(cls)
        learned = LearnedState(state, vocabulary, tokeniser=stored.tokeniser, from_file=True, origin=stored.origin)
        object.__setattr__(model, "_learned", learned)
        return model

    # ---- what scikit-learn's tools ask: settings ----

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **settings: Any) -> Self:
        """Replaces settings, checked as when the model is made. What was learned under other settings is forgotten."""
        before = self.get_params()
        if unknown := sorted(settings.keys() - before.keys()):
            raise NotFound(f"setting of {type(self).__name__}", unknown[0], tuple(before))
        if settings:
            made = type(self)(**{**before, **settings})  # refuses before anything is changed
            kept = {_OUTPUT: vars(self)[_OUTPUT]} if _OUTPUT in vars(self) else {}
            vars(self).clear()
            vars(self).update({**made.get_params(), **kept})
        return self

    def __sklearn_clone__(self) -> Self:
        """A model with the same settings that has learned nothing."""
        fresh = type(self)(**deepcopy(self.get_params()))
        if _OUTPUT in vars(self):
            object.__setattr__(fresh, _OUTPUT, dict(vars(self)[_OUTPUT]))
        return fresh

    # ---- what scikit-learn asks ----

    def __sklearn_tags__(self) -> Any:
        """Reads counts or texts, sparse or dense, none of them negative; needs no `y`."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        counts = Reads.SENTENCES not in self.reads and Reads.EMBEDDINGS not in self.reads
        given = InputTags(two_d_array=counts, sparse=counts, string=True, positive_only=True)
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64"]),
            input_tags=given,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self._learned is not None

    @property
    def n_features_in_(self) -> int:
        """The number of words that were learned from."""
        return len(self.learned.vocabulary)

    @property
    def feature_names_in_(self) -> Array:
        """The words that were learned from; there are none where a bare matrix was given."""
        words = self.learned.vocabulary
        if numbered(words):
            raise AttributeError("a matrix without names of columns was given to fit, so there is no feature_names_in_")
        return np.array(words, dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The name of each topic's column: `lda0`, `lda1`, ..."""
        name = type(self).__name__.lower()
        return np.array([f"{name}{topic}" for topic in range(len(self.components_))], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """`transform="pandas"` makes `transform` return data frames, `"default"` arrays; None leaves it as it is."""
        if transform is None:
            return self
        if transform not in FRAMES:
            raise BadSetting("set_output", "transform", repr(transform), "", known=FRAMES)
        object.__setattr__(self, _OUTPUT, {"transform": transform})
        return self

    # ---- what a federation asks ----

    def query(self, state: State) -> Query:
        return Question(self, state)

    def terms(self, state: State) -> Terms:
        """The terms of the next question."""
        raise NotImplementedError

    def answer(self, state: State, documents: Any, clipped_sum: ClippedSum, memory: Memory) -> None:
        """Adds one row per document: the gradient of its loss. No public noise is drawn, and nothing is remembered."""
        clipped_sum.add_losses(self.losses_of(state, documents), np.arange(len(documents)), np.zeros((len(documents), 0)))

    def losses_of(self, state: State, documents: Any) -> Losses:
        """The losses of these documents, where a model answers with their gradients."""
        raise NotImplementedError

    # ---- one machine's side of the query path ----

    def advance(self, state: State, total: Any, in_place: bool) -> State:
        """The state after one total; a model that can reuse the state's arrays says so by overriding this."""
        return self.update(state, Answer(total))

    def _known(self, documents: Any) -> Any:
        return over(documents, self.learned.vocabulary, self.learned.tokeniser)

    def _begun(self, train: Any, tokeniser: Tokeniser | None, seed: int) -> tuple[LearnedState, np.random.Generator]:
        """The state before anything is learned, and the generator that it was drawn from."""
        words, rng = tuple(train.vocabulary), np.random.default_rng(seed)
        if not words:
            raise Failed(
                "the documents have no word at all, so there is nothing to learn from them",
                hint="is it the right column or list of words? do the tokeniser's settings fit the language "
                "(min_length, pattern)?",
            )
        return LearnedState(self.start(words, rng), words, tokeniser=tokeniser), rng

    def _epochs(
        self, begun: LearnedState, train: Any, held: Any, epochs: int, rng: np.random.Generator
    ) -> Iterator[LearnedState]:
        state, memory, earlier, history = begun.state, Memory(), begun.sums, begun.history
        for epoch in range(len(history) + 1, len(history) + epochs + 1):
            state, loss, sums = self._epoch(state, train, memory, rng, earlier)
            score = None if held is None else _per_word(self, state, held)
            history = (*history, FitProgress(epoch, epochs, loss, score))
            # Later epochs reuse the arrays in place, so a state that may turn out the best is copied out.
            kept = state if held is None else {name: values.copy() for name, values in state.items()}
            yield replace(begun, state=kept, history=history, sums=sums)

    def _epoch(
        self, state: State, train: Any, memory: Memory, rng: np.random.Generator, earlier: Mapping[str, Array] | None
    ) -> tuple[State, float, Mapping[str, Array] | None]:
        """The state after one pass over the documents, its loss, and where answers add up the sum of all so far."""
        loss, sums, terms = 0.0, None, self.query(state).terms
        batches = shuffled(len(train), terms.batch, 1, rng) if terms.batch else [None]  # None: all documents in one
        for rows in batches:
            query = self.query(state)
            clipped_sum = ClippedRowSum(query.terms)
            query.answer(train if rows is None else train.select(rows), clipped_sum, memory, rng)
            total = clipped_sum.blocks()
            if _adds_up(terms):
                sums = total = total if earlier is None else {name: earlier[name] + block for name, block in total.items()}
            state = self.advance(state, total, in_place=True)
            loss += clipped_sum.loss * (len(train) if rows is None else len(rows))
        return state, loss / max(len(train), 1), sums


def _adds_up(terms: Terms) -> bool:
    """Whether the answers over all documents add up; a model that asks for a batch, or for a party, takes a step by each."""
    return terms.batch == 0 and terms.unit is not Unit.PARTY


def held_back(keys: Array, share: float) -> Array:
    """Which documents a split of that share holds back: decided by the key alone, so it does not change with the corpus."""
    mixed = (keys ^ (keys >> np.uint64(29))) * SPREAD
    mixed ^= mixed >> np.uint64(32)
    found: Array = mixed.astype(np.float64) < share * 2.0**64
    return found


def _split(documents: Any, validation: Any, share: float, tokeniser: Tokeniser | None) -> tuple[Any, Any]:
    if validation is not None:
        return documents, over(validation, tuple(documents.vocabulary), tokeniser)
    if share == 0.0:
        return documents, None
    back = held_back(np.asarray(documents.keys), share)
    if back.all() or not back.any():
        raise BadSetting("fit", "early_stopping", str(share), f"leaves one side of {len(documents)} documents empty")
    return documents.select(np.flatnonzero(~back)), documents.select(np.flatnonzero(back))


def _check_fit(epochs: Any, early_stopping: float, patience: int) -> None:
    fine = isinstance(epochs, Integral) and int(epochs) >= 1
    require(fine, "fit", "epochs", epochs, "must be a whole number, at least 1")
    require(0 <= early_stopping < 1, "fit", "early_stopping", early_stopping, "must be at least 0 and below 1")
    require(patience >= 1, "fit", "patience", patience, "must be at least 1")


def _per_word(model: TopicModel, state: State, documents: Any) -> float:
    return float(model.log_likelihood(state, documents, documents).sum() / max(documents.counts.sum(), 1))


@cache
def _settings_of(model: type) -> dict[str, tuple[Any, ...]]:
    """The type of each setting, and its limits."""
    hints = get_type_hints(model, include_extras=True)
    named: Any = model  # a dataclass, as every model is
    return {
        setting.name: get_args(hint) if get_origin(hint := hints[setting.name]) is Annotated else (hint,)
        for setting in fields(named)
    }


# ---- scikit-learn, which is imported only where it asks itself ----


@cache
def _take_notes(cls: type) -> None:
    """Lets a frozen model take attributes whose names begin with `_`: scikit-learn's tools note things on it under such names.

    A dataclass gets the methods that freeze it after its class was made, so they are wrapped when the first model is made.
    """
    freeze, keep = cast("Any", cls.__setattr__), cast("Any", cls.__delattr__)

    def set_(model: object, name: str, value: Any) -> None:
        put = object.__setattr__ if name.startswith("_") else freeze
        put(model, name, value)

    def delete(model: object, name: str) -> None:
        drop = object.__delattr__ if name.startswith("_") else keep
        drop(model, name)

    cls.__setattr__, cls.__delattr__ = set_, delete  # type: ignore[method-assign,assignment]


@cache
def _both(theirs: type[Exception]) -> type[NotFitted]:
    return type("NotFitted", (NotFitted, theirs), {"__doc__": NotFitted.__doc__, "__module__": NotFitted.__module__})


def _configured() -> str:
    """What `sklearn.set_config(transform_output=...)` says; without scikit-learn nobody can have said anything."""
    configuration = sys.modules.get("sklearn")
    return "default" if configuration is None else str(configuration.get_config().get("transform_output", "default"))
