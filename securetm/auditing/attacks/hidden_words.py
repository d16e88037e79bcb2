"""What a coordinator finds out about words that it should never see: guesses looked up in its messages, and columns named.

Whoever has a list of words looks each of them up in everything that the coordinator saw: as it is, as a hash that needs no key,
and under the parties' key where a party helps. Whoever has other text of the same kind matches the columns to its words: by how
frequent they are, or by how often two of them stand in one document. Where the names of columns are words, nothing has to be
matched.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from functools import partial

import numpy as np
from scipy import sparse

from securetm.auditing.attack import EVERY_MODEL, Attack, Challenge, Effort, GroundTruth, Proportion, Score, stacked
from securetm.auditing.attacks.vocabulary import judge_told, summed
from securetm.auditing.parts.column_matching import by_pairs, by_ranks
from securetm.auditing.record import Example
from securetm.auditing.views import ANSWER, BY_PARTIES, REQUEST, SET_UP, TOTAL, AdversaryView, NotTestable, questions_in, totals
from securetm.contracts import Array
from securetm.data_classes import dataclass, replace
from securetm.federation.questions import (
    BUCKET_SUMS,
    BUCKETS,
    COHERENCE,
    FREQUENCIES,
    HELD_OUT,
    JOINT,
    MARKS,
    PAIRS,
    TRAIN,
    WORDS,
    WORDS_KEY,
    Questions,
)
from securetm.federation.wire import wire
from securetm.models.moments import weights_of
from securetm.models.questions.hidden_words import KEY, OPEN, PARTS, hashed
from securetm.models.questions.words import sendable
from securetm.plans.profiles import BLIND

# ---- a list of words, looked up in all messages ------------------------------------------------------------------------

TOLD, RIGHT = "words of the parties that are told", "words said to be the parties' that are"
_SHOWN = 6  # examples
_LETTERS = 5  # of a word in clear among numbers: shorter ones stand there by chance
_TOKEN = re.compile(rb"[0-9A-Za-z'_\-]{%d,}" % _LETTERS)
_HASHES = (
    hashlib.sha256,
    hashlib.sha1,
    hashlib.md5,
    hashlib.blake2b,
    lambda word: hashlib.blake2b(word, digest_size=24),
    lambda word: hashlib.blake2b(word, digest_size=8),
)
_WINDOW = 8  # bytes of a hash that are looked for
_SIFTED = 24
_SIFT = np.uint64((1 << _SIFTED) - 1)


def ask_words(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Asks about words that the parties have, and as many that nobody has. The control asks about the second kind alone."""
    assert truth.every_word is not None
    helped = frozenset(truth.vocabulary[n] for name in truth.helpers for n in np.flatnonzero(_held_by(truth.all_of(name))))
    held = {word for word, documents in truth.every_word().items() if documents and sendable(word)}
    honest = sorted(held - helped)
    there = [honest[place] for place in rng.permutation(len(honest))[: effort["words"]]]
    asked = [*there, *(_made_up(word, held, rng) for word in there)]
    order = rng.permutation(len(asked))
    present = np.arange(len(asked)) < len(there)

    def redrawn(again: np.random.Generator) -> tuple[str, ...]:
        return tuple(_made_up(asked[place], held, again) for place in order)

    return Challenge(tuple(asked[place] for place in order), present[order], redrawn)


def _made_up(word: str, held: Collection[str], rng: np.random.Generator) -> str:
    """A word of the same letters, in an order that nobody has; of few letters some come twice."""
    letters = list(word)
    while True:
        made = "".join(rng.permutation(letters))
        if made not in held:
            return made
        letters.append(str(rng.choice(letters)))


def look_up(view: AdversaryView, effort: Effort) -> Array:
    words: tuple[str, ...] = view.question
    contents = {message.content for seen in view.seen.values() for message in seen}
    in_clear = {token.decode() for content in contents for token in _TOKEN.findall(content)}
    shown = {*view.vocabulary(), *_in_lists(view), *(in_clear - _spoken(view))}
    found = np.array([word in shown for word in words], dtype=bool)
    found |= _as_hashes(words, contents)
    if view.public.plan.vocabulary.source == BLIND:
        found |= _under_key(words, bytes(KEY), view, of_helper=False)
        for helper in view.insiders:
            key = helper.secrets.get(WORDS_KEY, b"")
            if len(key) == KEY:
                found |= _under_key(words, key, view, of_helper=True)
    return found


def _in_lists(view: AdversaryView) -> Iterator[str]:
    """The words of all lists that parties were told, and of the table that a sum opened."""
    for message in view.messages(REQUEST):
        body = wire.unpack_request(message.content)[1]
        if isinstance(body, wire.Adopt):
            yield from body.words.decode().split("\n")
    table = summed(view) if view.seen.get(TOTAL) else None
    yield from table.words if table is not None else ()


def _spoken(view: AdversaryView) -> frozenset[str]:
    """Names that the protocol itself speaks: of parties, questions and arrays. They say nothing of a document."""
    names = {*view.public.members}
    for asked in questions_in(view).values():
        names |= {asked.question, *asked.state, *(block.name for block in asked.terms.layout)}
    for message in view.messages(REQUEST):
        match wire.unpack_request(message.content)[1]:
            case wire.Share() as share:
                names |= {*share.state, share.purpose}
            case wire.Finish() as finish:
                names |= {*finish.state}
            case wire.Ask() as ask:
                names |= {ask.question, *ask.state}
    return frozenset(token.decode() for name in names for token in _TOKEN.findall(name.encode()))


def _as_hashes(words: tuple[str, ...], contents: Collection[bytes]) -> Array:
    """Which words have a usual hash that stands in a message, as bytes or in hexadecimal digits."""
    digests = [hash_of(word.encode()).digest() for word in words for hash_of in _HASHES]
    begun = b"".join(digest[:_WINDOW] + digest.hex()[:_WINDOW].encode() for digest in digests)
    wanted = np.frombuffer(begun, dtype="<u8").reshape(len(words), -1)
    likely = np.zeros(1 << _SIFTED, dtype=bool)  # hardly any window passes it, so few are looked up
    likely[wanted & _SIFT] = True
    there = set[int]()
    for content in contents:
        for shift in range(min(_WINDOW, max(len(content) - _WINDOW + 1, 0))):
            seen = np.frombuffer(content, dtype="<u8", offset=shift, count=(len(content) - shift) // _WINDOW)
            there.update(seen[likely[seen & _SIFT]].tolist())
    return np.asarray(np.isin(wanted, np.fromiter(there, dtype=np.uint64, count=len(there))).any(axis=1))


def _under_key(words: tuple[str, ...], key: bytes, view: AdversaryView, *, of_helper: bool) -> Array:
    """Which words lie in a cell that is a column, if this is the parties' key.

    If it is a helper's, also which lie in a bucket that some document has a word in: exact sums show that of every bucket.
    """
    found, there = hashed(words, key, Questions(view.public.agreement).buckets), np.zeros(len(words), dtype=bool)
    there[found.places] = np.isin(found.cells, _cells_of(view))
    for one in totals(view) if of_helper and view.seen.get(TOTAL) else ():  # the coordinator opens none where the parties do
        if one.round.question == BUCKETS:
            there[found.places] |= np.asarray(one.blocks["buckets"])[found.buckets] > 0
    return there


def _cells_of(view: AdversaryView) -> Array:
    """The cell of each column, by its name."""
    return np.array([int(name, 16) for name in view.vocabulary()], dtype=np.int64)


WORD_DICTIONARY = Attack(
    name="word_dictionary",
    title="A list of words looked up in all that the coordinator saw",
    citation="guessing what a hash hides: Morris and Thompson 1979; lists that are united in the open: Calvo-Bartolomé and "
    "Arenas-García 2022 (gFedNTM)",
    cost="seconds on one core for ten thousand words and ten megabytes of messages",
    given="the whole list of the parties' words, among as many that nobody has (a public list of words gives less); of a "
    "helper, the key",
    either=(*BY_PARTIES, TOTAL),
    models=EVERY_MODEL,
    measures={TOLD: "word of the parties", RIGHT: "word said to be the parties'"},
    bears_on=("inference",),
    attack=look_up,
    judge=partial(judge_told, measures=(TOLD, RIGHT), spoken=("a word of nobody", "a word of the parties"), shown=_SHOWN),
    efforts=("words",),
    questions=(SET_UP, WORDS, JOINT, FREQUENCIES, BUCKETS, MARKS, BUCKET_SUMS, PAIRS, TRAIN, HELD_OUT, COHERENCE),
    pose=ask_words,
    limits=(
        "hashes other than six usual ones, as bytes or digits, and keys other than one of zeros",
        "words of fewer than five letters in clear among other bytes: they stand there by chance",
        "words of a helper that are on no agreed list: they count as words of the others",
    ),
    remark="Where the list is united or made jointly, the coordinator tells it to the parties. Where it is blind, words are "
    "hashed under a key that all parties have: one party that helps the coordinator reveals the frequency of every bucket, and "
    "so whether any guessed word is in the documents.",
)


# ---- columns without names, matched to words of other text -----------------------------------------------------------------

NAMED = "columns that are named"


@dataclass(frozen=True)
class PublicText:
    """Words, and which of them each document of a public text holds."""

    words: tuple[str, ...]
    held: sparse.csr_array


@dataclass(frozen=True)
class NamedColumns:
    """Some columns, by place in the list, and the place of each one's word in the public text; -1 where none is said."""

    columns: Array
    words: Array


def give_text(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Gives the held-out documents, whose words are in another order. The control mixes up words and documents."""
    others = stacked(truth.others.values())
    order = rng.permutation(len(truth.vocabulary))
    held = sparse.csr_array((others > 0)[:, order])
    words = tuple(truth.vocabulary[place] for place in order)

    def redrawn(again: np.random.Generator) -> PublicText:
        named = tuple(words[place] for place in again.permutation(len(words)))
        return PublicText(named, sparse.csr_array(held[:, again.permutation(len(words))]))

    return Challenge(PublicText(words, held), order, redrawn)


def match_frequencies(view: AdversaryView, effort: Effort) -> NamedColumns:
    """Names columns by the rank of their frequencies, as the sums of the words showed them."""
    text: PublicText = view.question
    if (known := _names_in_clear(view, text)) is not None:
        return known
    private, public = _frequencies(view), _held_by(_enough(text))
    columns = _most_frequent(private, effort)
    words = _most_frequent(public, effort)
    return NamedColumns(columns, words[by_ranks(private[columns], public[words])])


def match_pairs(view: AdversaryView, effort: Effort) -> NamedColumns:
    """Names columns by how often two of them stand in one document, as sums of pairs show it."""
    text: PublicText = view.question
    if (known := _names_in_clear(view, text)) is not None:
        return known
    private = _pairs(view)
    public = _pairs_of(_enough(text), private)
    columns, words = _most_frequent(np.diag(private), effort), _most_frequent(np.diag(public), effort)
    found = by_pairs(private[np.ix_(columns, columns)], public[np.ix_(words, words)])
    return NamedColumns(columns, words[found])


def _names_in_clear(view: AdversaryView, text: PublicText) -> NamedColumns | None:
    """Columns whose own names are words; None if none is."""
    place = {word: n for n, word in enumerate(text.words)}
    words = np.array([place.get(name, -1) for name in view.vocabulary()], dtype=np.int64)
    return NamedColumns(np.arange(len(words)), words) if (words >= 0).any() else None


def _enough(text: PublicText) -> sparse.csr_array:
    if not text.held.nnz:
        raise NotTestable("held-out documents stand for public text, and this run holds none out")
    return text.held


def _most_frequent(frequencies: Array, effort: Effort) -> Array:
    return np.argsort(-frequencies, kind="stable")[: effort["columns"]]


def _held_by(held: sparse.csr_array) -> Array:
    return np.asarray(held.sum(axis=0), dtype=np.float64).ravel()


def _frequencies(view: AdversaryView) -> Array:
    """How frequent each column is, by the last sum of cells."""
    cells = _cells_of(view)
    for one in reversed(list(totals(view)) if TOTAL in view.seen else []):
        if one.round.question in (MARKS, BUCKET_SUMS) and one.round.state:
            opened, seen = one.round.state[OPEN], np.asarray(one.blocks["cells"], dtype=np.float64)
            buckets = np.flatnonzero(np.unpackbits(opened)) if one.round.question == BUCKET_SUMS else opened
            places = np.searchsorted(buckets, cells // PARTS) * PARTS + cells % PARTS
            return np.asarray(seen.reshape(len(buckets) * PARTS, -1)[places, 0])
    raise NotTestable("no sum of cells was opened in this run")


def _pairs(view: AdversaryView) -> Array:
    """How often each two columns stand in one document, and on the diagonal how frequent each is: the last sum of pairs."""
    flat = [np.asarray(one.blocks[PAIRS]).ravel() for one in totals(view) if PAIRS in one.blocks] if TOTAL in view.seen else []
    if not flat:
        raise NotTestable("the model of this run asks for no pairs of words")
    width = len(view.vocabulary())
    half = np.zeros((width, width))
    half[np.triu_indices(width)] = flat[-1]
    return np.asarray(half + np.triu(half, 1).T)


def _pairs_of(held: sparse.csr_array, private: Array) -> Array:
    """The same of public documents, as large as the sums that were seen: for pairs, and for words."""
    rows = sparse.csr_array(held, dtype=np.float64)
    counts = np.asarray(rows.sum(axis=1)).ravel()
    single, pair = weights_of(counts, 0.5, rows.shape[1])
    table = np.asarray((rows.T @ (sparse.diags_array(pair) @ rows)).todense())
    np.fill_diagonal(table, 0.0)
    alone, frequent = np.asarray(rows.T @ single), float(np.diag(private).sum())
    table *= max(float(private.sum()) - frequent, 0.0) / max(float(table.sum()), 1e-9)
    np.fill_diagonal(table, alone * max(frequent, 0.0) / max(float(alone.sum()), 1e-9))
    return table


def judge_columns(found: NamedColumns, truth: GroundTruth) -> Score:
    order = np.asarray(truth.answer)
    said = np.where(found.words >= 0, order[found.words], -1)
    right = said == found.columns
    names = (*truth.vocabulary, "no word")
    shown = list(zip(found.columns.tolist(), said.tolist(), right.tolist(), strict=True))[:_SHOWN]
    examples = tuple(Example(names[real], names[told], fits) for real, told, fits in shown)
    return Score({NAMED: Proportion.of_mask(right)}, examples)


COLUMN_FREQUENCIES = Attack(
    name="column_frequencies",
    title="Columns without names, matched to words of other text by their frequencies",
    citation="frequency analysis of encrypted columns: Naveed, Kamara and Wright 2015",
    cost="a second on one core",
    given="which words the columns are, in no order, and other documents of the same parties",
    either=(ANSWER, TOTAL),
    models=EVERY_MODEL,
    measures={NAMED: "column"},
    bears_on=("inference",),
    attack=match_frequencies,
    judge=judge_columns,
    efforts=("columns",),
    questions=(MARKS, BUCKET_SUMS),
    pose=give_text,
    limits=(
        "text of other places and times: the held-out documents that it is given are counted in the columns' frequencies, too",
        "what the training shows of columns, but for pairs of them (column_pairs)",
    ),
    remark="Frequencies name the few words that are far apart from all others. A blind list hides names, and not frequencies.",
)

COLUMN_PAIRS = replace(
    COLUMN_FREQUENCIES,
    name="column_pairs",
    title="Columns without names, matched to words of other text by how often two of them stand in one document",
    citation="co-occurrence attacks: Islam, Kuzu and Kantarcioglu 2012; matching of graphs: Vogelstein et al. 2015",
    cost="seconds on one core for a thousand columns",
    attack=match_pairs,
    questions=(PAIRS, TRAIN),
    limits=(
        "columns beyond as many as it may follow, and few documents: over 1,700 of them it named 27 % of the thousand most "
        "frequent of two thousand columns, and 82 % of 399 in a run that had no others",
        "pairs that can be told from a model of topics",
    ),
    remark="Exact pairs of columns name nearly all of them to whoever has text of the same kind. A model that asks for pairs "
    "(moments, or a training that begins with it) hides words only under a profile with noise.",
)
