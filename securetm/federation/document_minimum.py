"""The least number of documents in a sum. Every party enforces its part of it, and tells nobody how many documents it has.

Parties may drop out of a round, so the fewest parties that a sum is opened over are counted.
"""

from __future__ import annotations

import numpy as np

from securetm.accounting.ledger import Ledger
from securetm.agreement import Agreement
from securetm.contracts import BlockedDocuments, Cohort, Profile, Terms, Unit
from securetm.corpus.corpus import PartyCorpus
from securetm.errors import NoPersons
from securetm.federation.paying_errors import DeltaTooLarge
from securetm.federation.refusal_errors import BelowMinimum
from securetm.federation.running_errors import NotByBlocks, TooFewToTakePart
from securetm.models.document_needs import check_needs
from securetm.models.model_errors import EmbeddingsWithoutNoise
from securetm.profiles import cohort_of

_FEW = 50  # words, of which a model is made to see what it asks


def check_batch(terms: Terms, profile: Profile, cohort: Cohort, joined: int) -> None:
    """Refuses a question whose public batches give too small a sum if parties drop out."""
    left = profile.aggregation.remaining(cohort, joined)
    if terms.batch and terms.batch * left < profile.minimum_documents:
        raise BelowMinimum(terms.batch, left, profile.minimum_documents)


def check_share(party: str, documents: PartyCorpus, profile: Profile, members: tuple[str, ...]) -> None:
    """Refuses to start a party with too few documents. A refusal would tell the coordinator a number.

    All documents that a party holds are counted, before there is any list of words: counted in the words of a list, they would
    tell which of them have these words.
    """
    left = fewest_left(profile, members)
    if len(documents) * left < profile.minimum_documents:
        raise TooFewToTakePart(party, profile.minimum_documents, left)


def check_kind(documents: PartyCorpus, agreement: Agreement) -> None:
    """Refuses documents that would add nothing to any answer, before anything is spent."""
    if agreement.unit is Unit.PERSON and documents.persons is None:
        raise NoPersons()
    if agreement.unit is Unit.WORD and agreement.model.embedding_size:
        raise EmbeddingsWithoutNoise(agreement.model.name, agreement.profile.name)
    check_needs(agreement.model, documents)


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


def check_delta(party: str, documents: PartyCorpus, profile: Profile, ledger: Ledger | None) -> None:
    """Refuses a delta of 1 / n or more for n documents: it would allow to publish one of them whole."""
    if profile.budget is None or len(documents) == 0:
        return
    by_person = documents.persons if profile.budget.unit is Unit.PERSON else None
    units = len(documents) if by_person is None else len(np.unique(by_person))
    units = int(documents.lengths().sum()) if profile.budget.unit is Unit.WORD else units
    delta = max(profile.budget.delta, ledger.budget.delta if ledger else 0.0)
    if delta * units >= 1:
        raise DeltaTooLarge(party, delta, units, profile.budget.unit.value)
