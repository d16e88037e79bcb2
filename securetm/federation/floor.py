"""The least number of documents in any sum, as every party enforces its part of it. What a party has, nobody is told.

Parties may drop out of a round, so it is counted for as few of them as a sum is ever opened over.
"""

from __future__ import annotations

from securetm.contracts import Cohort, Profile, Terms
from securetm.corpus.corpus import Corpus
from securetm.errors import BelowMinimum, TooFewToTakePart
from securetm.profiles import cohort_of


def check_batch(terms: Terms, profile: Profile, cohort: Cohort, joined: int) -> None:
    """Refuses a question whose batches, which are public, give too small a sum if parties are missing."""
    left = profile.aggregation.remaining(cohort, joined)
    if terms.batch and terms.batch * left < profile.minimum_documents:
        raise BelowMinimum(terms.batch, left, profile.minimum_documents)


def check_share(party: str, documents: Corpus, profile: Profile, members: tuple[str, ...]) -> None:
    """Said to this party's own user and not to the coordinator, whom a refusal would tell how many documents there are."""
    left = fewest_left(profile, members)
    if len(documents) * left < profile.minimum_documents:
        raise TooFewToTakePart(party, profile.minimum_documents, left)


def every_party_counts(profile: Profile, members: tuple[str, ...]) -> bool:
    """Whether the minimum asks anything of each party."""
    return profile.minimum_documents > fewest_left(profile, members)


def fewest_left(profile: Profile, members: tuple[str, ...]) -> int:
    """Parties in the smallest sum that the coordinator can ask for, by asking no more of them than it must."""
    return profile.aggregation.remaining(cohort_of(profile, members[: profile.minimum_parties]), len(members))
