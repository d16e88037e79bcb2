"""The least number of documents in a sum. Every party enforces its part of it, and tells nobody how many documents it has.

Parties may drop out of a round, so the fewest parties that a sum is opened over are counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from securetm.accounting.delta_limits import is_too_large, sentence_delta
from securetm.contracts import Array, BlockedDocuments, Cohort, Profile, Terms, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import CohortTooSmall, Mistake, Misuse, NoPersons
from securetm.federation.refusal_errors import BelowMinimum, TooFewDocumentsPromised
from securetm.models.given_documents import check_needs
from securetm.plans.agreement import Agreement
from securetm.plans.party_file import PolicyChoice
from securetm.plans.profiles import cohort_of
from securetm.plans.reading import EmbeddingsWithoutNoise

_FEW = 50  # words, of which a model is made to see what it asks


class NotByBlocks(Misuse):
    """{party} reads its documents from disk, block by block, and {what} needs all of them in memory at once"""

    party: str
    what: str
    hint = "take another model or profile, or give the party as many documents as fit into memory"


class DeltaTooLarge(Misuse):
    """{party}: a delta of {delta} is not below 1 / {units}, and would allow to publish one {unit} of them whole"""

    party: str
    delta: float
    units: int
    unit: str
    hint = (
        "set [privacy] delta to a tenth of 1 / (number of {unit}s of all parties), or less; {units:,} is the least number of "
        "them that is known here, from these documents and the roster"
    )


class TooFewToTakePart(Misuse):
    """{party} has too few documents to take part: with as many from {left} parties, a sum would hold fewer than {need}"""

    party: str
    need: int
    left: int  # parties over which a sum may be opened, where others are missing
    hint = "join with more documents, or agree on a profile with a smaller minimum_documents"


def check_batch(terms: Terms, profile: Profile, cohort: Cohort, joined: int) -> None:
    """Refuses a question whose public batches give too small a sum if parties drop out."""
    left = profile.aggregation.remaining(cohort, joined)
    if terms.batch and terms.batch * left < profile.minimum_documents:
        raise BelowMinimum(terms.batch, left, profile.minimum_documents)


def check_demands(policy: PolicyChoice, profile: Profile, cohort: Cohort, joined: int) -> None:
    """Refuses a round in which less would be opened than this party demands of a sum with its documents.

    The round id binds what is promised, so that no honest party helps to open less: neither this one nor any other.
    """
    if (left := profile.aggregation.remaining(cohort, joined)) < policy.least_parties:
        raise CohortTooSmall(left, policy.least_parties)
    if (promised := max(cohort.least.documents, profile.minimum_documents)) < policy.least_documents:
        raise TooFewDocumentsPromised(promised, policy.least_documents)


def check_share(party: str, documents: Corpus, profile: Profile, members: tuple[str, ...]) -> None:
    """Refuses to start a party with too few documents. A refusal would tell the coordinator a number.

    All documents that a party holds are counted, before there is any list of words: counted in the words of a list, they would
    tell which of them have these words.
    """
    left = fewest_left(profile, members)
    if len(documents) * left < profile.minimum_documents:
        raise TooFewToTakePart(party, profile.minimum_documents, left)


def check_kind(documents: Corpus, agreement: Agreement) -> None:
    """Refuses documents that would add nothing to any answer, before anything is spent."""
    if agreement.unit is Unit.PERSON and documents.persons is None:
        raise NoPersons()
    if agreement.unit is Unit.WORD and agreement.model.embedding_size:
        raise EmbeddingsWithoutNoise(agreement.model.name, agreement.profile.name)
    check_needs(agreement.model, documents)


def check_whole_persons(corpora: Mapping[str, Corpus], agreement: Agreement) -> None:
    """Refuses a simulation in which persons stand at several parties, each of which would bound their documents apart.

    Between organisations nobody can see it: there a person at m parties has m times the budget.
    """
    if agreement.budget is None or agreement.unit is not Unit.PERSON:
        return
    met: dict[str, list[Array]] = {}
    for corpus in corpora.values():
        if corpus.persons is not None and corpus.people:  # without a numbering, nobody knows who is whose
            met.setdefault(corpus.people, []).append(np.unique(corpus.persons))
    divided = 0
    for numbers in met.values():  # equal numbers of one numbering are one person
        _, parties = np.unique(np.concatenate(numbers), return_counts=True)
        divided += int((parties > 1).sum())
    if divided:
        raise Mistake(
            "{persons:person has|persons have} documents at several parties, and the budget is each person's at one party",
            hint="deal out whole persons (--partition equal or dirichlet), or give all documents of a person to one party; "
            "where that cannot be, a person at m parties has m times the budget: protect single documents "
            "(--set privacy.unit=document)",
            persons=divided,
        )


def check_blocks(party: str, documents: BlockedDocuments, agreement: Agreement) -> None:
    """Refuses to start a party whose documents are in blocks on disk where all of them are needed at once.

    Later it would tell the coordinator a number: whether they fit into memory.
    """
    if not by_shard(documents):
        return
    if any(mechanism.count_noise(1) is not None for mechanism in agreement.profile.mechanisms):
        raise NotByBlocks(party, f"profile {agreement.profile.name!r}, with noise in every word,")
    model = agreement.model
    begun = model.start(agreement.longest_list[:_FEW], np.random.default_rng(0))
    if model.query(model.for_party(begun, party)).terms.at_once:
        raise NotByBlocks(party, f"model {model.name!r} with these settings")


def by_shard(documents: BlockedDocuments) -> bool:
    """Whether documents are in several blocks on disk."""
    blocks = documents.blocks()
    return len(blocks) > 1 and bool(blocks[0].shard)


def fewest_left(profile: Profile, members: tuple[str, ...]) -> int:
    """Returns the number of parties in the smallest sum that the coordinator can ask for."""
    return profile.aggregation.remaining(cohort_of(profile, members[: profile.minimum_parties]), len(members))


def documents_held(profile: Profile, members: tuple[str, ...], holds: Mapping[str, int]) -> Mapping[str, int]:
    """Returns how many documents each member has at least: as the roster says, or the share without which none starts.

    Where documents name persons the roster counts persons, and each of them has a document.
    """
    share = -(-profile.minimum_documents // fewest_left(profile, members))
    return {member: max(holds.get(member, 0), share) for member in members}


def units_of(documents: Corpus, unit: Unit) -> int:
    """Returns how many units of that kind these documents are: documents, persons, or occurrences of words."""
    if unit is Unit.WORD:
        return int(documents.lengths().sum())
    by_person = documents.persons if unit is Unit.PERSON else None
    return len(documents) if by_person is None else len(np.unique(by_person))


def others_hold(party: str, holds: Mapping[str, int], profile: Profile, members: tuple[str, ...]) -> int:
    """Returns how many units all other parties hold at least: as the roster says, or as many as the profile asks of each."""
    if profile.budget is None:
        return 0
    held = holds if profile.budget.unit is Unit.PERSON else documents_held(profile, members, holds)
    return sum(held.get(name, 0) for name in members if name != party)


def check_delta(whose: str, units: int, profile: Profile, *deltas: float) -> None:
    """Refuses a delta, of the profile or of a ledger, of 1 / N or more for the N units of all parties that `whose` facts show.

    It would allow to publish one of them whole.
    """
    if profile.budget is not None and is_too_large(delta := max(profile.budget.delta, *deltas, 0.0), units):
        raise DeltaTooLarge(whose, delta, units, profile.budget.unit.value)


def delta_said(agreement: Agreement, units: int) -> str | None:
    """Returns the sentence about a delta that is above a tenth of 1 / N; nothing below that, or without a budget."""
    budget = agreement.budget
    return None if budget is None else sentence_delta(budget.delta, units, budget.unit.value)


def check_holds(party: str, documents: Corpus, holds: int, unit: Unit) -> None:
    """Refuses to start a party that holds less than the roster says: the others judge delta by that number."""
    if units_of(documents, unit) < holds:
        raise Mistake(
            "{party} holds fewer than the {holds:,} that the roster says it holds at least, counted by {unit}",
            hint="say the smaller number (securetm keys request --holds N), and let the coordinator's operator make the next "
            "roster; the others judge delta by it",
            party=party,
            holds=holds,
            unit=unit.value,
        )
