"""The least number of documents in any sum, as every party enforces its part of it. What a party has, nobody is told.

Parties may drop out of a round, so it is counted for as few of them as a sum is ever opened over.
"""

from __future__ import annotations

import numpy as np

from securetm.accounting.ledger import Ledger
from securetm.agreement import Agreement
from securetm.contracts import Cohort, Profile, Reads, Terms, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import NoPersons
from securetm.federation.paying_errors import DeltaTooLarge
from securetm.federation.refusal_errors import BelowMinimum
from securetm.federation.running_errors import TooFewToTakePart
from securetm.models.model_errors import NoSentences
from securetm.profiles import cohort_of


def check_batch(terms: Terms, profile: Profile, cohort: Cohort, joined: int) -> None:
    """Refuses a question whose batches, which are public, give too small a sum if parties are missing."""
    left = profile.aggregation.remaining(cohort, joined)
    if terms.batch and terms.batch * left < profile.minimum_documents:
        raise BelowMinimum(terms.batch, left, profile.minimum_documents)


def check_share(party: str, documents: Corpus, profile: Profile, members: tuple[str, ...]) -> None:
    """Said to this party's own user and not to the coordinator, whom a refusal would tell how many documents there are.

    All documents that a party holds are counted, before there is any list of words: counted in the words of a list, they would
    tell which of them have these words.
    """
    left = fewest_left(profile, members)
    if len(documents) * left < profile.minimum_documents:
        raise TooFewToTakePart(party, profile.minimum_documents, left)


def check_kind(documents: Corpus, agreement: Agreement) -> None:
    """Said to this party's own user before anything is spent: such documents would add nothing to any answer."""
    if agreement.unit is Unit.PERSON and documents.persons is None:
        raise NoPersons()
    if Reads.SENTENCES in agreement.model.reads and documents.sentence_ends is None:
        raise NoSentences()


def fewest_left(profile: Profile, members: tuple[str, ...]) -> int:
    """Parties in the smallest sum that the coordinator can ask for, by asking no more of them than it must."""
    return profile.aggregation.remaining(cohort_of(profile, members[: profile.minimum_parties]), len(members))


def check_delta(party: str, documents: Corpus, profile: Profile, ledger: Ledger | None) -> None:
    """A delta of 1 / n would allow to publish one of n documents whole; said to this party's own user only."""
    if profile.budget is None or len(documents) == 0:
        return
    by_person = documents.persons if profile.budget.unit is Unit.PERSON else None
    units = len(documents) if by_person is None else len(np.unique(by_person))
    units = int(documents.lengths().sum()) if profile.budget.unit is Unit.WORD else units
    delta = max(profile.budget.delta, ledger.budget.delta if ledger else 0.0)
    if delta * units >= 1:
        raise DeltaTooLarge(party, delta, units, profile.budget.unit.value)
