"""What each protection costs in use, and what attacks still get: recorded runs of many profiles and models, each audited.

Use is how well a classifier tells the labels of documents that nobody trained on from their topics, over the best model
without protection. Leakage is what the best attack of a kind gets of the very run, over guessing. Half of the documents are
held out, and among these and as many members the attacker tells members. Where no attack of a kind is made for a model, or
finds nothing to try, the run has no point.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.linear_model import LogisticRegression

from lab.federations import begun, dealt_out
from lab.keeping import KeptRows, Key, fits, made
from lab.measuring import OnProgress, Row
from lab.reproduce.noise_frontiers import prodlda
from lab.research_corpora import FILE, PUBLIC, research_corpus
from securetm.auditing.plans import AuditPlan, read_audit_plan
from securetm.auditing.record import Finding, Measured
from securetm.auditing.runner import audit
from securetm.corpus.corpus import Corpus
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.corpus.tokeniser import prune
from securetm.errors import BadSetting
from securetm.federation.simulation.simulation import execute
from securetm.runs.finished import FinishedRun, documents_of_run, held_out_rows
from securetm.stages import Unwatched

CORPORA: Mapping[str, tuple[str, int]] = {"StackOverflow titles": (PUBLIC[1], 10_000), "20 Newsgroups": (FILE, 8_000)}
PARTIES, TOPICS, WORDS, HELD_OUT, DELTA = 5, 20, 800, 0.5, 1e-5
RARE_WORDS, RARE = 400, (2, 3)  # words of the list that so many of the other documents have
MODEL_ROUNDS: Mapping[str, int] = {"semantic": 8, "moments": 1, "lda": 30}  # without a budget
OPEN, SHADOWS = "open", 10  # models that the attacker trains
IN_WORDS = "iftm"  # its noise is in the documents' words: a model trains as without a budget, and embeddings are refused
PROTECTIONS: Mapping[str, tuple[str, float]] = {  # the profile and its epsilon
    OPEN: (OPEN, 0.0),
    **{profile: (profile, 0.0) for profile in ("masked", "masked_strict", "bfv", "ckks")},
    **{f"dp-central, epsilon {epsilon:g}": ("dp-central", epsilon) for epsilon in (1.0, 3.0)},
    **{f"dp-distributed, epsilon {epsilon:g}": ("dp-distributed", epsilon) for epsilon in (1.0, 3.0, 8.0)},
    "fortress, epsilon 3": ("fortress", 3.0),
    "dp-local, epsilon 8": ("dp-local", 8.0),
    "iftm, epsilon 8 a word": (IN_WORDS, 8.0),
}
NETWORK, NETWORK_ROUNDS, NETWORK_RATE = "prodlda", 600, 0.01  # without a budget; with one as in `privacy-utility`
NOT_TRIED = {  # `iftm` takes no embeddings; under the others, which open the sums of `masked`, a network takes long
    ("semantic", IN_WORDS), *((NETWORK, profile) for profile in ("masked_strict", "bfv", "ckks")),
}  # fmt: skip
READER = "model reader"  # who has the model alone; texts are looked for by roles of the run, who see its sums
TEXTS, MEMBERS, MEMBERS_SELDOM = "texts", "members", "members_at_0.1_percent"
FALSE_ALARMS: Mapping[str, float] = {MEMBERS: 0.01, MEMBERS_SELDOM: 0.001}  # the last takes some 3,700 others to judge
MEASURES: Mapping[str, tuple[str, ...]] = {  # by what an attack looks for: what documents say, or who took part
    TEXTS: (
        "documents recovered exactly",
        "documents whose own words are put together",
        "documents of a round that are named in the pool",
        "named documents that took part",
        "words of one document alone whose nearest row is of the same document",
        "rare words whose likeliest companion is of the same document",
    ),
    **{
        kind: tuple(
            f"members told at {100 * share:g} % false alarms ({how})" for how in ("likelihood ratio", "loss", "word counts")
        )
        for kind, share in FALSE_ALARMS.items()
    },
}
ATTACKS = (
    "centre_difference", "centre_inversion", "centre_updates", "decoder_inversion", "embedding_inversion",
    "embedding_sum_inversion", "gradient_inversion", "membership", "membership_counts",
    "rare_documents", "rare_rows", "sum_inversion", "update_inversion",
)  # fmt: skip


def reproduce(
    on_progress: OnProgress | None = None, only: Sequence[str] = (), keep: Path | None = None, workers: int = 1
) -> Row:
    """Every model under every protection that takes it, on both corpora; `only` makes some of them."""
    keys: list[Key] = [
        {"corpus": corpus, "model": model, "protection": protection}
        for corpus, model, protection in product(CORPORA, (*MODEL_ROUNDS, NETWORK), PROTECTIONS)
        if (model, PROTECTIONS[protection][0]) not in NOT_TRIED
    ]
    wanted = [key for key in keys if fits(key, only, "use-and-leakage")]
    if not wanted:
        raise BadSetting("use-and-leakage", "--only", " ".join(only), "fits no case")
    rows = [{**key, **row} for key, row in zip(wanted, made(wanted, _row, KeptRows(keep), workers, on_progress), strict=True)]
    facts = {"parties": PARTIES, "topics": TOPICS, "words": WORDS, "held_out": HELD_OUT, "delta": DELTA}
    rows = [with_ratio(row, rows) for row in rows]
    sizes = {"documents": {corpus: documents for corpus, (_, documents) in CORPORA.items()}, "rounds": dict(MODEL_ROUNDS)}
    return {"reproduction": "use-and-leakage", **facts, **sizes, "rows": rows, "plots": plots(rows)}


# ---- one run -----------------------------------------------------------------------------------------------------------


@cache
def _labelled(name: str, embedded: bool) -> tuple[Corpus, tuple[str, ...]]:
    """The documents, with embeddings if asked for; and a public list, made of as many others of the same kind.

    It has their most frequent words, and rare ones, as a dictionary has: what a single document says shows in these.
    """
    file, documents = CORPORA[name]
    corpus = research_corpus(file, embed=TextEmbedder().embed if embedded else None)
    order = np.random.default_rng(0).permutation(len(corpus))
    ours, others = (np.sort(part) for part in (order[:documents], order[documents : 2 * documents]))
    public = corpus.select(others)
    held = np.bincount(public.counts.indices, minlength=len(public.vocabulary))
    rare = np.random.default_rng(1).permutation(np.flatnonzero((held == RARE[0]) | (held == RARE[1])))[:RARE_WORDS]
    words = dict.fromkeys((*prune(public, max_words=WORDS), *(public.vocabulary[word] for word in rare)))
    return corpus.select(ours), tuple(words)


def of_documents(protection: str) -> bool:
    """Whether it gives each document a budget."""
    profile, epsilon = PROTECTIONS[protection]
    return epsilon > 0 and profile != IN_WORDS


def tables_of(key: Key) -> dict[str, Any]:
    """The run's plan, but for its words."""
    model, (profile, epsilon) = key["model"], PROTECTIONS[key["protection"]]
    documents = int(CORPORA[key["corpus"]][1] * (1 - HELD_OUT))
    training: dict[str, Any] = {"held_out": HELD_OUT, "documents": documents}
    settings: dict[str, Any] = {"name": model, "n_topics": TOPICS}
    budgeted = of_documents(key["protection"])
    privacy = {"epsilon": epsilon, **({"delta": DELTA} if budgeted else {})} if epsilon else {}
    if model == NETWORK and budgeted:
        design = prodlda(documents)
        training |= {"rounds": design.rounds, "start": "plain"}
        settings |= design.models[NETWORK]
        privacy |= design.privacy
    elif model == NETWORK:
        training["rounds"], settings["learning_rate"] = NETWORK_ROUNDS, NETWORK_RATE
    elif not budgeted:  # under a budget the plan chooses by the number of documents
        training["rounds"] = MODEL_ROUNDS[model]
    if model == "semantic":
        training["vectors"] = "minilm"
    return {
        "profile": profile,
        "model": settings,
        "training": training,
        "privacy": privacy,
    }


def _row(key: Key) -> Row:
    corpus, words = _labelled(key["corpus"], key["model"] == "semantic")
    with begun(dealt_out(corpus, PARTIES), words, tables_of(key), recorded=True) as run:
        result = execute(run, Unwatched())
        finished = FinishedRun.open(run.path)
        documents = documents_of_run(finished)
        assert documents is not None
        unseen = documents.select(held_out_rows(documents, [finished]))
        right, judged = classified(finished.transform(unseen), np.asarray(unseen.labels))
        found = audit(_attempts(), run.path, minutes=None, workers=1).findings
    own = [one for one in found if one.run.profile == PROTECTIONS[key["protection"]][0]]
    leaks = {
        kind: _best([one for one in own if (one.attempt.adversary == READER) == (kind in FALSE_ALARMS)], kind)
        for kind in MEASURES
    }
    return {
        "spent": result["spent"][0]["epsilon"],
        "rounds": result["rounds"],
        "right": right,
        "judged": judged,
        "megabytes": round(result["bytes_up"] / 1e6 / PARTIES / max(result["rounds"], 1), 4),
        "seconds": round(result["seconds"], 1),
        **{f"{kind}_{name}": value for kind, leak in leaks.items() for name, value in leak.items()},
    }


def classified(shares: Any, labels: Any) -> tuple[int, int]:
    """How many labels of one half of the documents a classifier tells that learned from the other half."""
    known, tried = np.array_split(np.random.default_rng(0).permutation(len(labels)), 2)
    model = LogisticRegression(max_iter=300, C=10.0).fit(shares[known], labels[known])
    return int((model.predict(shares[tried]) == labels[tried]).sum()), len(tried)


@cache
def _attempts() -> AuditPlan:
    """Of the plan `full` the trials that look for texts or members."""
    plan = read_audit_plan("full")
    trials = tuple(
        dataclasses.replace(trial, effort={**trial.effort, **({"shadows": SHADOWS} if "shadows" in trial.effort else {})})
        for trial in plan.trials
        if trial.attack in ATTACKS
    )
    return dataclasses.replace(plan, trials=trials, refusals=(), moves=())


def _best(found: Sequence[Finding], kind: str) -> Row:
    """What the best attack gets over guessing, with its interval and what a perfect one would; nothing where none was made."""
    gained = [
        (one, measured, FALSE_ALARMS.get(kind) or _by_chance(one, measured))
        for one in found
        for measured in (one.outcome.measured, *one.outcome.beside)
        if measured.measure in MEASURES[kind] and measured.value is not None and measured.of != 0
    ]
    if not gained:
        return {}
    best, measured, guessed = max(gained, key=lambda one: _over(one[1].value or 0.0, one[2]))
    figures = {"": measured.value or 0.0, "_low": measured.low, "_high": measured.high, "_ceiling": measured.ceiling}
    over = {f"gained{name}": round(_over(value, guessed), 4) for name, value in figures.items()}
    return {"attack": best.attempt.attack, "measure": measured.measure, "adversary": best.attempt.adversary, **over}


def _by_chance(one: Finding, measured: Measured) -> float:
    """What the same attack got on random numbers, where it was tried on some."""
    chance = one.outcome.chance
    same = chance is not None and chance.measure == measured.measure
    return (chance.value if same and chance else measured.by_chance) or 0.0


def _over(value: float, guessed: float) -> float:
    return max(value - guessed, 0.0) / (1.0 - guessed)


# ---- beside the run without protection ---------------------------------------------------------------------------------


def with_ratio(row: Row, rows: Sequence[Row]) -> Row:
    """The row with its use over that of the best model without protection, and the interval of both shares together."""
    plain = [one for one in rows if (one["corpus"], one["protection"]) == (row["corpus"], OPEN)]
    if not plain:
        return row
    best = max(plain, key=lambda one: float(one["right"] / one["judged"]))
    use, without = row["right"] / row["judged"], best["right"] / best["judged"]
    away = stats.norm.ppf(0.975) * math.sqrt((1 - use) / row["right"] + (1 - without) / best["right"])
    ends = {"use_low": use / without * math.exp(-away), "use_high": use / without * math.exp(away)}
    return {**row, "use": round(use / without, 4), **{name: round(end, 4) for name, end in ends.items()}}


# ---- the picture -------------------------------------------------------------------------------------------------------

FIGURE = "What protections cost, and what attacks still get"
_COLOURS = {  # profiles that send the same sums share one, and an epsilon is a number beside the mark
    **dict.fromkeys(("masked", "masked_strict"), "masked, masked_strict"),
    **dict.fromkeys(("bfv", "ckks"), "bfv, ckks"),
}
_AXES = {
    TEXTS: "texts that the coordinator's best attack finds, over guessing",
    MEMBERS: "members told from the model at 1 % false alarms",
}


def plots(rows: Sequence[Row]) -> list[Row]:
    """Four panels: each corpus by each kind of attack. A run without such an attack has no point."""
    return [_panel(corpus, kind, rows) for corpus, kind in product(dict.fromkeys(row["corpus"] for row in rows), _AXES)]


def _panel(corpus: str, kind: str, rows: Sequence[Row]) -> Row:
    points = [
        {
            "of": _COLOURS.get(profile, profile),
            "note": f"{epsilon:g}" if epsilon else "",
            "shape": row["model"],
            "x": [row[f"{kind}_gained{end}"] for end in ("", "_low", "_high")],
            "y": [row["use"], row["use_low"], row["use_high"]],
            "size": row["megabytes"],
        }
        for row in rows
        if row["corpus"] == corpus and f"{kind}_gained" in row and "use" in row
        for profile, epsilon in (PROTECTIONS[row["protection"]],)
    ]
    most = max((point["x"][2] for point in points), default=1.0)
    named = {
        "figure": FIGURE,
        "title": corpus,
        "x": _AXES[kind],
        "y": "labels told from topics, over the best unprotected model",
    }
    return {**named, "noted": "epsilon", "points": points, "most": round(1.05 * max(most, 0.02), 4)}
