"""Compiles questions, and names rounds, questions and set-ups: by hashes that are equal only if two roles mean the same.

Both roles use it. It sends nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import Enum
from typing import Any

import numpy as np

from securetm.answers.route import Route, compile_route
from securetm.contracts import Cohort, Least, Needs, Query, State, Terms
from securetm.federation.questions import Questions
from securetm.federation.wire import wire
from securetm.plans.profiles import cohort_of
from securetm.settings import digest


def compile_question(
    questions: Questions, session: bytes, ask: wire.Ask, about: State, keys: Mapping[str, bytes]
) -> tuple[Query, Route, Cohort]:
    """Returns the query, its route, and the cohort with the round id that both roles must compute for this message.

    The question is `about` this state. The message has no state where the parties hold their own. `keys` are the members'
    public keys, from the role's own roster.
    """
    agreement = questions.agreement
    query = questions.make(ask.question, about)
    named = question_identity(ask.question, ask.number, query.terms)
    who = {"identities": tuple(keys.get(member, b"") for member in ask.members)}
    meant_by: dict[str, Any] = {**who, "least": Least(ask.least_parties, ask.least_documents), "question": named}
    cohort = cohort_of(agreement.profile, ask.members, number=ask.number, seed=agreement.plan.seed, **meant_by)
    route = compile_route(query.terms, agreement.profile, cohort)
    meant = (agreement.profile.digest, state_digest(ask.state, route.terms), questions.words(ask.question))
    identity = round_identity(session, ask.question, cohort, ask.serial, route.terms, *meant)
    return query, route, replace(cohort, round_id=identity)


def round_identity(
    session: bytes, question: str, cohort: Cohort, serial: int, terms: Terms, under: bytes, about: bytes, words: bytes
) -> bytes:
    """Returns the round id. It binds the question, cohort, profile (`under`), state (`about`) and words.

    The cohort is its members' names and public keys, and what their sum must hold at least.
    """
    promised = {name: _plain(value) for name, value in asdict(terms).items()}
    least = [cohort.threshold, cohort.least.parties, cohort.least.documents]
    who = [list(cohort.who), *least, cohort.colluding, cohort.seed]
    return digest([session.hex(), question, cohort.number, serial, who, promised, under.hex(), about.hex(), words.hex()])


def question_identity(question: str, number: int, terms: Terms) -> bytes:
    """Returns the name of a question: the same in every session, and about the corpus alone also at every number."""
    return digest([question, None if terms.data_only else number])


def preparation_identity(session: bytes, number: int, rounds: int) -> bytes:
    """Returns the name of one set-up of the aggregation."""
    return digest([session.hex(), "prepare", number, rounds])


def _plain(value: Any) -> Any:
    """Returns a value that JSON can hold: infinity as text, a choice as its name."""
    return value.value if isinstance(value, Enum) else str(value) if isinstance(value, float) else value


def state_digest(state: State, terms: Terms) -> bytes:
    """Returns the hash of the state that a question is about.

    Where a sum is asked for, a coordinator that shows two parties different states gets two round ids and no sum. Where each
    answer is used by itself, the states may differ.
    """
    return b"" if terms.needs is Needs.EACH else digest_of_arrays(state)


def digest_of_arrays(state: State) -> bytes:
    """Returns the hash of named arrays, with their types and shapes."""
    whole = hashlib.sha256()
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        whole.update(f"{name} {array.dtype.str} {array.shape};".encode())
        whole.update(array.data)
    return whole.digest()
