"""How the coordinator comes to the columns of words that it never sees: it knows buckets and cells by their numbers.

The parties share a key. Exact sums: the frequent buckets are asked about again, and the parties tell each other which word is
alone in each cell. Noised sums: cells that stand out are columns, and nobody tells anybody a word.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from securetm.contracts import Array, Message, Roster, State
from securetm.errors import Failed
from securetm.federation.budget.forecast import MORE_WORDS
from securetm.federation.questions import BUCKET_SUMS, BUCKETS, FEWEST_PARTIES, MARKS
from securetm.federation.shared_words import (
    SHARE_KEY,
    SHARE_NAMES,
    OpenedWords,
    about_names,
    bytes_of_names,
    names_limits,
    words_key,
)
from securetm.federation.store import named
from securetm.models.questions.hidden_words import SHARES, BucketSearch, cell_name
from securetm.models.questions.word_sketch import fits
from securetm.models.questions.word_sums import share_of_documents
from securetm.sessions.group_key import SecretCoordinatorSetup
from securetm.sessions.identities import PinnedRoster
from securetm.sessions.names import NamesCoordinatorExchange, NamesDisagree
from securetm.sessions.session_memory import SessionMemory

if TYPE_CHECKING:
    from securetm.federation.coordinator.rounds import Rounds

TOLD = "words told at the end"  # in the coordinator's store
SUM_OF_BUCKETS = "sum-of-buckets-{}"


def columns(rounds: Rounds) -> tuple[str, ...]:
    """The names of the run's columns, in order. Sets the number of documents, or the shares of the columns."""
    # The parties share a key that this role does not know. A party that has the key of this run brings that one.
    register, secret = _register(rounds), words_key()
    setup = SecretCoordinatorSetup(register, secret, SessionMemory(rounds.store, register.hash))
    rounds.share(SHARE_KEY, {}, setup, secret.longest(len(rounds.members))[0])
    return _noised(rounds) if rounds.questions.paid else _named(rounds)


def _named(rounds: Rounds) -> tuple[str, ...]:
    """Columns in enough documents, not too many, and at enough parties, each of one word that a party named.

    Where the parties open the sums this role does not even see where the columns lie. It counts them.
    """
    opened = OpenedWords(rounds.agreement.plan.vocabulary, rounds.questions.buckets)
    for question, about in ((BUCKETS, dict), (MARKS, opened.about_marks)):
        answer = rounds.ask(question, about(), keep=True)
        if not rounds.parties_open:
            opened.take(question, answer)
    rounds.documents = opened.documents
    if rounds.parties_open:
        return tuple(map(cell_name, range(len(_tell_names(rounds, {}, rounds.agreement.plan.vocabulary.max_words)))))
    cells = opened.found.cells
    if len(cells) < 2:
        raise _nothing_found(rounds)
    return tuple(map(cell_name, cells[_tell_names(rounds, about_names(cells, opened.found.totals), len(cells))].tolist()))


def _tell_names(rounds: Rounds, about: State, most: int) -> Array:
    """Lets the parties tell each other names, and returns which of so many columns have one."""
    exchange = NamesCoordinatorExchange(_register(rounds), bytes_of_names(most), most)
    rounds.share(SHARE_NAMES, about, exchange, names_limits(len(rounds.members), most)[0])
    named = np.flatnonzero(np.unpackbits(np.frombuffer(exchange.named, np.uint8))[:most])
    if len(named) < 2:
        raise _nothing_found(rounds)
    return named


def _noised(rounds: Rounds) -> tuple[str, ...]:
    """Columns that stand out of noised sums, but what is in too many documents. What was opened is kept before the next sum."""
    search, plan = BucketSearch(rounds.questions.buckets), rounds.agreement.plan
    for number in range(len(SHARES)):
        search.take(rounds.ask_and_keep(SUM_OF_BUCKETS.format(number), BUCKET_SUMS, search.about))
    cells, weights = search.found(plan.vocabulary.max_words)
    if plan.training.units:  # else nobody knows how many documents there are
        fine = share_of_documents(weights, plan.training.units) <= plan.vocabulary.max_share
        cells, weights = cells[fine], weights[fine]
    rounds.frequencies = weights / max(weights.sum(), 1e-300) if len(weights) else None
    return tuple(cell_name(cell) for cell in cells.tolist())


def take_words(rounds: Rounds, member: str, parcels: Sequence[Message]) -> None:
    """Takes the words of the columns from a party, where the plan says so. Where two tell other ones, neither counts."""
    words = tuple(b"\n".join(parcels).decode(errors="replace").split("\n"))
    before = rounds.store.get(TOLD)
    fine = len(words) == len(rounds.questions.vocabulary) == len(set(words)) and all(map(fits, words))
    if not fine or (before and json.loads(before) != list(words)):
        rounds.store.note("refusals", {"serial": rounds.serial, "party": member, **named(NamesDisagree(member))})
        words = ()
    rounds.store.put(TOLD, json.dumps(words).encode())


def told_words(rounds: Rounds, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The words of these columns as the parties told them at the end; the columns where nobody did, or not the same."""
    return tuple(json.loads(rounds.store.get(TOLD) or b"[]")) or columns


def _register(rounds: Rounds) -> PinnedRoster:
    return PinnedRoster(Roster(rounds.session, rounds.agreement.profile.digest, rounds.members, rounds.keys))


def _nothing_found(rounds: Rounds) -> Failed:
    choice = rounds.agreement.plan.vocabulary
    return Failed(
        "hardly any word is in {least:document|documents} and at {parties} parties",
        hint=MORE_WORDS,
        least=choice.min_documents,
        parties=FEWEST_PARTIES,
    )
