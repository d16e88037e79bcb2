"""iFTM's Laplace noise on word counts, drawn once for a corpus. It protects one word occurrence, and no whole document.

Each token slot counts one word. Two corpora are neighbours if they differ in one slot, which holds a word in one of them and
nothing in the other; the slot itself stays, for lengths of documents and sentences are public here. One count of that slot then
differs by 1, so Laplace noise of scale 1 / epsilon on every count of every slot is epsilon-differential privacy; a word
replaced by another is 2 epsilon, and a document with n slots n epsilon. Whatever is computed from the noised counts, in however
many rounds, is post-processing and spends nothing more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from securetm.contracts import (
    INF,
    Answer,
    Array,
    Claim,
    Cohort,
    CountNoise,
    Domain,
    Mechanism,
    NoiseBy,
    Noised,
    RoundContext,
    Store,
    Terms,
    Unit,
)
from securetm.data_classes import dataclass, replace
from securetm.errors import BadSetting, Mismatch, check_setting
from securetm.mechanisms.noising import claims_alone, noise_on_noise
from securetm.mechanisms.perturbed_documents import PerturbedDocuments, canonical
from securetm.mechanisms.slot_noise import LEAST_EPSILON, MOST_CUT, MOST_EPSILON, MOST_WORDS, SECRET, SlotNoise

if TYPE_CHECKING:
    from dp_accounting import DpEvent

DISTRIBUTIONS = ("discrete", "continuous")
VERSION = 3  # of how noise is read from a keystream
_COMPUTED = "laplace_counts"  # in a context: the noised documents, with the name and the secret of their noise


@dataclass(frozen=True)
class LaplaceCounts(Mechanism):
    """Adds noise of scale 1 / `epsilon` to the counts of every token slot; what is not above `threshold` becomes 0.

    `discrete` noise is whole and leaves far fewer words than `continuous` noise, which is the paper's, on a fine grid.
    `raw` is the paper as printed, where Equations 7 and 20 and line 24 of Algorithm 1 count the words themselves: no epsilon
    holds for it, so it is refused wherever it would be used.
    """

    epsilon: float
    threshold: float = 0.2
    distribution: str = "discrete"
    raw: bool = False
    noise_by: ClassVar[NoiseBy] = NoiseBy.PARTY
    once: ClassVar[bool] = True  # its noise is drawn once for a corpus, and spent then
    plan_numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon"}

    def __post_init__(self) -> None:
        room = f"must be {LEAST_EPSILON:g} to {MOST_EPSILON:g}"
        check_setting(self, "epsilon", LEAST_EPSILON <= self.epsilon <= MOST_EPSILON, room)
        check_setting(self, "threshold", 0 <= self.threshold < INF, "must be 0 or above, and finite")
        check_setting(self, "distribution", self.distribution in DISTRIBUTIONS, f"must be one of {', '.join(DISTRIBUTIONS)}")
        rare = f"is too high for this epsilon, because noise reaches it with a chance below e^-{MOST_CUT:g}"
        check_setting(self, "threshold", self.law(1).cut <= MOST_CUT, rare)

    @property
    def drawn_epsilon(self) -> float:
        return self.epsilon

    def law(self, words: int) -> SlotNoise:
        """The noise of one slot over so many words."""
        if words > MOST_WORDS:
            raise BadSetting(
                type(self).__name__, "words", f"{words:,}", f"must be at most {MOST_WORDS:,}; use a shorter vocabulary"
            )
        return SlotNoise(words, float(self.epsilon), float(self.threshold), self.distribution == "discrete")

    def count_noise(self, words: int) -> CountNoise:
        """The chance that noise passes the threshold, times its mean if it does."""
        law = self.law(words)
        beyond = 1.0 / np.expm1(self.epsilon) if law.whole else 1.0 / self.epsilon  # steps above the first one that passes
        return CountNoise(law.chance * (law.least / law.steps + float(beyond)), 0.0 if law.whole else 1.0 / law.steps)

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms of an answer made of noised counts alone. They have no bound, since no further noise is needed.

        A question that names words or asks about the corpus itself stays as it is, so that a budget refuses it. `deviation` is
        that of the noise on one count of one slot: how far a model's answer is off by it depends on the model.
        """
        if self.raw:
            raise _raw_counts()
        if terms.noised is Noised.SHARE or _noised_here(terms):
            raise noise_on_noise(type(self).__name__)
        if not _concerns(terms):
            return terms
        if terms.unit is Unit.PERSON:
            raise Mismatch(
                "laplace_counts hides one word occurrence, and this question's rows are per person",
                hint=(
                    'give [budget] unit = "word"; a person\'s documents are hidden by a clip and noise for its bound instead'
                ),
            )
        if terms.sampling < 1:
            raise Mismatch(
                (
                    "laplace_counts draws its noise once for a whole corpus, and here each round brings other "
                    "documents ({rate} of them)"
                ),
                hint="in the profile, put the [[mechanism]] laplace_counts before the one that samples documents",
                rate=f"{terms.sampling:g}",
            )
        done = replace(terms, noised=Noised.WHOLE, unit=Unit.WORD, deviation=self.law(1).deviation, l1=INF, l2=INF, linf=INF)
        return self.row_terms(done)

    def row_terms(self, terms: Terms) -> Terms:
        """The same terms with real numbers under continuous noise, whose counts are not whole."""
        whole = terms.domain is Domain.INTEGER and (self.distribution == "discrete" or terms.grid > 0)
        return replace(terms, domain=Domain.INTEGER if whole else Domain.REAL)

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role: says that the answer is about noised words. Which words they were, nobody says."""
        return replace(answer, words_noised=True) if _noised_here(terms) else answer

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims for single word occurrences, whatever other parties collude."""
        if self.raw:
            return frozenset()
        return frozenset(replace(claim, unit=Unit.WORD) for claim in claims_alone(cohort))

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """The worst answer of that pure epsilon, which tells one bit: discrete Laplace noise on a count that moves by one.

        The failure probability is 0, as `SlotNoise` explains. A document of n words is n epsilon.
        """
        if not _noised_here(terms):
            return None
        from securetm.contracts.events import DiscreteLaplaceDpEvent

        return DiscreteLaplaceDpEvent(float(self.epsilon), 1)

    def remembers(self, documents: Any, terms: Terms, context: RoundContext) -> bool:
        """Run by a party: whether the secret for exactly these documents was drawn before."""
        return _concerns(terms) and _lasting_store(context).get(self._key(documents)) is not None

    def on_documents(self, documents: Any, terms: Terms, context: RoundContext) -> Any:
        """Run by a party: the documents with noise in place of their words. The secret is on disk before it is used."""
        if not _concerns(terms):
            return documents
        if self.raw:
            raise _raw_counts()
        key = self._key(documents)
        secret = _lasting_store(context).get(key)
        if secret is None:
            secret = context.entropy.bytes(SECRET)
            _lasting_store(context).put(key, secret)
        kept = context.computed.get(_COMPUTED)
        if kept is None or kept[0] != (key, secret):  # drawn once a process: all rounds read the same
            law = self.law(len(documents.vocabulary))
            context.computed[_COMPUTED] = kept = (key, secret), PerturbedDocuments.of(documents, law, secret)
        return kept[1]

    def _key(self, documents: Any) -> str:
        """The name of the secret: a hash of everything that the noised counts depend on.

        So other content, another order of it or other settings meet other noise. The threshold is among them: what is drawn
        from the stream depends on it, and two thresholds on one stream would not be one answer, cut twice. So does the way in
        which the stream is read, which a later version may change: the same secret read otherwise would be a second answer.
        """
        if documents.perturbed is not None:
            raise noise_on_noise(type(self).__name__)
        law = self.law(len(documents.vocabulary))
        form = "counts" if documents.tokens is None else "tokens"  # whose numbers might say other words in the other
        settings = [VERSION, form, law.stride, law.epsilon, law.threshold, self.distribution, list(documents.vocabulary)]
        whole = hashlib.sha256(json.dumps(settings).encode())
        for part in (documents.keys, *_content(documents)):
            array = np.ascontiguousarray(part)
            whole.update(f"{array.dtype.str} {array.shape};".encode())
            whole.update(array.data)
        return f"laplace_counts/{whole.hexdigest()}"


def _content(documents: Any) -> tuple[Array, ...]:
    """The word of every slot, and where documents and sentences end."""
    if documents.tokens is None:
        table = canonical(documents.counts)
        return tuple(part.astype(np.int64) for part in (table.indptr, table.indices, table.data))
    ends = documents.token_ends if documents.sentence_ends is None else documents.sentence_ends
    return tuple(np.asarray(part, dtype=np.int64) for part in (documents.tokens, documents.token_ends, ends))


def _concerns(terms: Terms) -> bool:
    """Whether this noise covers the question: a model's, and none about a list of words or the corpus alone."""
    return terms.noised is Noised.NOT and not terms.names_words and not terms.data_only


def _noised_here(terms: Terms) -> bool:
    """Whether this mechanism already added noise: no other one has terms for single words."""
    return terms.noised is Noised.WHOLE and terms.unit is Unit.WORD


def _lasting_store(context: RoundContext) -> Store:
    """The store of the secret: beside the ledger, so that a later run reads the same noise for the same words."""
    return context.store if context.lasting is None else context.lasting


def _raw_counts() -> Mismatch:
    return Mismatch(
        "the exact counts of words would be released, as in Equations 7 and 20 of iFTM, and that has no finite epsilon",
        hint="leave out `raw` of laplace_counts: it is for reproduction only, and no profile may carry it",
    )
