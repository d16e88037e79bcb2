"""What follows from the rows of gFedNTM's experiments: tables beside the paper's figures, plots, and a verdict on each claim.

The paper prints no figure of Fig. 3 as a number; those here are in a notebook of its authors' repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

from lab.measuring import Row, mean_with_interval
from lab.papers import protected
from lab.papers.experiment import Claim, Findings, Scale, curves, means, pivoted, verdict
from lab.papers.gfedntm_rows import (
    ADDITIVE,
    AGAIN,
    ALIKE,
    ALONE,
    BY_GIBBS,
    CENTRAL,
    FEDERATED,
    KNOWN,
    NOTHING,
    OF_SUBJECTS,
    PRIOR,
    PRODLDA,
    SHARED,
    VARIATIONAL,
)
from lab.papers.protected import Measure
from lab.research_corpora import SUBJECTS

USUAL_SHARED, USUAL_ETA, USUAL_ALPHA, STATED_ALPHA = 10, 0.01, 0.1, 1.0  # the last is 50 / K
NODES = (*SUBJECTS, "other")
MODELS = (PRODLDA, ADDITIVE, BY_GIBBS, VARIATIONAL)
DSS, TSS, PUBLISHED = "dss_per_pair", "tss", "tss_as_published"
_OTHERS, _SIZES = 4_999, (10_000, 5_000)  # with which a document was compared in the paper; documents of a node, and words
# DSS and TSS, each centralised and of nodes alone, then TSS and DSS of the prior, by K' and by eta: means of ten runs
THEIRS: Mapping[str, Mapping[float, tuple[float, ...]]] = {
    "shared": {
        5: (2607.3, 3482.3, 8.676, 7.207, 3.557, 766.8),
        10: (2566.5, 3069.2, 8.685, 7.584, 3.615, 832.9),
        15: (2509.9, 2809.8, 8.651, 7.835, 3.563, 825.3),
        30: (2415.3, 2415.7, 8.661, 8.307, 3.600, 729.4),
        40: (2399.5, 2348.4, 8.664, 8.475, 3.575, 672.5),
    },
    "eta": {
        0.01: (2555.5, 3066.7, 8.679, 7.571, 3.564, 834.6),
        0.02: (2523.5, 3033.5, 12.205, 11.676, 4.739, 835.3),
        0.03: (2464.1, 3030.6, 14.747, 14.505, 5.965, 834.4),
        0.04: (2419.8, 3033.3, 16.812, 16.709, 7.198, 834.1),
        0.08: (2381.1, 3009.2, 22.671, 22.666, 11.619, 833.2),
        1.0: (2783.4, 3348.5, 44.302, 44.302, 39.660, 835.1),
    },
}
_AXES = {"shared": "K'", "eta": "eta"}
_OF_WORDS = "AMWMD reads word vectors of other texts. It hardly tells what noise costs: beside it TSS and F1 fall by far more."
_PROTECTED: Mapping[str, tuple[Sequence[Measure], str]] = {  # by what is judged under profiles
    KNOWN: ((Measure(TSS, "TSS"), Measure(DSS, "DSS of a pair", less=True, digits=3)), f"known topics, K' = {USUAL_SHARED}"),
    OF_SUBJECTS: ((Measure("amwmd", "AMWMD", less=True, digits=3, note=_OF_WORDS),), "20 Newsgroups, 10 topics"),
}
Gains = Mapping[float, tuple[float, float | None]]  # by K' or eta: a gain, and half of its interval


def findings(scale: Scale, rows: Sequence[Row]) -> Findings:
    private = [{**row, "amwmd": row.get("mean")} for row in rows if row.get("profile")]
    rows = [row for row in rows if not row.get("profile")]
    known = [row for row in rows if row["figure"] == KNOWN and row["alpha"] == USUAL_ALPHA]
    stated = [row for row in rows if row["figure"] == KNOWN and row["alpha"] == STATED_ALPHA]
    subjects = [row for row in rows if row["figure"] == OF_SUBJECTS]
    more = [row for row in known if row["model"] == PRODLDA and row["documents"] > scale.sizes["known"]["documents"]]
    known = [row for row in known if row not in more]
    tables = {
        **_known_tables(known),
        **_more_table(known, more),
        **_stated_table(stated),
        "Fig. 4: distance of each node's topics": _far(subjects),
    }
    claims = [
        *_by_shared(known, more),
        *_by_eta(known),
        _limited(known),
        _above_prior(known),
        _equal(known),
        *_of_subjects(subjects),
    ]
    plots = [*_known_plots(known), _subject_plot(subjects)]
    for figure, (measures, setting) in _PROTECTED.items():
        own = [row for row in private if row["figure"] == figure]
        tables |= protected.tables(own, [measure.name for measure in measures], setting)
        claims += protected.claims(own, measures)
        plots += protected.plots(own, measures, setting)
    return Findings(claims, tables, plots)


# ---- Fig. 3: tables and curves -------------------------------------------------------------------------------------------


def _along(rows: Iterable[Row], axis: str) -> list[Row]:
    """The rows in which only K', or only eta, is another one than usual."""
    name, usual = ("eta", USUAL_ETA) if axis == "shared" else ("shared", USUAL_SHARED)
    return [row for row in rows if row[name] == usual]


def _means(rows: Iterable[Row], axis: str) -> list[Row]:
    found = means(_along(rows, axis), ("model", "scenario", axis), (DSS, TSS, PUBLISHED))
    return sorted(found, key=lambda row: ((*MODELS, PRIOR, ALIKE).index(row["model"]), row["scenario"], row[axis]))


def _their(axis: str, value: str, scenario: str, at: float) -> float:
    """The paper's figure; its DSS for a pair of documents."""
    place = ((2, 3, 4) if value == TSS else (0, 1, 5))[(CENTRAL, ALONE, NOTHING).index(scenario)]
    return THEIRS[axis][at][place] / (1 if value == TSS else _OTHERS)


def _known_tables(known: Sequence[Row]) -> dict[str, list[Row]]:
    tables = {}
    for axis, (value, title) in product(_AXES, ((DSS, "DSS of a pair (less is better)"), (TSS, "TSS (of 50)"))):
        ours = [row for row in _means(known, axis) if row["model"] != ALIKE]
        at = [x for x in sorted({row[axis] for row in ours}) if x in THEIRS[axis]]
        theirs = [
            {"model": f"the paper's {model}", "scenario": who, **{f"{x:g}": round(_their(axis, value, who, x), 3) for x in at}}
            for model, who in ((PRODLDA, CENTRAL), (PRODLDA, ALONE), ("prior", NOTHING))
        ]
        tables[f"Fig. 3: {title} by {_AXES[axis]}"] = [*theirs, *pivoted(ours, ("model", "scenario"), axis, value)]
    return {**tables, "Fig. 3: TSS by the published script": list(_published(known))}


def _published(known: Sequence[Row]) -> Iterator[Row]:
    """The paper's TSS beside that of topics in which all words that were seen are alike."""
    for axis, named in _AXES.items():
        of = {(row["model"], row["scenario"], row[axis]): row[PUBLISHED] for row in _means(known, axis)}
        for x in sorted({at for model, _, at in of if model == ALIKE and at in THEIRS[axis]}):
            line: Row = {"setting": f"{named} = {x:g}"}
            for scenario in (CENTRAL, ALONE):
                line |= {
                    f"paper, {scenario}": _their(axis, TSS, scenario, x),
                    f"words alike, {scenario}": of[ALIKE, scenario, x],
                }
            yield line


def _more_table(known: Sequence[Row], more: Sequence[Row]) -> dict[str, list[Row]]:
    """The settings that were tried with more documents, beside themselves with as many as usual."""
    places = {(row["shared"], row["eta"]) for row in more}
    usual = [row for row in known if row["model"] == PRODLDA and (row["shared"], row["eta"]) in places]
    found = means([*usual, *more], ("shared", "eta", "documents", "scenario"), (DSS, TSS))
    return {"Fig. 3 with more documents a node, ProdLDA": found} if more else {}


def _stated_table(stated: Sequence[Row]) -> dict[str, list[Row]]:
    found = means(stated, ("model", "scenario"), (DSS, TSS))
    return {"Fig. 3 with the alpha of the paper's text, 50 / K (K' = 10, eta = 0.01)": found} if found else {}


_LINES = {
    (PRODLDA, ALONE): "ProdLDA, nodes alone",
    (PRODLDA, CENTRAL): "ProdLDA, centralised",
    (ADDITIVE, ALONE): "additive ProdLDA, alone",
    (ADDITIVE, CENTRAL): "additive ProdLDA, centralised",
    (ADDITIVE, FEDERATED): "additive ProdLDA, federated",
    (BY_GIBBS, ALONE): "lda, nodes alone",
    (BY_GIBBS, FEDERATED): "lda, federated",
    (PRIOR, NOTHING): PRIOR,
}


def _known_plots(known: Sequence[Row]) -> Iterator[Row]:
    names = {"shared": "K', the number of topics that all nodes share", "eta": "eta, by which topics' words are drawn"}
    for axis, (value, of, y) in product(
        _AXES, ((DSS, "Documents", "DSS of a pair, less is better"), (TSS, "Topics", "TSS, of 50"))
    ):
        drawn = sorted(
            (
                {**row, "line": _LINES[place]}
                for row in _means(known, axis)
                if (place := (row["model"], row["scenario"])) in _LINES
            ),
            key=lambda row: list(_LINES.values()).index(row["line"]),
        )
        facts = {"figure": KNOWN, "title": f"{of} by {_AXES[axis]}", "x": names[axis], "y": y, "log": axis == "eta"}
        yield {**facts, **curves(drawn, "line", axis, value)}


# ---- Fig. 3: claims ------------------------------------------------------------------------------------------------------


def _gains(known: Iterable[Row], model: str, axis: str, value: str) -> Gains:
    """By how much the centralised model is better than nodes alone, seed by seed."""
    rows = [row for row in _along(known, axis) if row["model"] == model]
    of = {(row["scenario"], row[axis], row["seed"]): row[value] for row in rows}
    pairs: dict[float, list[float]] = {}
    for scenario, x, seed in sorted(of):
        if scenario == CENTRAL:
            gain = of[CENTRAL, x, seed] - of[ALONE, x, seed]
            pairs.setdefault(x, []).append(gain if value == TSS else -gain)
    return {x: mean_with_interval(found) for x, found in pairs.items()}


def _their_gains(axis: str, value: str, at: Iterable[float]) -> str:
    sign = 1 if value == TSS else -1
    gains = {x: sign * (_their(axis, value, CENTRAL, x) - _their(axis, value, ALONE, x)) for x in at if x in THEIRS[axis]}
    return ", ".join(f"{gain:+.3f} at {x:g}" for x, gain in gains.items())


def _our_gains(gains: Gains) -> str:
    return ", ".join(f"{gain:+.3f} at {x:g}" for x, (gain, _) in gains.items())


def _surely(gains: Gains) -> str:
    several = [(gain, away) for gain, away in gains.values() if away is not None]
    sure, tried = sum(gain > away for gain, away in several), "" if len(several) == len(gains) else " with several seeds"
    return f"The gain is above zero with its whole interval at {sure} of {len(several)} settings{tried}."


def _by_shared(known: Sequence[Row], more: Sequence[Row]) -> Iterator[Claim]:
    dss, tss = (_gains(known, PRODLDA, "shared", value) for value in (DSS, TSS))
    few = {x: gain for x, gain in dss.items() if x <= 15}
    yield Claim(
        "Where nodes share few topics (K' up to 15), one model of all documents knows better which documents are alike",
        f"gain of DSS, of a pair, by K': {_their_gains('shared', DSS, few)}",
        _our_gains(few),
        verdict(gain > 0 for gain, _ in few.values()),
        f"{_surely(few)} A node alone has never seen the others' own topics.",
    )
    if len(dss) > 1:
        yield Claim(
            "This gain falls as nodes share more topics",
            _their_gains("shared", DSS, dss),
            _our_gains(dss),
            verdict(after < before for (before, _), (after, _) in pairwise(dss.values())),
            f"Each K' is compared with the one before. {_of_few_documents(known, more)}",
        )
    if 40 in dss:
        beside, later = (_gains(rows, model, "shared", DSS).get(40) for rows, model in ((known, BY_GIBBS), (more, PRODLDA)))
        yield Claim(
            "With K' = 40 the order of DSS turns round (the paper calls it inconclusive)",
            _their_gains("shared", DSS, (40,)),
            _our_gains({40: dss[40]})
            + (f"; `lda` {beside[0]:+.3f}" if beside else "")
            + (f"; with more documents {later[0]:+.3f}" if later else ""),
            verdict(gain < 0 for gain, _ in (dss[40], *([later] if later else []))),
            "Nodes that share nearly all topics lack hardly any, and ProdLDA holds all documents nearly alike, so that little "
            f"decides. {_of_few_documents(known, more)}",
        )
    yield Claim(
        "The centralised topics are nearer to the true ones at every K'",
        f"gain of TSS by K': {_their_gains('shared', TSS, tss)}",
        _our_gains(tss),
        verdict(gain > 0 for gain, _ in tss.values()),
        f"{_surely(tss)} Ours is of the network's own topics; what the paper's figure is of stands below.",
    )


def _of_few_documents(known: Sequence[Row], more: Sequence[Row]) -> str:
    (documents,) = {row["documents"] for row in known if row["model"] == PRODLDA}
    if documents >= _SIZES[0]:
        return "The more topics are shared, the less is foreign to a node."
    lacks = (
        f"A node has {documents:,} documents here and {_SIZES[0]:,} in the paper. Alone it lacks documents as well as topics, "
        "whatever K' is"
    )
    if not more:
        return f"{lacks}, which may hide what the paper sees; that was not tried at this scale."
    (many,) = {row["documents"] for row in more}
    usual, later = (_gains(rows, PRODLDA, "shared", DSS) for rows in (known, more))
    less = "less" if all(later[x][0] < usual[x][0] for x in later) else "not always less"
    gain = f"the gain is {_our_gains(later)}, {less} than with {documents:,}"
    return f"{lacks}: with {many:,} documents a node {gain}."


def _by_eta(known: Sequence[Row]) -> Iterator[Claim]:
    dss, tss = (_gains(known, PRODLDA, "eta", value) for value in (DSS, TSS))
    yield Claim(
        "The centralised model knows better which documents are alike at every eta",
        f"gain of DSS, of a pair, by eta: {_their_gains('eta', DSS, dss)}",
        _our_gains(dss),
        verdict(gain > 0 for gain, _ in dss.values()),
        f"{_surely(dss)} What a node lacks, the others' own topics, it lacks at every eta.",
    )
    alike = {row["eta"]: row[TSS] for row in _along(known, "eta") if row["model"] == ALIKE and row["scenario"] == CENTRAL}
    yield Claim(
        "The centralised topics are nearer to the true ones at every eta, but by less as eta grows",
        f"gain of TSS by eta: {_their_gains('eta', TSS, tss)}",
        _our_gains(tss),
        verdict(
            (*(gain > 0 for gain, _ in tss.values()), *(after < before for (before, _), (after, _) in pairwise(tss.values())))
        ),
        f"{_surely(tss)} The larger eta is, the less topics differ: with all words alike TSS is {alike[min(tss)]:.1f} at eta = "
        f"{min(tss):g} and {alike[max(tss)]:.1f} at {max(tss):g}.",
    )


def _limited(known: Sequence[Row]) -> Claim:
    """What ProdLDA itself leaves to be gained, and what the paper's TSS is of."""
    of = {model: {**_gains(known, model, "shared", TSS), **_gains(known, model, "eta", TSS)} for model in MODELS}
    more = [gain > of[PRODLDA][x][0] for x, (gain, _) in of[BY_GIBBS].items()]
    return Claim(
        "The margin of TSS is small because of ProdLDA, whose topics have many words, and not because of the scenario",
        f"a gain of TSS of {_their_gains('shared', TSS, (USUAL_SHARED,))} (K')",
        "largest gain: "
        + "; ".join(f"{model} {max(gain for gain, _ in gains.values()):.1f}" for model, gains in of.items() if gains),
        verdict(more),
        f"From the same documents `lda` gains more at {sum(more)} of {len(more)} settings. {_of_alike_words(known)}",
    )


def _of_alike_words(known: Sequence[Row]) -> str:
    said = (
        "But the paper's TSS is not of ProdLDA's topics either: the authors' script applies a second softmax to finished "
        "topics, and puts each word's share under the word before"
    )
    sizes = {(row["documents"], row["words"]) for row in known if row["model"] == ALIKE}
    if sizes != {_SIZES}:
        return f"{said} (the larger scales show what comes of it)."
    apart = max(
        abs(row[f"words alike, {scenario}"] / row[f"paper, {scenario}"] - 1)
        for row, scenario in product(_published(known), (CENTRAL, ALONE))
    )
    return (
        f"{said}. With topics in which all words are alike it gives the paper's figures to within {100 * apart:.1f} % (table "
        "below), and these differ between scenarios only because a node has seen fewer words."
    )


def _above_prior(known: Sequence[Row]) -> Claim:
    found = means(known, ("model", "scenario", "shared", "eta"), (TSS,))
    prior = {(row["shared"], row["eta"]): row[TSS] for row in found if row["model"] == PRIOR}
    above = [row[TSS] > prior[row["shared"], row["eta"]] for row in found if row["model"] in MODELS]
    theirs = [figures[4] for axis in THEIRS.values() for figures in axis.values()]
    return Claim(
        "Topics of every trained model are nearer to the true ones than another draw of the prior",
        f"the prior's TSS is {min(theirs):.1f} (eta = 0.01) to {max(theirs):.1f} (eta = 1), all models above",
        f"the prior's is {min(prior.values()):.1f} to {max(prior.values()):.1f}; {sum(above)} of {len(above)} means above",
        verdict(above),
        "It is a low bar: topics in which all words are alike pass it, and know nothing.",
    )


def _equal(known: Sequence[Row]) -> Claim:
    of = {(row["model"], row["scenario"], row["shared"], row["eta"], row["seed"]): row[TSS] for row in known}
    apart: dict[str, list[float]] = {}
    for (model, scenario, *place), score in of.items():
        if scenario == FEDERATED:
            apart.setdefault(model, []).append(score - of[(model, CENTRAL, *place)])
    exact = max(map(abs, apart[BY_GIBBS]))
    mean, away = mean_with_interval(apart[ADDITIVE])
    return Claim(
        "Federated training is equivalent to centralised training",
        "argued, not measured",
        f"federated less centralised TSS: {exact:.0e} at most (`lda`), {mean:+.2f} ± {away or 0:.2f} of 50 (additive ProdLDA)",
        verdict((exact < 1e-9, abs(mean) <= (away or 0))),
        "`lda` adds up counts over all documents, and its draws depend on a document alone, so both are the same computation. "
        "A step of ProdLDA reads a batch: one place goes through its documents in turn, nodes draw anew in each step. Given "
        "the same documents in each step, both end at the same weights, as a test of the federation shows. Batch "
        "normalisation would break that, so the paper's ProdLDA has no federated row here.",
    )


# ---- Fig. 4 --------------------------------------------------------------------------------------------------------------


def _far(rows: Sequence[Row]) -> list[Row]:
    named = {AGAIN: "the node itself, trained again", SHARED: "all nodes, federated"}
    table = []
    for row in means(rows, ("evaluated", "topics"), (*NODES, "mean"), 3):
        who = row["evaluated"]
        line: Row = {"from topics of": named.get(who, f"the node {who}"), "topics": row["topics"]}
        for name in (*NODES, "mean"):
            line |= {name: None, f"{name}_away": None} if name == who else {n: row[n] for n in (name, f"{name}_away")}
        table.append(line)
    return table


def _subject_means(rows: Sequence[Row]) -> dict[tuple[str, int], Row]:
    return {(row["evaluated"], row["topics"]): row for row in means(rows, ("evaluated", "topics"), (*NODES, "mean"))}


def _nearest(of: Mapping[tuple[str, int], Row], node: str, topics: int) -> Row:
    """The other node whose topics are nearest to this node's."""
    return min((of[other, topics] for other in NODES if other != node), key=lambda row: float(row[node]))


def _subject_plot(rows: Sequence[Row]) -> Row:
    of = _subject_means(rows)
    bars = {
        "the nearest other node, 10 topics": [_nearest(of, node, 10) for node in NODES],
        "federated, 10 topics": [of[SHARED, 10]] * len(NODES),
        "federated, 25 topics": [of[SHARED, 25]] * len(NODES),
        "the node itself, trained again": [of[AGAIN, 10]] * len(NODES),
    }
    return {
        "figure": OF_SUBJECTS,
        "title": "How far a node's 10 topics are from other topics",
        "x": "node",
        "y": "AMWMD, mean over topics, less is better",
        "bars": True,
        "marks": list(NODES),
        "lines": {
            bar: [[x, row[node]] for x, (node, row) in enumerate(zip(NODES, of_bar, strict=True), 1)]
            for bar, of_bar in bars.items()
        },
        "away": {bar: [row[f"{node}_away"] for node, row in zip(NODES, of_bar, strict=True)] for bar, of_bar in bars.items()},
    }


def _of_subjects(rows: Sequence[Row]) -> Iterator[Claim]:
    of = _subject_means(rows)
    ten, many, again = of[SHARED, 10], of[SHARED, 25], of[AGAIN, 10]
    best, wider = ({node: _nearest(of, node, topics)[node] for node in NODES} for topics in (10, 25))
    yield Claim(
        "The federated model of 10 topics is nearer to each node's topics than any other node's model (Fig. 4)",
        "bars without numbers: lower at every node",
        "; ".join(f"{node} {ten[node]:.2f} against {best[node]:.2f}" for node in NODES),
        verdict(ten[node] < best[node] for node in NODES),
        f"{_in_pairs(rows, 10)} {ten['mean']:.2f} on average. A node's own model, trained again with another seed, is "
        f"{again['mean']:.2f} away: so much is chance.",
    )
    yield Claim(
        "With 25 topics the federated model is nearer still",
        "bars without numbers: lower than with 10 topics",
        "; ".join(f"{node} {many[node]:.2f} against {ten[node]:.2f}" for node in NODES),
        verdict(many[node] < ten[node] for node in NODES),
        f"{_in_pairs(rows, 25)} {many['mean']:.2f} against {ten['mean']:.2f} on average. With more topics there are more "
        f"chances to be near one: the nearest other node is {_mean(best):.2f} away with 10 topics, {_mean(wider):.2f} with 25.",
    )


def _in_pairs(rows: Sequence[Row], topics: int) -> str:
    """In how many pairs of node and seed the federated model is nearer: of 10 topics than other nodes, of 25 than that one."""
    of = {(row["evaluated"], row["topics"], row["seed"]): row for row in rows}
    nearer = [
        of[SHARED, topics, seed][node] < min(of[other, 10, seed][node] for other in others)
        for seed in sorted({seed for *_, seed in of})
        for node in NODES
        for others in ([other for other in NODES if other != node] if topics == 10 else [SHARED],)
    ]
    return f"It is in {sum(nearer)} of {len(nearer)} pairs of node and seed."


def _mean(of: Mapping[str, Any]) -> float:
    return float(sum(of.values()) / len(of))
