"""What agreeing on a list of words shows of each party: which words it has, and which words a single document gives away.

It reads the word lists and tables of words that pass before the training, not the training itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.federation.questions import JOINT, WORDS
from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, ClaimedEpsilon, Effort, GroundTruth, Proportion, Score
from securetm.leakage.illustrations import Example
from securetm.leakage.parts.word_owners import own_lists, summed, words_of
from securetm.leakage.parts.word_tables import DecodedWords
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, TOTAL

WHOSE = "words of one party alone that are told, with the party"
HELD, RIGHT = "words of a party that are said to be its", "words said to be a party's that are"
GIVEN_AWAY = "documents given away by a word that no other has"
_MOST_WORDS = 10  # in an example


@dataclass(frozen=True)
class InferredWords:
    """What the adversary says for certain: words of parties, and all words that it was shown."""

    words_of: Mapping[str, frozenset[str]]
    shown: frozenset[str] = field(default_factory=frozenset)


def attack(view: AdversaryView, effort: Effort) -> InferredWords:  # noqa: ARG001 - lists pass once, however many rounds are read
    """Run by the adversary: each party's own list where it can be read, and what the sum leaves no doubt of."""
    own, table = dict(own_lists(view)), summed(view)
    sure = _without_doubt(table, view) if table is not None else {}
    words_of = {name: own.get(name, frozenset()) | sure.get(name, frozenset()) for name in view.public.members}
    shown = frozenset().union(*own.values(), table.words if table is not None else ())
    return InferredWords(words_of, shown)


def _without_doubt(table: DecodedWords, view: AdversaryView) -> dict[str, frozenset[str]]:
    """Words of as many parties as there are beside the helpers, once these have taken out their own."""
    helpers = {one.name: words_of(one.documents, view.vocabulary()) for one in view.insiders}
    others = [name for name in view.public.members if name not in helpers]
    known = np.array([sum(word in words for words in helpers.values()) for word in table.words], dtype=np.int64)
    everybody = frozenset(np.array(table.words, dtype=object)[table.parties - known >= len(others)])
    return dict.fromkeys(others, everybody)


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(told: InferredWords, truth: GroundTruth) -> Score:
    """Run by the judge, over the words of the agreed list: what others there were it does not know either."""
    documents = {name: _documents_of(name, truth) for name in truth.held}
    holds = {name: np.asarray((rows > 0).sum(axis=0)).ravel() for name, rows in documents.items()}
    said = {name: _among(truth.vocabulary, told.words_of.get(name, frozenset())) for name in holds}
    one_has, one_said = _by_one(holds), _by_one(said)
    honest = [name for name in holds if name not in truth.helpers]
    own = [(said[name] & one_said, (holds[name] > 0) & one_has) for name in honest]
    held = [(said[name], holds[name] > 0) for name in honest]
    right = sum(int((guess & there).sum()) for guess, there in held)
    measures = {
        WHOSE: Proportion(sum(int((guess & there).sum()) for guess, there in own), sum(int(there.sum()) for _, there in own)),
        HELD: Proportion(right, sum(int(there.sum()) for _, there in held)),
        RIGHT: Proportion(right, sum(int(guess.sum()) for guess, _ in held)),
        GIVEN_AWAY: _given_away(_among(truth.vocabulary, told.shown), documents, honest),
    }
    return Score(measures, tuple(_examples(told, truth, holds, one_has)))


def _among(vocabulary: tuple[str, ...], words: frozenset[str]) -> Array:
    return np.fromiter((word in words for word in vocabulary), dtype=bool, count=len(vocabulary))


def _by_one(holds: Mapping[str, Array]) -> Array:
    """The words of exactly one party."""
    alone: Array = np.sum([held > 0 for held in holds.values()], axis=0) == 1
    return alone


def _documents_of(name: str, truth: GroundTruth) -> Any:
    """All that a party has: words are agreed on before documents are set aside."""
    return sparse.csr_array(
        sparse.vstack([truth.held[name], truth.others[name]] if name in truth.others else [truth.held[name]])
    )


def _given_away(shown: Array, documents: Mapping[str, Any], honest: list[str]) -> Proportion:
    """Documents of parties that do not help which have a word that was shown and that stands in no other document at all."""
    telling = shown & (sum(np.asarray((rows > 0).sum(axis=0)).ravel() for rows in documents.values()) == 1)
    given = [np.asarray((sparse.csr_array(documents[name])[:, np.flatnonzero(telling)]).sum(axis=1)) > 0 for name in honest]
    return Proportion(sum(int(one.sum()) for one in given), sum(len(one) for one in given))


def _examples(told: InferredWords, truth: GroundTruth, holds: Mapping[str, Array], alone: Array) -> Iterator[Example]:
    """Of two parties that have such, the words that it alone has, and which of them are said to be its."""
    honest = [name for name, words in holds.items() if name not in truth.helpers and ((words > 0) & alone).any()]
    for name in honest[:2]:
        own = [truth.vocabulary[word] for word in np.flatnonzero((holds[name] > 0) & alone)[:_MOST_WORDS]]
        said = [word for word in own if word in told.words_of.get(name, ())]
        yield Example(f"{name}: {', '.join(own)}", ", ".join(said), own == said)


def allowed(measure: str, claimed: ClaimedEpsilon) -> float:
    """A word that nobody else has is never named without its document; so with it, by (epsilon, delta), at most with delta.

    Of a smaller unit that says nothing: the word may stand in its document more than once.
    """
    return claimed.delta if measure == GIVEN_AWAY and claimed.of_whole_documents else 1.0


ATTACK = Attack(
    name="vocabulary_leakage",
    title="A party's own words from how the list of words was agreed on",
    citation="lists that are united in the open: Calvo-Bartolomé and Arenas-García 2022 (gFedNTM); tables that a sum opens: "
    "Goodrich and Mitzenmacher 2011; what publishing rare words gives away: Korolova et al. 2009",
    cost="a second for a table of a hundred thousand words",
    given="nothing but the messages; parties that help take their own words out of the sum",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED, TOTAL),
    models=("lda", "lda-matched", "lda-vi", "prodlda", "sentence-lda", "sentence-lda-matched"),
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
        "it says only what is certain: guessing any of n parties for a word that one of them has is right once in n times",
        "it knows no texts of its own, so it does not ask which party is likely to use such a word",
        "a helper knows its training documents here, so its words that stand in held-out documents alone are not taken out",
        "words that were named and then left out of the agreed list are not judged",
    ),
    remark="A union found through a sum hides whose a word is, and not that somebody has it, in how many parties it occurs and "
    "in how many documents: a name or a code that one document alone has is shown to the coordinator all the same, unless the "
    "parties name only words that enough documents use, counted with noise (word_selection).",
)
