"""What follows from the rows of FedNMF's experiments: the paper's tables and figures with ours, and a verdict on each claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from lab.measuring import Row, mean_with_interval
from lab.papers import protected
from lab.papers.experiment import Claim, Findings, Scale, curves, means, said, verdict
from lab.papers.fednmf_rows import (
    CENTRAL_LDA,
    CENTRAL_NMF,
    EACH_ROUND,
    FACTORED,
    FED_LDA,
    HETEROGENEOUS,
    MAIN,
    PRIVATE,
    SERVERS,
    SGD,
    SUPERVISED,
    TUNING,
    WITH_MI,
)
from lab.papers.protected import Measure

USUAL_TOPICS = 50

_TABLES = ("SMS Spam", "TagMyNews", "StackOverflow")  # the order of the paper's figures below
# Table IV: macro F1 and accuracy; Table III: coherence. Means over 50, 100 and 200 topics.
THEIRS: Mapping[str, tuple[tuple[float, float, float], ...]] = {
    CENTRAL_LDA: ((0.821, 0.903, 0.404), (0.651, 0.653, 0.386), (0.689, 0.683, 0.302)),
    CENTRAL_NMF: ((0.904, 0.954, 0.442), (0.859, 0.840, 0.486), (0.803, 0.747, 0.324)),
    SGD: ((0.927, 0.965, 0.421), (0.950, 0.969, 0.482), (0.777, 0.778, 0.326)),
    SGD + WITH_MI: ((0.941, 0.968, 0.456), (0.982, 0.983, 0.486), (0.820, 0.831, 0.340)),
    FED_LDA: ((0.704, 0.841, 0.341), (0.508, 0.555, 0.370), (0.421, 0.401, 0.306)),
    "FedAvg": ((0.652, 0.673, 0.347), (0.663, 0.670, 0.423), (0.304, 0.313, 0.316)),
    "FedAvg+MI": ((0.724, 0.730, 0.362), (0.724, 0.740, 0.446), (0.360, 0.421, 0.328)),
    "FedAdagrad": ((0.816, 0.830, 0.347), (0.920, 0.931, 0.423), (0.558, 0.600, 0.313)),
    "FedAdagrad+MI": ((0.856, 0.867, 0.352), (0.953, 0.956, 0.426), (0.630, 0.641, 0.332)),
    "FedYogi": ((0.827, 0.837, 0.349), (0.924, 0.930, 0.423), (0.352, 0.360, 0.317)),
    "FedYogi+MI": ((0.861, 0.870, 0.355), (0.973, 0.970, 0.446), (0.372, 0.367, 0.332)),
    "FedAdam": ((0.833, 0.838, 0.348), (0.890, 0.638, 0.423), (0.562, 0.584, 0.316)),
    "FedAdam+MI": ((0.881, 0.887, 0.372), (0.945, 0.957, 0.466), (0.647, 0.650, 0.342)),
}
_F1, _ACCURACY, _COHERENCE = 0, 1, 2
_PAIRS = [(server, server + WITH_MI) for server in SERVERS]
_DRAWN = 3  # repetitions from which on an interval is drawn: that of two is 6 times as long as of three
_CENTRAL_PAIR = (SGD, SGD + WITH_MI)
Gains = Mapping[tuple[str, str], tuple[float, float | None]]  # by corpus and method: a mean difference, and half its interval


def findings(scale: Scale, rows: Sequence[Row]) -> Findings:
    main, other, tuned, ceiling, private = (
        [row for row in rows if row["part"] == part] for part in (MAIN, HETEROGENEOUS, TUNING, SUPERVISED, PRIVATE)
    )
    private = [{**row, "model": row["method"]} for row in private]
    averaged = _averaged(main)
    at_usual = [row for row in main if row["topics"] == USUAL_TOPICS]
    tables = {
        "Table IV: macro F1 of a classifier by topic weights": _beside(averaged, "f1", _F1),
        "Table IV: accuracy": _beside(averaged, "accuracy", _ACCURACY),
        "Table III: coherence by word vectors (the paper's have 200 dimensions, ours 50)": _beside(
            averaged, "we_coherence", _COHERENCE
        ),
        "Other figures of the topics": _others(averaged),
        "Table V: the first words of the five heaviest topics, StackOverflow": _words(at_usual, scale),
        "Tuning, on more documents and 2,000 words": [*map(_setting, _averaged_settings(tuned))],
        "TagMyNews: a linear SVM that reads all words and learns from labels": _ceiling(ceiling),
        **protected.tables(private, _PROTECTED_MEASURES, _SETTING),
    }
    claims = (
        *_of_main(averaged),
        *_of_topics(main),
        *_of_rounds(at_usual),
        *_of_clients([*other, *at_usual]),
        *_of_tuning(tuned, ceiling),
        *_of_protection(private),
    )
    plots = [
        *_by_topics(main),
        *_by_megabytes(at_usual),
        *_by_clients([*other, *at_usual]),
        *protected.plots(private, _JUDGED, _SETTING),
    ]
    if len(scale.seeds) < _DRAWN:
        plots = [{**plot, "away": {name: [None] * len(of) for name, of in plot["away"].items()}} for plot in plots]
    return Findings(claims, {title: found for title, found in tables.items() if found}, plots)


# ---- tables --------------------------------------------------------------------------------------------------------------

_MEASURES = ("f1", "accuracy", "we_coherence", "npmi", "diversity", "f1_of_kept_weights")


def _averaged(main: Sequence[Row]) -> list[Row]:
    """One row for each corpus, method and seed: means over the numbers of topics that all have; 20 is left out, as there."""
    tried: dict[int, set[tuple[str, str, int]]] = {}
    for row in main:
        tried.setdefault(row["topics"], set()).add((row["corpus"], row["method"], row["seed"]))
    whole = {place for of in tried.values() for place in of}
    taken = {topics for topics, of in tried.items() if of == whole and topics != 20}
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in main:
        if row["topics"] in taken:
            groups.setdefault((row["corpus"], row["method"], row["seed"]), []).append(row)
    return [
        {
            "corpus": corpus,
            "method": method,
            "seed": seed,
            "topics": ", ".join(map(str, sorted(taken))),
            **{name: fmean(row[name] for row in group) for name in _MEASURES if group[0].get(name) is not None},
        }
        for (corpus, method, seed), group in groups.items()
    ]


def _their(method: str, corpus: str, place: int) -> float | None:
    return THEIRS[method][_TABLES.index(corpus)][place] if method in THEIRS and corpus in _TABLES else None


def _beside(averaged: Sequence[Row], measure: str, place: int) -> list[Row]:
    lines: dict[str, Row] = {}
    for row in means(averaged, ("method", "corpus"), (measure,)):
        line, corpus = lines.setdefault(row["method"], {"method": row["method"]}), row["corpus"]
        line |= {f"{corpus}, paper": _their(row["method"], corpus, place)}
        line |= {corpus: row[measure], f"{corpus}_away": row[f"{measure}_away"]}
    return list(lines.values())


def _others(averaged: Sequence[Row]) -> list[Row]:
    of = [{"f1_of_kept_weights": None, **row} for row in averaged]
    kept = [row for row in of if row["f1_of_kept_weights"] is not None]
    rest = [row for row in of if row["f1_of_kept_weights"] is None]
    return [
        *means(kept, ("corpus", "method"), ("f1_of_kept_weights", "npmi", "diversity")),
        *means(rest, ("corpus", "method"), ("npmi", "diversity")),
    ]


def _words(usual: Iterable[Row], scale: Scale) -> list[Row]:
    return [
        {"method": row["method"], "words": row["topic_words"]}
        for row in usual
        if row.get("topic_words") and row["seed"] == scale.seeds[0]
    ]


_SETTINGS = ("corpus", "method", "topics", "server_rate", "weighting", "information")


def _averaged_settings(tuned: Iterable[Row]) -> list[Row]:
    """The means over seeds of each setting; `better` is whichever is, F1 of weights that are read again or of kept ones."""
    found = [{**row, "f1_of_kept_weights": row.get("f1_of_kept_weights", row["f1"])} for row in tuned]
    measures = ("f1", "f1_of_kept_weights")
    return means(({**row, "better": max(row[name] for name in measures)} for row in found), _SETTINGS, (*measures, "better"))


def _setting(mean: Row) -> Row:
    has = mean["method"] in FACTORED
    return {
        **{name: mean[name] for name in ("corpus", "method", "topics")},
        "server's rate": mean["server_rate"] if has and not mean["method"].startswith("FedAvg") else None,
        "documents' rows": mean["weighting"] if has else None,
        "weight of MI": mean["information"] if mean["method"].endswith(WITH_MI) else None,
        **{f"F1{end}": mean[f"f1{end}"] for end in ("", "_away")},
        **{f"F1 of kept weights{end}": mean[f"f1_of_kept_weights{end}"] if has else None for end in ("", "_away")},
    }


def _ceiling(ceiling: Iterable[Row]) -> list[Row]:
    return [{"documents": _many(row["documents"]), **{name: row[name] for name in ("f1", "accuracy")}} for row in ceiling]


def _many(documents: int | None) -> str:
    return "all" if documents is None else f"{documents:,} documents"


# ---- claims on Tables III and IV -----------------------------------------------------------------------------------------


def _gains(rows: Sequence[Row], pairs: Iterable[tuple[str, str]], measure: str) -> Gains:
    """By how much the second method of each pair is better than the first, seed by seed."""
    of = {(row["corpus"], row["method"], row["seed"]): row[measure] for row in rows if row.get(measure) is not None}
    apart: dict[tuple[str, str], list[float]] = {}
    for less, more in pairs:
        for corpus, method, seed in of:
            if method == more and (corpus, less, seed) in of:
                apart.setdefault((corpus, more), []).append(of[corpus, more, seed] - of[corpus, less, seed])
    return {place: mean_with_interval(found) for place, found in apart.items()}


def _their_gains(pairs: Sequence[tuple[str, str]], corpora: Iterable[str], place: int = _F1) -> str:
    found = [
        more - less
        for corpus in corpora
        for names in pairs
        if (less := _their(names[0], corpus, place)) is not None and (more := _their(names[1], corpus, place)) is not None
    ]
    return (
        f"{min(found):+.3f} to {max(found):+.3f}, positive in {sum(one > 0 for one in found)} of {len(found)}" if found else ""
    )


def _ours(gains: Gains) -> str:
    found = [gain for gain, _ in gains.values()]
    return f"{min(found):+.3f} to {max(found):+.3f}, positive in {sum(one > 0 for one in found)} of {len(found)}"


def _sure(gains: Gains) -> str:
    known = [(gain, away) for gain, away in gains.values() if away is not None]
    if not known:
        return "One seed has no interval."
    above, below = sum(gain > away for gain, away in known), sum(-gain > away for gain, away in known)
    return f"By more than its interval: above zero in {above}, below in {below} of {len(known)}."


def _each(gains: Gains) -> str:
    return "; ".join(f"{corpus} {gain:+.3f}" for (corpus, _), (gain, _) in gains.items())


def _corpora(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["corpus"] for row in rows))


def _of_main(averaged: Sequence[Row]) -> Iterator[Claim]:
    corpora = _corpora(averaged)
    pair = [(CENTRAL_LDA, CENTRAL_NMF)]
    gains = _gains(averaged, pair, "f1")
    yield Claim(
        "On one machine, NMF classifies short texts better than LDA",
        f"F1 {_their_gains(pair, corpora)}",
        _each(gains),
        verdict(gain > 0 for gain, _ in gains.values()),
        f"{_sure(gains)} LDA is `lda` here (Gibbs sampling), which is a stronger one on short texts than the variational kind.",
    )
    gains = _gains(averaged, [_CENTRAL_PAIR], "f1")
    yield Claim(
        "On one machine, mutual information improves NMF by gradient steps",
        f"F1 {_their_gains([_CENTRAL_PAIR], corpora)}",
        _ours(gains),
        verdict(gain > 0 for gain, _ in gains.values()),
        f"{_sure(gains)} {_WHY_NOT}",
    )
    gains = _gains(averaged, _PAIRS, "f1")
    yield Claim(
        "Mutual information improves classification under every federated optimiser",
        f"F1 {_their_gains(_PAIRS, corpora)}",
        _ours(gains),
        verdict(gain > (away or 0) for gain, away in gains.values()),
        f"{_sure(gains)} {_kept(averaged)}",
    )
    gains = _gains(averaged, _PAIRS, "we_coherence")
    yield Claim(
        "Mutual information improves coherence (Table III)",
        _their_gains(_PAIRS, corpora, _COHERENCE),
        _ours(gains),
        verdict(gain > (away or 0) for gain, away in gains.values()),
        f"{_sure(gains)} Only the order can be compared: ours is by other word vectors.",
    )
    over = [(FED_LDA, server + WITH_MI) for server in SERVERS]
    gains = _gains(averaged, over, "f1")
    beside = _gains(averaged, [(CENTRAL_LDA, server + WITH_MI) for server in SERVERS], "f1")
    yield Claim(
        "Every FedNMF+MI classifies better than FedLDA",
        f"F1 {_their_gains(over, corpora)}",
        _ours(gains),
        verdict(gain > 0 for gain, _ in gains.values()),
        f"{_sure(gains)} FedLDA is `lda-vi` here, of whose clients a fifth takes part in a round. Over federated "
        "`lda`, whose clients "
        f"all take part, it is {_ours(beside)}.",
    )
    pair = [(SGD, "FedAvg")]
    gains = _gains(averaged, pair, "f1")
    yield Claim(
        "Clients with different mixtures of labels cost FedAvg much of its F1",
        f"less than NMF+SGD by {_their_gains(pair, corpora)}",
        _each(gains),
        verdict(gain < -0.05 for gain, _ in gains.values()),
        f"The claim counts as true from 0.05 on. {_of_each_round(averaged)}",
    )


_WHY_NOT = (
    "What may be the reason: the critic's pull on topic weights is clipped here so that no step diverges, and a document's "
    "weights are read again under the finished topics."
)


def _kept(averaged: Sequence[Row]) -> str:
    gains = _gains(averaged, _PAIRS, "f1_of_kept_weights")
    return f"By the weights that clients kept, as Algorithm 1 has it: {_ours(gains)}. {_WHY_NOT}" if gains else _WHY_NOT


def _of_each_round(averaged: Sequence[Row]) -> str:
    gains = _gains(averaged, [(CENTRAL_NMF, EACH_ROUND)], "f1")
    return f"`nmf` adds up exact sums of all clients in each round, and is as good as one machine: {_each(gains)} beside NMF."


# ---- Fig. 2 --------------------------------------------------------------------------------------------------------------


def _of_topics(main: Sequence[Row]) -> Iterator[Claim]:
    counts = sorted({row["topics"] for row in main})
    found = means([row for row in main if row["method"] in FACTORED], ("corpus", "method", "topics"), ("f1",))
    lines: dict[tuple[str, str], list[float]] = {}
    for row in sorted(found, key=lambda row: int(row["topics"])):
        lines.setdefault((row["corpus"], row["method"]), []).append(row["f1"])
    rises = [after > before for line in lines.values() for before, after in pairwise(line)]
    if rises:
        yield Claim(
            "F1 rises with the number of topics (Fig. 2)",
            "rises on three corpora, for all eight methods",
            f"rises in {sum(rises)} of {len(rises)} steps",
            verdict(rises),
            f"Steps: {', '.join(map(str, counts))} topics, for each corpus and method.",
        )


def _by_topics(main: Sequence[Row]) -> Iterator[Row]:
    found = means([row for row in main if row["method"] in FACTORED], ("corpus", "method", "topics"), ("f1",))
    for corpus in _corpora(main):
        several = {row["method"] for row in found if row["corpus"] == corpus and row["topics"] != USUAL_TOPICS}
        own = [row for row in found if row["corpus"] == corpus and row["method"] in several]
        own.sort(key=lambda row: (FACTORED.index(row["method"]), row["topics"]))
        facts = {"figure": "Figure 2", "title": corpus, "x": "topics", "y": "macro F1", "log": True}
        yield {**facts, **curves(own, "method", "topics", "f1")}


# ---- Fig. 3 --------------------------------------------------------------------------------------------------------------


def _on_the_way(usual: Sequence[Row]) -> list[Row]:
    found = []
    for row in usual:
        if row["method"] in FACTORED and row.get("after"):
            points = {after: row[f"f1_after_{after}"] for after in row["after"]} | {row["rounds"]: row["f1"]}
            for after, f1 in points.items():
                sent = round(after * row["megabytes_a_round"], 1)
                found.append({**{n: row[n] for n in ("corpus", "method", "seed")}, "round": after, "megabytes": sent, "f1": f1})
    return found


def _of_rounds(usual: Sequence[Row]) -> Iterator[Claim]:
    way = [row for row in _on_the_way(usual) if row["round"] < usual[0]["rounds"]]
    if not way:
        return
    faster = []
    for at in sorted({row["round"] for row in way}):
        gains = _gains([row for row in way if row["round"] == at], _PAIRS, "f1")
        faster += [gain > (away or 0) for gain, away in gains.values()]
    sizes = {row["method"]: row["megabytes_a_round"] for row in usual if row["method"] in ("FedAvg", "FedAvg+MI")}
    yield Claim(
        "Mutual information converges faster for the same communication (Fig. 3)",
        "curves with it rise earlier",
        f"better by more than its interval in {sum(faster)} of {len(faster)} places on the way",
        verdict(faster),
        f"Compared after as many rounds. The critic is sent too: a round takes {sizes['FedAvg+MI']:.2f} instead of "
        f"{sizes['FedAvg']:.2f} MB, so at equal bytes it is slower.",
    )


def _by_megabytes(usual: Sequence[Row]) -> Iterator[Row]:
    found = means(_on_the_way(usual), ("corpus", "method", "megabytes"), ("f1",))
    for corpus in _corpora(found)[:2]:
        own = sorted((row for row in found if row["corpus"] == corpus), key=lambda row: FACTORED.index(row["method"]))
        facts = {"figure": "Figure 3", "title": corpus, "x": "megabytes, up and down", "y": "macro F1", "log": True}
        yield {**facts, **curves(own, "method", "megabytes", "f1")}


# ---- Fig. 4 --------------------------------------------------------------------------------------------------------------


def _on(rows: Sequence[Row], axis: str) -> list[Row]:
    """The rows in which only this is another one than usual, of the corpora and methods that were tried so."""
    fixed, usual = ("clients", 10) if axis == "alpha" else ("alpha", 1.0)
    tried = {(row["corpus"], row["method"]) for row in rows if row["part"] == HETEROGENEOUS}
    return [row for row in rows if row[fixed] == usual and (row["corpus"], row["method"]) in tried]


def _along(rows: Sequence[Row], axis: str) -> list[Row]:
    found = means(_on(rows, axis), ("corpus", "method", axis), ("f1",))
    return sorted(found, key=lambda row: (row["corpus"], FACTORED.index(row["method"]), row[axis]))


def _rises(rows: Sequence[Row], first: float, last: float, axis: str) -> Gains:
    """By how much F1 is higher at the last place than at the first, seed by seed."""
    of = {(row["corpus"], row["method"], row["seed"], row[axis]): row["f1"] for row in rows}
    apart: dict[tuple[str, str], list[float]] = {}
    for corpus, method, seed, at in of:
        if at == last and (corpus, method, seed, first) in of:
            apart.setdefault((corpus, method), []).append(of[corpus, method, seed, last] - of[corpus, method, seed, first])
    return {place: mean_with_interval(found) for place, found in apart.items()}


def _of_clients(rows: Sequence[Row]) -> Iterator[Claim]:
    for axis, more, claim, theirs in (
        ("alpha", 1, "FedNMF is better where clients are more alike (alpha rises, Fig. 4)", "rises, on two corpora"),
        ("clients", -1, "FedNMF is worse with more clients (Fig. 4)", "falls, on two corpora"),
    ):
        some = _on(rows, axis)
        places = sorted({float(row[axis]) for row in some})
        rises = _rises(some, places[0], places[-1], axis) if len(places) > 1 else {}
        if rises:
            found = [rise for rise, _ in rises.values()]
            surely = [away is not None and more * rise > away for rise, away in rises.values()]
            yield Claim(
                claim,
                theirs,
                f"from {places[0]:g} to {places[-1]:g}: {min(found):+.3f} to {max(found):+.3f}",
                verdict(more * rise > 0 for rise in found),
                f"As claimed in {sum(more * rise > 0 for rise in found)} of {len(found)} pairs of a corpus and a method, by "
                f"more than its interval in {sum(surely)}. Steps are bounded by the curvature here, and weights read under the "
                "finished topics: clients' differences hardly matter.",
            )


def _by_clients(rows: Sequence[Row]) -> Iterator[Row]:
    names = {"alpha": "alpha, by which clients' mixtures are drawn", "clients": "clients"}
    for axis, x in names.items():
        found = _along(rows, axis)
        for corpus in _corpora(found):
            own = [row for row in found if row["corpus"] == corpus]
            facts = {"figure": "Figure 4", "title": f"{corpus} by {axis}", "x": x, "y": "macro F1", "log": axis == "alpha"}
            yield {**facts, **curves(own, "method", axis, "f1")}


# ---- tuning ----------------------------------------------------------------------------------------------------------


def _of_tuning(tuned: Sequence[Row], ceiling: Sequence[Row]) -> Iterator[Claim]:
    for corpus in _corpora(tuned):
        own = [row for row in _averaged_settings(tuned) if row["corpus"] == corpus]
        best = max((row for row in own if row["method"] in FACTORED), key=lambda row: float(row["better"]))
        f1, of = best["better"], {row["method"]: row["f1"] for row in own if row["method"] not in FACTORED}
        known = [one for name in FACTORED if (one := _their(name, corpus, _F1)) is not None]
        if not known:
            continue
        seeds = "one seed" if best["repetitions"] == 1 else f"{best['repetitions']} seeds"
        settings = f"{best['method']} at rate {best['server_rate']:g}, {best['weighting']}, {best['topics']} topics"
        yield Claim(
            f"{corpus}: the paper's best federated F1 can be reached by tuning",
            f"{max(known):.3f}",
            f"{said(best, 'better', 3)} ({settings}); `lda-vi` {of[FED_LDA]:.3f}, NMF on one machine {of[CENTRAL_NMF]:.3f}",
            verdict([f1 >= max(known)]),
            f"Best of {sum(row['method'] in FACTORED for row in own)} settings, {seeds}, chosen by the "
            f"same figure: {f1 - of[FED_LDA]:+.3f} beside FedLDA and {f1 - of[CENTRAL_NMF]:+.3f} beside NMF. "
            f"{_out_of_reach(corpus, ceiling)}".strip(),
        )


def _out_of_reach(corpus: str, ceiling: Sequence[Row]) -> str:
    if corpus != "TagMyNews" or not ceiling:
        return ""
    found = " and ".join(f"{row['f1']:.2f} ({_many(row['documents'])})" for row in ceiling)
    return (
        f"A linear SVM that learns from labels and reads all words has F1 {found} on this corpus, so 0.97 is of "
        "other documents than ours."
    )


# ---- under profiles ------------------------------------------------------------------------------------------------------

_SETTING = "StackOverflow, 20 topics, ten clients"
_PROTECTED_MEASURES = ("f1", "accuracy", "we_coherence", "npmi", "diversity", "perplexity")
_OF_VECTORS = (
    "Word vectors are of other texts: noise leaves frequent and public words, which are near each other there. By the "
    "documents themselves (npmi, in the table) coherence falls."
)
_JUDGED = (Measure("f1", "macro F1"), Measure("we_coherence", "coherence by word vectors", note=_OF_VECTORS))


def _of_protection(private: Sequence[Row]) -> Iterator[Claim]:
    yield from protected.claims(private, _JUDGED)
    if private:
        yield Claim(
            "FedNMF itself can be trained under a budget for each document (not in the paper)",
            "",
            "refused by name",
            verdict([False]),
            "A client answers with the difference of its weights after whole epochs, so a bound is of the client, and not of a "
            "document; the critic couples the documents of a batch. `nmf` asks sums of documents' rows instead, and takes one.",
        )
