"""Which missing noise can an audit of one run refute? Canaries in federations with all of their noise, and with less of it.

Every row is one federation of five parties. It claims an epsilon of 4, and its noise is the stated share of what that needs.
Beside what each bound shows stands what it shows of an ideal attacker, who sees each canary alone behind that noise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lab.federations import begun, dealt_out
from lab.keeping import KeptRows, Key, made
from lab.measuring import OnProgress, Row
from lab.research_corpora import most_frequent, read_newsgroups
from securetm.auditing.attack import Estimate
from securetm.auditing.attacks.one_run import (
    BY_CURVE,
    BY_SCORES,
    ONE_RUN_CURVE,
    best_guesses,
    canary_scores,
    guessed,
    ideal_curve,
    ideal_scores,
    judge_scores,
    pose,
)
from securetm.auditing.ground_truth import RECORD, ground_truth_of, with_canaries
from securetm.auditing.parts.empirical_epsilon import gaussian_epsilon, gaussian_mu, ideal_one_run, one_run_epsilon
from securetm.auditing.recorded import questions_of, view_of
from securetm.auditing.verdicts import corrected
from securetm.auditing.views import NotTestable
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.federation.simulation.result import spent_by
from securetm.federation.simulation.simulation import train
from securetm.stages import Unwatched
from securetm.threats import read_threat_model

EPSILON, DELTA, CONFIDENCE = 4.0, 1e-5, 0.95
PARTIES, TOPICS, CANARIES, DOCUMENTS = 5, 20, 1_000, 2_000
DIFFERENT = 6  # words of a canary: enough to fill a row up to the clip, and few enough that canaries seldom meet
SHARES = (1.0, 0.5, 0.25, 0.1)
WORDS: Mapping[str, int] = {"lda-vi": 1_000, "moments": 400}
ROUNDS: Mapping[str, int] = {"lda-vi": 3, "moments": 1}
RADIUS: Mapping[str, float] = {"lda-vi": 2.0, "moments": 1.0}
WHO: Mapping[str, tuple[str, str]] = {  # who looks: the threat model, and its adversary
    "dp-distributed": ("private_answers", "coordinator"),
    "fortress": ("private_answers", "coordinator"),
    "dp-central": ("model_reader", "party"),
}
_UNPAID = "the run ended before its first round: no account proves an epsilon for so little noise, so no ledger pays for it"
_WITHOUT = 1e6  # the budget of a run that has less noise than it claims: its own ledger must not stop it


def reproduce(
    on_progress: OnProgress | None = None,
    models: Sequence[str] = tuple(WORDS),
    profiles: Sequence[str] = ("dp-distributed", "fortress"),
    canaries: int = CANARIES,
    documents: int = DOCUMENTS,
    runs: int = 1,
    keep: Path | None = None,
    workers: int = 1,
) -> Row:
    """Trains and audits each federation `runs` times."""
    keys = [
        {"model": model, "profile": profile, "share": share, "run": run, "canaries": canaries, "documents": documents}
        for profile in profiles
        for model in models
        for share in SHARES
        for run in range(runs)
    ]
    rows = made(keys, row, KeptRows(keep), workers, on_progress)
    facts: Row = {"epsilon": EPSILON, "delta": DELTA, "confidence": CONFIDENCE, "parties": PARTIES, "topics": TOPICS}
    return {"reproduction": "one-run-audits", **facts, "ceilings": ceilings(canaries), "rows": rows}


def ceilings(canaries: int) -> list[Row]:
    """What an ideal attacker shows on average of a run with each share of its noise, by each bound."""
    sure = corrected(CONFIDENCE, 2)
    made_by_curve, claim = best_guesses(canaries, EPSILON, DELTA, sure), gaussian_mu(EPSILON, DELTA)
    return [
        {
            "share": share,
            "epsilon": round(gaussian_epsilon(claim / share, DELTA), 2),
            "nothing_assumed": round(ideal_one_run(canaries, gaussian_epsilon(claim / share, DELTA), DELTA, sure)[1], 2),
            "by_curve": round(gaussian_epsilon(ideal_curve(canaries, made_by_curve, claim / share, sure), DELTA), 2),
            "by_scores": round(gaussian_epsilon(ideal_scores(canaries, claim / share, sure), DELTA), 2),
        }
        for share in SHARES
    ]


def row(key: Key) -> Row:
    """One run with that share of its noise, what its ledger says of it, and what each bound shows."""
    model, profile = key["model"], key["profile"]
    parties, words = _documents(key["documents"], WORDS[model])
    put, record = with_canaries(parties, key["canaries"] // PARTIES, key["run"], words, different=DIFFERENT)
    tables: dict[str, Any] = {
        "seed": key["run"],
        "profile": profile,
        "model": {"name": model, "n_topics": TOPICS},
        "training": {"rounds": ROUNDS[model], "held_out": 0.01},
        "privacy": {"epsilon": EPSILON, "delta": DELTA, "radius": RADIUS[model]},
    }
    with begun(put, words, tables) as honest:
        noise = honest.agreement.plan.privacy.noise * key["share"]
    tables["privacy"] |= {"noise": noise, "epsilon": _WITHOUT}
    with begun(put, words, tables, recorded=True) as run:
        begin = time.perf_counter()
        rounds = train(run, Unwatched()).rounds
        trained = time.perf_counter()
        record.save(run.path / RECORD)
        shown = _shown(run, profile, key["canaries"]) if rounds else {"missing": _UNPAID}
        spent = spent_by(run, run.members[0])["epsilon"]
        cost = {"train_seconds": round(trained - begin, 1), "audit_seconds": round(time.perf_counter() - trained, 1)}
    return {**key, "noise": round(noise, 4), "rounds": rounds, "spent": round(spent, 2), **cost, **shown}


@cache
def _documents(documents: int, words: int) -> tuple[Mapping[str, Corpus], tuple[str, ...]]:
    """So many documents of 20 Newsgroups in the most frequent words, among the parties."""
    raw = most_frequent(read_newsgroups(), words)
    some = raw.select(np.random.default_rng(0).permutation(len(raw))[:documents])
    return dealt_out(some, PARTIES), some.vocabulary


def _shown(run: RunFolder, profile: str, canaries: int) -> Row:
    """The bounds of this run, and which of them lies above the claim."""
    threats, name = WHO[profile]
    rounds = run.agreement.plan.training.rounds
    view = view_of(run, read_threat_model(threats).adversary(name), ONE_RUN_CURVE, rounds)
    truth = ground_truth_of(run, questions_of(run, ONE_RUN_CURVE.questions, rounds).values())
    assert truth.claimed is not None
    truth = replace(truth, confidence=CONFIDENCE, claimed=replace(truth.claimed, epsilon=EPSILON, delta=DELTA))
    posed = pose(truth, {}, np.random.default_rng(0))
    try:
        found = guessed(canary_scores(replace(view, question=posed.question)), EPSILON, DELTA, CONFIDENCE)
    except NotTestable as problem:
        return {"sees": name, "missing": problem.why}
    measures = judge_scores(found, replace(truth, answer=posed.answer)).measures
    by_curve, by_scores = measures[BY_CURVE], measures[BY_SCORES]
    assert isinstance(by_curve, Estimate)
    assert isinstance(by_scores, Estimate)
    # the older bound, on as many guesses as it is best with
    half = ideal_one_run(canaries, 2 * EPSILON, DELTA, corrected(CONFIDENCE, 2))[0] // 2
    order, coins = np.argsort(found.scores, kind="stable"), posed.answer
    right = int(coins[order[len(found.scores) - half :]].sum() + (~coins[order[:half]]).sum())
    shown = {
        "nothing_assumed": one_run_epsilon(canaries, 2 * half, right, DELTA, corrected(CONFIDENCE, 2)),
        "by_curve": by_curve.low,
        "by_scores": by_scores.low,
    }
    refuted = [bound for bound, low in shown.items() if low > EPSILON]
    return {"sees": name, **{bound: round(low, 2) for bound, low in shown.items()}, "refuted_by": refuted}
