"""Begins runs below a profile's least number of documents, to test whether the parties refuse them. It attacks nothing.

A sum hides which party sent something, not what was sent. The profile `masked` limits that only by the least number of
documents in a sum, so an audit tests this limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from securetm.auditing.reading import TOTAL
from securetm.auditing.recorded import serials_of
from securetm.auditing.refusal_record import RefusalRecord
from securetm.contracts import Profile, Sampling
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune
from securetm.federation.document_minimum import fewest_left
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import TRAIN
from securetm.federation.refusal_errors import BelowMinimum
from securetm.federation.running_errors import PartyRefused, TooFewToTakePart
from securetm.federation.simulation.simulation import train
from securetm.federation.sources import corpora_of
from securetm.federation.store import write_bytes
from securetm.federation.transcript import Transcript
from securetm.plans.profiles import cohort_of, read_profile
from securetm.plans.reading import read_plan
from securetm.stages import Stages
from securetm.wording import counted

_ANY = "open"  # the documents are the same in every profile
_WORDS = 500  # of a public list
_ALL = 1000  # rounds, more than such a run has
_BY_BATCHES = {"model.name": "prodlda"}  # a coordinator can ask this model for batches that are too small
_FLOORS = (BelowMinimum.__name__, TooFewToTakePart.__name__)  # refusals because of the least number of documents


def tried_below_minimum(profile: str, settings: Mapping[str, Any], place: Path, stages: Stages) -> tuple[RefusalRecord, ...]:
    """Begins two runs in that folder, one with too small batches and one with too few documents.

    Too few means fewer than the minimum after dropouts, even if the whole cohort has enough. Where secret coins choose the
    documents, a coordinator cannot ask for batches, so only the second run is begun. No run is begun if every sum is large
    enough.
    """
    rules = read_profile(profile)
    found = corpora_of(read_plan(None, {**_BY_BATCHES, **settings, "profile": _ANY}), stages)
    corpora: dict[str, Corpus] = {name: corpus.gathered() for name, corpus in found.items()}
    left = rules.aggregation.remaining(cohort_of(rules, tuple(corpora)), len(corpora))
    each, least = (rules.minimum_documents - 1) // left, fewest_left(rules, tuple(corpora))
    few = (rules.minimum_documents - 1) // least
    if each < 1:
        return ()
    cut = {name: corpus.select(np.arange(min(few, len(corpus)))) for name, corpus in corpora.items()}
    some = {**_BY_BATCHES, **settings, **_listed(rules, corpora, place), "profile": profile, "training.rounds": 1}
    batches, documents = place / f"{profile}-small-batches", place / f"{profile}-few-documents"
    last = _tried({**some, "model.batch": rules.minimum_documents}, cut, _Attempt(few, least, "in all"), documents, stages)
    if any(part.sampling is Sampling.COINS for part in rules.mechanisms):
        return (last,)
    return _tried({**some, "model.batch": each}, corpora, _Attempt(each, left, "in each answer"), batches, stages), last


def _listed(rules: Profile, corpora: Mapping[str, Corpus], place: Path) -> Mapping[str, Any]:
    """The words of these documents as a public list, if the profile admits no other source."""
    if rules.vocabularies != ("file",):
        return {}
    words = prune(Corpus.concat(list(corpora.values())), max_words=_WORDS, min_df=1)
    path = place / f"{rules.name}-words.txt"
    write_bytes(path, "\n".join(words).encode())
    reason = "words of the audit, which tries refusals and claims no budget"
    return {"vocabulary.source": "file", "vocabulary.file": str(path), "origins.vocabulary": reason}


@dataclass(frozen=True)
class _Attempt:
    each: int  # documents of each party
    left: int  # parties over which a sum may be opened
    where: str


def _tried(
    settings: Mapping[str, Any], corpora: Mapping[str, Corpus], tried: _Attempt, place: Path, stages: Stages
) -> RefusalRecord:
    """The outcome of the run: who refused it, the reason, and whether any sum of the training was opened."""
    plan = read_plan(None, settings)
    documents = sum(sorted(min(tried.each, len(corpus)) for corpus in corpora.values())[: tried.left])
    each = f"{counted(tried.each, 'document')} of each of {len(corpora)} parties {tried.where}"
    attempt = f"{each}, {documents} in a sum over {tried.left} of them"
    folder = begin(place, plan, corpora, with_content=True)
    minimum, by, reason = folder.agreement.profile.minimum_documents, "", ""
    try:
        train(folder, stages)
    except PartyRefused as refused:
        by, reason = refused.party, refused.reason
    except TooFewToTakePart as refused:
        by, reason = refused.party, type(refused).__name__
    held = reason in _FLOORS and not _opened(folder)
    return RefusalRecord(plan.profile, attempt, documents, minimum, held, by, reason)


def _opened(folder: RunFolder) -> int:
    """How many sums of the training were opened."""
    transcript = Transcript(folder.path / "transcript", with_content=True)
    select = "SELECT COUNT(*) FROM messages WHERE serial = ? AND channel = ?"
    opened = [transcript.rows(select, serial, TOTAL)[0][0] for serial in serials_of(folder, (TRAIN,), _ALL)]
    transcript.close()
    return sum(opened)
