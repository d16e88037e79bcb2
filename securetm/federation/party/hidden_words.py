"""A party's side of words that the coordinator never sees: the parties' key, the names of columns, and its own words.

Of exact sums the parties tell each other the word of each column, sealed. A party tells a word only where the sum shows that it
is alone in its column, so a rare word that fell into the column of a frequent one is told to nobody; and a name that the sum
does not bear out counts as none. Behind noise no word is told: each party finds the columns of its own words by itself, and so
the row of a document depends on that document, the key and the columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

import numpy as np

from securetm.contracts import Entropy, Message, Roster, State, Store
from securetm.corpus.corpus import Corpus
from securetm.corpus.public_words import ranked_words
from securetm.errors import Refused
from securetm.federation.party.session import JoinedSession
from securetm.federation.party.state import PartyState
from securetm.federation.questions import FEWEST_PARTIES, MARKS, WORDS_KEY, digest_of_arrays, share_identity
from securetm.federation.refusal_errors import AnotherList, BadState, QuestionNotAllowed, WrongRound
from securetm.federation.shared_words import (
    CELLS,
    NAME,
    SHARE_KEY,
    SHARE_NAMES,
    TOTALS,
    about_names,
    bytes_of_names,
    names_limits,
    words_key,
)
from securetm.federation.wire import wire
from securetm.models.questions.hidden_words import KEY, PARTS, WIDTH, FoundCells, cell_name, hashed, is_cell_name
from securetm.models.questions.word_sketch import LONGEST, fits
from securetm.plans.agreement import Agreement
from securetm.plans.profiles import BLIND
from securetm.plans.schema import USUAL_LANGUAGE
from securetm.sessions.group_key import SecretPartySetup
from securetm.sessions.identities import PinnedRoster, identity_of
from securetm.sessions.names import NamesPartyExchange, digest_of_names
from securetm.sessions.session_memory import SessionMemory

UNKNOWN = "#"  # stands before the name of a column whose word a party does not know
_NAMES = "names of columns"  # in the party's store


class AnotherKey(Refused):
    """{sender} brought another key of words than the one that this party has in this run"""

    sender: str
    hint = "the run began with the other key: take part with the home that this party had then"


def share(session: JoinedSession, body: wire.Share) -> tuple[Message, ...]:
    """Takes part in an exchange of the parties among themselves, or refuses."""
    own = session.own
    if own.agreement.plan.vocabulary.source != BLIND:
        raise BadState("the plan hides no words")
    if body.exchange != share_identity(session.identity, body.purpose, body.state):
        raise WrongRound()
    roster = Roster(session.identity, own.agreement.profile.digest, own.members, own.keys)
    if body.purpose == SHARE_KEY and not body.state:
        identity, secret = identity_of(own.name, roster, own.store), words_key(partial(_drawn, own), partial(_checked, own))
        own.limits.parcel = secret.longest(len(own.members))[1]
        memory = SessionMemory(own.store, identity.register.hash)
        return session.open(body.exchange, SecretPartySetup(identity, secret, own.entropy, memory))
    if body.purpose == SHARE_NAMES and own.agreement.budget is None and own.questions.key:
        if not own.policy.allows_question(MARKS):
            raise QuestionNotAllowed(MARKS)
        found, register = _found_cells(own, body.state), PinnedRoster(roster)
        most = own.agreement.plan.vocabulary.max_words if own.learner is not None else len(found.cells)
        own.limits.parcel = names_limits(len(own.members), most)[1]
        told = names_told(own, found).ljust(bytes_of_names(most), b"\0")
        heard = partial(_heard, own, found, most)
        exchange = NamesPartyExchange(register, register.place(own.name), own.questions.key, body.exchange, told, heard)
        return session.open(body.exchange, exchange)
    raise BadState("the plan has no such exchange")


# ---- the key -------------------------------------------------------------------------------------------------------


def _drawn(own: PartyState, entropy: Entropy) -> bytes:
    """The key of this run if the party has one already, or else a new one, which is on disk before anybody hears it."""
    key = own.questions.key or entropy.bytes(KEY)
    _checked(own, key, own.name)
    return key


def _checked(own: PartyState, secret: bytes, sender: str) -> None:
    """Keeps a key that another party brought. A second one would put every word elsewhere."""
    if own.questions.key not in (b"", secret):
        raise AnotherKey(sender)
    own.store.put(WORDS_KEY, secret)
    own.questions.key = secret


# ---- the names of columns, where sums are exact --------------------------------------------------------------------


def _found_cells(own: PartyState, state: State) -> FoundCells:
    """What the sums showed. A party takes it once in a run, since what it names shows what words it has.

    Where this party opened them, a list other than the first becomes an empty one: no reply may depend on what it read.
    """
    if own.learner is None:
        found = _said_cells(own, state)
        own.store.hold_list(SHARE_NAMES, digest_of_arrays(state))
        return found
    if state:
        raise BadState("the parties open the sums, so nobody tells them what they showed")
    found = own.learner.hidden.found
    try:
        own.store.hold_list(SHARE_NAMES, digest_of_arrays(about_names(found.cells, found.totals)))
    except AnotherList as other:
        own.failure_log.failed(other)
        return found.without(np.ones(len(found.cells), dtype=bool))
    return found


def _said_cells(own: PartyState, state: State) -> FoundCells:
    """What the coordinator says that the sum showed, checked in form: it alone has seen it."""
    cells, totals = state.get(CELLS, np.zeros(0)), state.get(TOTALS, np.zeros(0))
    fine = set(state) == {CELLS, TOTALS} and cells.dtype == totals.dtype == np.int64 and cells.ndim == 1
    if not fine or totals.shape != (len(cells), WIDTH) or not 1 <= len(cells) <= own.agreement.plan.vocabulary.max_words:
        raise BadState("the columns have no such form")
    if (np.diff(cells) <= 0).any() or cells[0] < 0 or cells[-1] >= own.questions.buckets * PARTS:
        raise BadState("the columns are out of order, or there are no such ones")
    choice = own.agreement.plan.vocabulary
    if (totals[:, 0] < choice.min_documents).any() or (totals[:, 1] < FEWEST_PARTIES).any():
        raise BadState("a column is of words in fewer documents, or at fewer parties, than the plan says")
    return FoundCells(cells, totals)


def names_told(own: PartyState, found: FoundCells) -> bytes:
    """What this party tells the others: the word of each column that is alone in it and that its documents hold."""
    with own.failure_log.logged():
        alone = found.words_alone(_ranked(own.corpus), own.questions.key, own.questions.buckets)
        return b"".join(bytes((len(word.encode()),)) + word.encode().ljust(LONGEST, b"\0") for word in alone)
    return bytes(bytes_of_names(len(found.cells)))


def _heard(own: PartyState, found: FoundCells, most: int, told: Mapping[int, bytes]) -> tuple[bytes, bytes]:
    """Takes the first name of each column that the sum bears out, and keeps all of them.

    Where the coordinator may not see which cells they are, columns are numbered from 0.
    """
    names = [""] * len(found.cells)
    for place in sorted(told):
        said = [_name_in(told[place][at : at + NAME]) for at in range(0, len(told[place]), NAME)]
        own_words = tuple(dict.fromkeys(word for word in said if word))
        borne_out = found.words_alone(own_words, own.questions.key, own.questions.buckets)
        names = [name or new for name, new in zip(names, borne_out, strict=True)]
    columns = [(cell, name) for cell, name in zip(found.cells.tolist(), names, strict=True) if name]
    if own.learner is not None:
        columns = [(number, name) for number, (_, name) in enumerate(columns)]
    own.store.put(_NAMES, json.dumps({cell_name(column): name for column, name in columns}).encode())
    named = np.zeros(most, dtype=bool)
    named[: len(names)] = [bool(name) for name in names]
    return np.packbits(named).tobytes(), digest_of_names(names)


def _name_in(packed: bytes) -> str:
    """A name as a party told it; nothing if it is none."""
    try:
        word = packed[1 : 1 + packed[0]].decode()
    except UnicodeDecodeError:
        return ""
    return word if fits(word) else ""


# ---- what it reads and shows ---------------------------------------------------------------------------------------


def check_columns(columns: tuple[str, ...], own: PartyState) -> None:
    """Refuses columns other than those that the parties named; behind noise, any that are none."""
    if not own.questions.key:
        raise BadState("the parties share no key yet")
    if own.agreement.budget is None:
        known = columns == tuple(sorted(_named(own.store)))
    else:
        known = all(is_cell_name(name, own.questions.buckets) for name in columns)
    if not known:
        raise BadState("the columns are not those that the parties named")


def in_columns(corpus: Corpus, own: PartyState, columns: tuple[str, ...]) -> Corpus:
    """The same documents, each word under the name of its column. A word of none has no name."""
    words = corpus.vocabulary
    if own.agreement.budget is None:
        column_of = {word: column for column, word in _named(own.store).items()}
        return corpus.renamed(tuple(column_of.get(word, "") for word in words))
    found, there = hashed(tuple(words), own.questions.key, own.questions.buckets), set(columns)
    names = [""] * len(words)
    for place, cell in zip(found.places.tolist(), found.cells.tolist(), strict=True):
        name = cell_name(cell)
        names[place] = name if name in there else ""
    return corpus.renamed(tuple(names))


def shown_words(own: PartyState, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The word of each column, as far as this party knows it.

    Behind noise that is its own word, or else one of a public list. An unknown one is shown by the name of its column.
    """
    if own.agreement.budget is None:
        named = _named(own.store)
        return tuple(named[column] for column in columns)
    known: dict[str, str] = {}
    for words in (_ranked(own.corpus), _listed(own.agreement)):
        found = hashed(tuple(words), own.questions.key, own.questions.buckets)
        for place, cell in zip(found.places.tolist(), found.cells.tolist(), strict=True):
            known.setdefault(cell_name(cell), words[place])
    return tuple(known.get(column, UNKNOWN + column) for column in columns)


def _named(store: Store) -> dict[str, str]:
    stored = store.get(_NAMES)
    return dict(json.loads(stored)) if stored else {}


def _ranked(corpus: Corpus) -> list[str]:
    """The words that the party's documents hold, the most frequent ones first."""
    often = corpus.document_frequencies()
    return [corpus.vocabulary[n] for n in np.argsort(-often, kind="stable") if often[n]]


def _listed(agreement: Agreement) -> tuple[str, ...]:
    """A public list of words, if one is installed."""
    try:
        return ranked_words(agreement.plan.language or USUAL_LANGUAGE, agreement.plan.tokeniser.make())
    except ModuleNotFoundError:  # it only serves to read, so a party does without
        return ()
