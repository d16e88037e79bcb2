"""Runs that are begun below a profile's least number of documents, to see whether the parties refuse them. It attacks nothing.

A sum hides who said something, not what was said; a floor under the number of documents in it is all that `masked` sets against
that, so the floor is tried and not only quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Profile, Sampling
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune
from securetm.federation.floor import fewest_left
from securetm.federation.folder import RunFolder, Stages, begin
from securetm.federation.questions import TRAIN
from securetm.federation.refusal_errors import BelowMinimum
from securetm.federation.running_errors import PartyRefused, TooFewToTakePart
from securetm.federation.simulation import train
from securetm.federation.sources import corpora_of
from securetm.federation.store import write_bytes
from securetm.federation.transcript import Transcript
from securetm.leakage.findings import Refusal
from securetm.leakage.reading import TOTAL
from securetm.leakage.recorded import serials_of
from securetm.plans import read_plan
from securetm.profiles import cohort_of, read_profile
from securetm.wording import counted

_ANY = "open"  # whose documents are dealt out as any other's
_WORDS = 500  # of a public list
_ALL = 1000  # rounds: more than such a run has
_BY_BATCHES = {"model.name": "prodlda"}  # only of such a model can a coordinator ask for batches that are too small
_FLOORS = (BelowMinimum.__name__, TooFewToTakePart.__name__)  # refusals that the least number of documents makes


def tried_below_minimum(profile: str, settings: Mapping[str, Any], place: Path, stages: Stages) -> tuple[Refusal, ...]:
    """Begins two runs in that folder, with batches and with documents just too few; none where every sum is large enough.

    Too few is what leaves fewer than the minimum where parties drop out, even if the whole cohort's would be enough. Where
    secret coins choose the documents, nobody can ask for batches: there documents alone are made too few.
    """
    rules = read_profile(profile)
    corpora = corpora_of(read_plan(None, {**_BY_BATCHES, **settings, "profile": _ANY}), stages)
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
    """A list of words, where the profile admits nothing but a public one: those of these documents."""
    if rules.vocabularies != ("file",):
        return {}
    words = prune(Corpus.concat(list(corpora.values())), max_words=_WORDS, min_df=1)
    path = place / f"{rules.name}-words.txt"
    write_bytes(path, "\n".join(words).encode())
    return {"vocabulary.source": "file", "vocabulary.file": str(path)}


@dataclass(frozen=True)
class _Attempt:
    each: int  # documents of each party
    left: int  # parties over which a sum may be opened
    where: str


def _tried(settings: Mapping[str, Any], corpora: Mapping[str, Corpus], tried: _Attempt, place: Path, stages: Stages) -> Refusal:
    """What became of the run: who refused it, the reason that is told, and that no sum of the training was opened."""
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
    return Refusal(plan.profile, attempt, documents, minimum, held, by, reason)


def _opened(folder: RunFolder) -> int:
    """How many sums of the training were opened all the same."""
    transcript = Transcript(folder.path / "transcript", with_content=True)
    select = "SELECT COUNT(*) FROM messages WHERE serial = ? AND channel = ?"
    opened = [transcript.rows(select, serial, TOTAL)[0][0] for serial in serials_of(folder, (TRAIN,), _ALL)]
    transcript.close()
    return sum(opened)
