"""What a privately selected list of words does for a model that is released without noise (Manzonelli, Zhang and Vadhan 2024).

Half of the documents are members: the list is made of their words, and a model learns from them, exactly. Whoever gets both
tries to tell members from the other half: by the list alone (words on it that no other candidate has), and by the model (the
audit's likelihood ratio over shadow models, and its equations of word counts). Beside lists that were selected under an epsilon
stand exact ones of the same length, which say what of it is due to the length alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lab.federations import begun, dealt_out
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row
from lab.reproduce.common_vocabulary import noise_of
from lab.reproduce.use_and_leakage import classified
from lab.reproduce.word_policies import POLICIES
from lab.research_corpora import PUBLIC, docstrings, newsgroups_file, research_corpus
from securetm.auditing.judging import measured
from securetm.auditing.parts.membership_game import found, true_positives_at
from securetm.auditing.plans import AuditPlan, Trial, read_audit_plan
from securetm.auditing.record import Measured
from securetm.auditing.runner import audit
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune
from securetm.federation.simulation.simulation import execute
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

DOCUMENTS, PARTIES, TOPICS, ROUNDS, HELD_OUT, SHADOWS, SEED = 6_000, 5, 20, 10, 0.5, 16, 0
EPSILONS = (8.0, 3.0, 1.0)
POLICY = "iterated, hopeless words closed, 3 sums"
FALSE_ALARMS, CONFIDENCE = 0.01, 0.95
HOW = {"model": found(FALSE_ALARMS, "likelihood ratio"), "counts": found(FALSE_ALARMS, "word counts")}
EXACT, SELECTED, AS_LONG = "all words", "selected", "exact, as long as the selected one"


def reproduce(on_progress: OnProgress | None = None, keep: Path | None = None, workers: int = 1) -> Row:
    """A row for the exact list, and two for each epsilon: the selected list, and an exact one of the same length."""
    keys: list[Key] = [{"list": EXACT, "epsilon": None}]
    keys += [{"list": kind, "epsilon": epsilon} for epsilon in EPSILONS for kind in (SELECTED, AS_LONG)]
    rows = [{**key, **row} for key, row in zip(keys, made(keys, _row, KeptRows(keep), workers, on_progress), strict=True)]
    corpus, parties = _parties()
    members, others = _sides(parties)
    sizes = {"members": len(members), "others": len(others), "topics": TOPICS, "rounds": ROUNDS, "shadows": SHADOWS}
    return {"reproduction": "private-lists", "corpus": corpus.name, "policy": POLICY, "seed": SEED, **sizes, "rows": rows}


def _row(key: Key) -> Row:
    _, parties = _parties()
    members, others = _sides(parties)
    words = members.vocabulary
    if key["list"] != EXACT:  # those that noised sums over the members show
        there = POLICIES[POLICY].found(_held(members), noise_of(key["epsilon"]), np.random.default_rng(SEED))
        words = tuple(members.vocabulary[n] for n in np.flatnonzero(there))
    words = prune(members, max_words=len(words)) if key["list"] != SELECTED else words
    return {"words": len(words), **_by_list(members, others, words), **_by_model(parties, others, words)}


@cache
def _parties() -> tuple[Corpus, dict[str, Corpus]]:
    whole = research_corpus(PUBLIC[0]).replace(name="TagMyNews") if newsgroups_file() else docstrings()
    corpus = whole.select(np.sort(np.random.default_rng(SEED).permutation(len(whole))[:DOCUMENTS]))
    return corpus, dealt_out(corpus, PARTIES)


def _sides(parties: Mapping[str, Corpus]) -> tuple[Corpus, Corpus]:
    """Members and others, as a run divides each party's documents."""
    sides = [own.split(1 - HELD_OUT, SEED) for own in parties.values()]
    members, others = (Corpus.concat(side) for side in zip(*sides, strict=True))
    return members, others


def _held(documents: Corpus) -> Any:
    return sparse.csr_array(documents.counts > 0, dtype=np.float64)


def _by_list(members: Corpus, others: Corpus, words: Sequence[str]) -> Row:
    """Members told by the words on the list that no other candidate has."""
    both, listed = Corpus.concat([members, others]), frozenset(words)
    held = _held(both)
    telling = (held.sum(axis=0) == 1) & np.array([word in listed for word in both.vocabulary])
    scores = np.asarray(held @ telling.astype(np.float64))
    worth = true_positives_at(scores[: len(members)], scores[len(members) :], FALSE_ALARMS, CONFIDENCE)
    return _figures("list", measured("list", "member", worth, CONFIDENCE))


def _figures(by: str, one: Measured) -> Row:
    return {f"by_{by}": None if one.value is None else round(one.value, 4), f"by_{by}_to": round(one.high, 4)}


def _by_model(parties: Mapping[str, Corpus], others: Corpus, words: tuple[str, ...]) -> Row:
    """Members told by the model of a run over this list, and what the model is worth."""
    tables = {
        "profile": "open",
        "seed": SEED,
        "model": {"name": "lda", "n_topics": TOPICS},
        "training": {"held_out": HELD_OUT, "rounds": ROUNDS},
    }
    with begun(parties, words, tables, recorded=True) as run:
        execute(run, Unwatched())
        finished = FinishedRun.open(run.path)
        right, judged = classified(finished.transform(others), np.asarray(others.labels))
        outcomes = [one.outcome for one in audit(_attempts(), run.path, minutes=None, workers=1).findings]
    figures = {one.measure: one for outcome in outcomes for one in (outcome.measured, *outcome.beside)}
    told_by = (_figures(by, figures[measure]) for by, measure in HOW.items())
    return {"right": right, "judged": judged, **dict(pair for row in told_by for pair in row.items())}


@cache
def _attempts() -> AuditPlan:
    """A reader of the model: with shadow models, and by the counts of words."""
    plan, trials = read_audit_plan("membership"), dict[str, Trial]()
    for trial in plan.trials:
        if trial.attack in ("membership", "membership_counts"):
            shadows = {"shadows": SHADOWS} if "shadows" in trial.effort else {}
            trials.setdefault(trial.attack, dataclasses.replace(trial, effort={**trial.effort, **shadows}))
    return dataclasses.replace(plan, trials=tuple(trials.values()), refusals=(), moves=())
