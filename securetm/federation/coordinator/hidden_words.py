"""How the coordinator comes to the columns of words that it never sees: it knows buckets and cells by their numbers.

The parties share a key. Exact sums: the frequent buckets are asked about again, and the parties tell each other which word is
alone in each cell. Noised sums: cells that stand out are columns, and nobody tells anybody a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from securetm.contracts import Roster
from securetm.errors import Failed
from securetm.federation.budget.forecast import MORE_WORDS
from securetm.federation.questions import BUCKET_SUMS, BUCKETS, FEWEST_PARTIES, MARKS
from securetm.federation.shared_words import SHARE_KEY, SHARE_NAMES, about_names, bytes_of_names, names_limits, words_key
from securetm.models.questions.hidden_words import (
    MOST_OPEN_A_WORD,
    OPEN,
    SHARES,
    BucketSearch,
    FoundCells,
    cell_name,
    frequent_buckets,
)
from securetm.sessions.group_key import SecretCoordinatorSetup
from securetm.sessions.identities import PinnedRoster
from securetm.sessions.names import NamesCoordinatorExchange
from securetm.sessions.session_memory import SessionMemory

if TYPE_CHECKING:
    from securetm.federation.coordinator.rounds import Rounds

SUM_OF_BUCKETS = "sum-of-buckets-{}"
_ROOM = 8  # one more bucket is asked about for so many words, because some hold several words and get no column


def share_key(rounds: Rounds) -> None:
    """Lets the parties share a key that this role does not know. A party that has the key of this run brings that one."""
    register, secret = _register(rounds), words_key()
    setup = SecretCoordinatorSetup(register, secret, SessionMemory(rounds.store, register.hash))
    rounds.share(SHARE_KEY, {}, setup, secret.longest(len(rounds.members))[0])


def columns(rounds: Rounds) -> tuple[str, ...]:
    """The names of the run's columns, in order. Sets the number of documents, or the shares of the columns."""
    share_key(rounds)
    return _noised(rounds) if rounds.questions.paid else _named(rounds)


def _named(rounds: Rounds) -> tuple[str, ...]:
    """Columns in enough documents, not too many, and at enough parties, each of one word that a party named."""
    choice = rounds.agreement.plan.vocabulary
    most = choice.max_words + max(choice.max_words // _ROOM, MOST_OPEN_A_WORD)
    opened = rounds.ask(BUCKETS, {}, keep=True)
    buckets, rounds.documents = frequent_buckets(opened, min(most, MOST_OPEN_A_WORD * choice.max_words), choice.min_documents)
    if not len(buckets):
        raise _nothing_found(rounds)
    answer = rounds.ask(MARKS, {OPEN: buckets}, keep=True)
    share = choice.max_share * rounds.documents
    found = FoundCells.of(answer, buckets, choice.max_words, choice.min_documents, share, FEWEST_PARTIES)
    if len(found.cells) < 2:
        raise _nothing_found(rounds)
    exchange = NamesCoordinatorExchange(_register(rounds), bytes_of_names(len(found.cells)), len(found.cells))
    limit = names_limits(len(rounds.members), len(found.cells))[0]
    rounds.share(SHARE_NAMES, about_names(found.cells, found.totals), exchange, limit)
    named = np.unpackbits(np.frombuffer(exchange.named, np.uint8))[: len(found.cells)].astype(bool)
    return tuple(cell_name(cell) for cell in found.cells[named].tolist())


def _noised(rounds: Rounds) -> tuple[str, ...]:
    """Columns that stand out of noised sums. What was opened is kept before the next sum is asked for."""
    search = BucketSearch(rounds.questions.buckets)
    for number in range(len(SHARES)):
        search.take(rounds.ask_and_keep(SUM_OF_BUCKETS.format(number), BUCKET_SUMS, search.about))
    cells, weights = search.found(rounds.agreement.plan.vocabulary.max_words)
    rounds.frequencies = weights / max(weights.sum(), 1e-300) if len(weights) else None
    return tuple(cell_name(cell) for cell in cells.tolist())


def _register(rounds: Rounds) -> PinnedRoster:
    return PinnedRoster(Roster(rounds.session, rounds.agreement.profile.digest, rounds.members, rounds.keys))


def _nothing_found(rounds: Rounds) -> Failed:
    """The documents have no words in common."""
    choice = rounds.agreement.plan.vocabulary
    return Failed(
        "hardly any word is in {least:document|documents} and at {parties} parties",
        hint=MORE_WORDS,
        least=choice.min_documents,
        parties=FEWEST_PARTIES,
    )
