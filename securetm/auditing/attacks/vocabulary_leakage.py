"""What agreeing on a list of words shows of each party: which words it has, and which documents a single word identifies.

The attack reads the lists and tables of words that are sent before the training, not the training itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.attack import EVERY_MODEL, Attack, Effort, GroundTruth, Proportion, Score
from securetm.auditing.illustrations import Example
from securetm.auditing.parts.word_tables import DecodedWords, own_lists, summed, words_of
from securetm.auditing.reading import BY_PARTIES, TOTAL
from securetm.contracts import Array, Budget
from securetm.federation.questions import JOINT, WORDS

WHOSE = "words of one party alone that are told, with the party"
HELD, RIGHT = "words of a party that are said to be its", "words said to be a party's that are"
GIVEN_AWAY = "documents given away by a word that no other has"
_MOST_WORDS = 10  # in an example


@dataclass(frozen=True)
class InferredWords:
    """The words that each party certainly has, and all words that the adversary saw."""

    words_of: Mapping[str, frozenset[str]]
    shown: frozenset[str] = field(default_factory=frozenset)


def attack(view: AdversaryView, effort: Effort) -> InferredWords:  # noqa: ARG001 - lists pass once, whatever the rounds
    """Collects each party's own list where it is readable, and the words that the sum proves each party to have."""
    own, table = dict(own_lists(view)), summed(view)
    sure = _proved(table, view) if table is not None else {}
    words_of = {name: own.get(name, frozenset()) | sure.get(name, frozenset()) for name in view.public.members}
    shown = frozenset().union(*own.values(), table.words if table is not None else ())
    return InferredWords(words_of, shown)


def _proved(table: DecodedWords, view: AdversaryView) -> dict[str, frozenset[str]]:
    """The words that every honest party has: without the helpers, as many parties have each as there are honest ones."""
    helpers = [words_of(one.documents, view.vocabulary()) for one in view.insiders]
    others = [name for name in view.public.members if name not in view.helpers]
    known = np.array([sum(word in words for words in helpers) for word in table.words], dtype=np.int64)
    of_all = frozenset(np.array(table.words, dtype=object)[table.parties - known >= len(others)])
    return dict.fromkeys(others, of_all)


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(inferred: InferredWords, truth: GroundTruth) -> Score:
    """Scores the words of the agreed list. The judge does not know which other words there were."""
    documents = {name: truth.all_of(name) for name in truth.held}
    holds = {name: np.asarray((rows > 0).sum(axis=0)).ravel() > 0 for name, rows in documents.items()}
    guessed = {name: _among(truth.vocabulary, inferred.words_of.get(name, frozenset())) for name in holds}
    one_has, one_guessed = (np.sum(list(of.values()), axis=0) == 1 for of in (holds, guessed))  # words of exactly one party
    honest = truth.honest(documents)
    pairs = [(guessed[name], holds[name]) for name in honest]
    measures = {
        WHOSE: Proportion.recall((guess & one_guessed, there & one_has) for guess, there in pairs),
        HELD: Proportion.recall(pairs),
        RIGHT: Proportion.precision(pairs),
        GIVEN_AWAY: _given_away(_among(truth.vocabulary, inferred.shown), documents, honest),
    }
    return Score(measures, tuple(_examples(inferred, truth, {name: holds[name] & one_has for name in honest})))


def _among(vocabulary: tuple[str, ...], words: frozenset[str]) -> Array:
    return np.fromiter((word in words for word in vocabulary), dtype=bool, count=len(vocabulary))


def _given_away(shown: Array, documents: Mapping[str, Any], honest: Mapping[str, Any]) -> Proportion:
    """The honest parties' documents that have a word which was shown and which is in no other document."""
    telling = shown & (sum(np.asarray((rows > 0).sum(axis=0)).ravel() for rows in documents.values()) == 1)
    given = [np.asarray(sparse.csr_array(rows)[:, np.flatnonzero(telling)].sum(axis=1)) > 0 for rows in honest.values()]
    return Proportion.over((int(one.sum()), len(one)) for one in given)


def _examples(inferred: InferredWords, truth: GroundTruth, alone: Mapping[str, Array]) -> Iterator[Example]:
    """For two parties: words that it alone has, and those of them that the attack attributes to it."""
    for name in [name for name, words in alone.items() if words.any()][:2]:
        own = [truth.vocabulary[word] for word in np.flatnonzero(alone[name])[:_MOST_WORDS]]
        guessed = [word for word in own if word in inferred.words_of.get(name, ())]
        yield Example(f"{name}: {', '.join(own)}", ", ".join(guessed), own == guessed)


def allowed(measure: str, claimed: Budget) -> float:
    """Bounds how often a word is shown that only one document has.

    Without its document such a word is never named, so by (epsilon, delta) it is named with probability at most delta.
    Protection of a smaller unit gives no such bound: the word may occur in its document more than once.
    """
    return claimed.delta if measure == GIVEN_AWAY and claimed.unit.whole_documents else 1.0


ATTACK = Attack(
    name="vocabulary_leakage",
    title="A party's own words from how the list of words was agreed on",
    citation="lists that are united in the open: Calvo-Bartolomé and Arenas-García 2022 (gFedNTM); tables that a sum opens: "
    "Goodrich and Mitzenmacher 2011; what publishing rare words gives away: Korolova et al. 2009",
    cost="a second for a table of a hundred thousand words",
    given="nothing but the messages; colluding parties subtract their own words from the sum",
    either=(*BY_PARTIES, TOTAL),
    models=EVERY_MODEL,
    measures={
        WHOSE: "word that one party alone has",
        HELD: "word of a party",
        RIGHT: "word said to be a party's",
        GIVEN_AWAY: "document",
    },
    attack=attack,
    judge=judge,
    questions=(WORDS, JOINT),
    allowed=allowed,
    limits=(
        "guesses: it reports only what is certain; guessing any of n parties for a word of one party is right once in n times",
        "texts of its own: it does not ask which party is likely to use such a word",
        "a colluding party's held-out documents: it does not subtract words that occur only in these from the sum",
        "words that were named and then left out of the agreed list, which are not judged",
    ),
    remark="A union computed through a sum hides which party has a word. It shows that a party has the word, how many parties "
    "have it, and how many documents. So the coordinator still sees a name or a code that only one document has, unless the "
    "parties name only words that enough documents use, counted with noise (word_selection).",
)
