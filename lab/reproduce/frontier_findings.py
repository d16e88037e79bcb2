"""What follows from the rows of the frontier of privacy and utility: means over seeds, curves, and which goals they hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from lab.measuring import Row
from lab.reproduce.contenders import (
    AGAIN,
    ASSIGNED,
    CONTROL,
    DELTA,
    FREQUENCIES,
    MOMENTS,
    NEVER_PRIVATE,
    NOISED,
    PLAIN,
    PUBLIC,
    SPECTRAL,
    STARTED,
    STARTED_PLAIN,
    TOPICS_KNOWN,
)
from lab.reproduce.frontier_cases import (
    CENTRAL,
    DISTRIBUTED,
    HELD_OUT,
    HELPERS,
    NEWS,
    NEWS_FEW,
    NO_NOISE,
    PARTIES,
    SNIPPETS_FEW,
    TITLES,
    frontier_corpora,
)
from securetm.plans.rules import noise_of_one_round

SAME = ("corpus", "topics", "model", "profile", "epsilon", "judging")
JUDGED = ("f1", "held_out", "npmi_held_out", "diversity", "product", "npmi", "product_all")
RELEVANT = ("npmi_held_out_relevant", "diversity_relevant", "product_relevant", "npmi_relevant", "product_all_relevant")
FIGURES = (*JUDGED, *RELEVANT, "rounds", "seconds", "megabytes", "noise")
SHOWN = (*SAME[:5], *JUDGED[:5], "rounds", "seconds")  # in a terminal, which has no room for more
# More than a few lines nobody could tell apart.
DRAWN = (*((model, CENTRAL) for model in (PUBLIC, PLAIN, MOMENTS, SPECTRAL)), (PUBLIC, DISTRIBUTED))
SPREAD = ("f1", "held_out")
PLOTTED = {"f1": "classification (macro F1)", "perplexity": "perplexity of held-out words", "product": "NPMI x diversity"}


def found(runs: Sequence[Row]) -> Row:
    """The result: means of each case over its seeds, goals, curves, and which corpora settings were chosen on."""
    rows = means(runs)
    corpora = [
        {
            "corpus": name,
            "words_from": corpus.words_from,
            "settings": "chosen on it" if corpus.settings_chosen else "judged on it",
        }
        for name, corpus in frontier_corpora().items()
        if any(row["corpus"] == name for row in rows)
    ]
    return {
        "reproduction": "private-frontier",
        "columns": list(SHOWN),
        "rows": rows,
        "runs": list(runs),
        "tables": {"Goals": goals_of(rows, runs), "Corpora": corpora},
        "plots": [plot for name in dict.fromkeys(row["corpus"] for row in rows) for plot in plots(rows, name)],
    }


def means(runs: Sequence[Row]) -> list[Row]:
    """One row for each case: means over the seeds, and how far apart the seeds are."""
    of_case: dict[tuple[Any, ...], list[Row]] = {}
    for run in runs:
        with_products = dict(run)  # coherence alone is easy: the same coherent words in every topic have it too
        for name, one, other in (("product", "npmi_held_out", "diversity"), ("product_all", "npmi", "diversity")):
            for of in ("", "_relevant"):
                if run.get(one + of) is not None:
                    with_products[name + of] = run[one + of] * run[other + of]
        of_case.setdefault(tuple(run[name] for name in SAME), []).append(with_products)
    found = []
    for each in of_case.values():
        row = {name: each[0][name] for name in SAME} | {"seeds": len(each)}
        known = {name: [run[name] for run in each if run.get(name) is not None] for name in FIGURES}
        row |= {name: round(float(np.mean(values)), 4) if values else None for name, values in known.items()}
        apart = {name: round(float(np.ptp(known[name])), 4) if len(known[name]) > 1 else None for name in SPREAD}
        found.append({**row, **{f"{name}_spread": value for name, value in apart.items()}})
    return found


# ---- curves ----------------------------------------------------------------------------------------------------------


def plots(rows: Sequence[Row], corpus: str) -> list[Row]:
    """Each measure against epsilon on one corpus with 20 topics, and what needs no epsilon as level lines."""
    mine = [row for row in rows if (row["corpus"], row["topics"], row["judging"]) == (corpus, 20, HELD_OUT)]
    drawn = []
    for measure, title in PLOTTED.items():
        lines = dict(_lines([row for row in mine if _value(row, measure) is not None], measure))
        if lines:
            drawn.append({"title": f"{title}, {corpus}", "x": "epsilon per document", "y": measure, "lines": lines})
    return drawn


def _lines(rows: Sequence[Row], measure: str) -> Iterator[tuple[str, list[tuple[float, Any]]]]:
    most = max((row["epsilon"] for row in rows if row["epsilon"]), default=8.0)
    for model, form in DRAWN:
        mine = [row for row in rows if (row["model"], row["profile"]) == (model, form)]
        if mine:
            yield f"{model}, {form.removeprefix('dp-')}", [(row["epsilon"], _value(row, measure)) for row in mine]
    for row in rows:
        if row["profile"] == NO_NOISE and row["model"] in (PUBLIC, *NEVER_PRIVATE):
            level = _value(row, measure)
            yield f"{row['model']}{', no noise' * (row['model'] == PUBLIC)}", [(0.0, level), (most, level)]


def _value(row: Row, measure: str) -> float | None:
    """A figure to draw, which is not below 0."""
    if measure == "perplexity":
        return None if row["held_out"] is None else math.exp(-row["held_out"])
    value = row[measure]
    return None if value is None or (row["model"] == FREQUENCIES) else max(value, 0.0)


# ---- goals: what the private models were to reach ------------------------------------------------------------------------

RECOMMENDED = PUBLIC
F1 = {PUBLIC: {1.0: 0.31, 3.0: 0.33, 8.0: 0.35}, PLAIN: {1.0: 0.28, 3.0: 0.32, 8.0: 0.34}}
LIKELIHOOD = {PUBLIC: {1.0: -6.08, 3.0: -6.02, 8.0: -5.98}, PLAIN: {1.0: -6.20, 3.0: -6.08, 8.0: -6.02}}
_AS = {PUBLIC: STARTED, PLAIN: STARTED_PLAIN}  # whose goals are those of the start that it adds a question to
NO_MORE_EPSILON = 1.3  # times the epsilon of central noise for the same figure
JUDGED_AT = (1.0, 3.0, 8.0)
READABLE = 0.13  # NPMI times diversity: what a trial without noise had, by its heaviest words
NOT_OURS = (FREQUENCIES, NOISED, CONTROL, SPECTRAL)  # what stands beside the models
SURE = (5.0, 95.0)  # percentiles
_NOTHING_KNOWN = {"topics_known": None, "assignments_known": None, "noised_frequencies": None}


@dataclass(frozen=True)
class FrontierRows:
    """The rows, as goals look at them."""

    rows: Sequence[Row]

    def figure(self, measure: str, model: str, profile: str, epsilon: float | None, corpus: str = NEWS) -> float | None:
        """One figure with 20 topics; None where it was not measured."""
        wanted = {"corpus": corpus, "topics": 20, "model": model, "profile": profile, "epsilon": epsilon, "judging": HELD_OUT}
        there = (row[measure] for row in self.rows if all(row[name] == value for name, value in wanted.items()))
        return next(there, None)

    def curve(self, measure: str, model: str, profile: str) -> list[tuple[float, float]]:
        """A figure of 20 Newsgroups against epsilon."""
        epsilons = sorted({row["epsilon"] for row in self.rows if row["epsilon"]})
        points = [(epsilon, self.figure(measure, model, profile, epsilon)) for epsilon in epsilons]
        return [(epsilon, value) for epsilon, value in points if value is not None]


def goals_of(rows: Sequence[Row], runs: Sequence[Row] = ()) -> list[Row]:
    """Each goal with what was reached; goals whose rows were not made are left out. `runs` are the rows before their means."""
    measured = FrontierRows(rows)
    parts = (
        _figures(measured),
        _readable(measured),
        _distributed(measured, runs),
        _few(measured),
        _titles(measured),
    )
    return [goal for part in parts for goal in part]


def _goal(
    goal: str,
    wanted: float | None,
    reached: float | None,
    *,
    most: bool = False,
    above: bool = False,
    known: Mapping[str, float | None] | None = None,
) -> Iterator[Row]:
    """One goal. `known`: what else spends the same budget and knows something that no private model may know."""
    if wanted is None or reached is None:
        return
    held = reached <= wanted if most else reached > wanted if above else reached >= wanted
    between = {"low": None, "high": None}
    beside = {
        name: None if figure is None else round(figure, 4) for name, figure in {**_NOTHING_KNOWN, **(known or {})}.items()
    }
    yield {"goal": goal, "wanted": round(wanted, 4), "reached": round(reached, 4), "held": bool(held), **between, **beside}


def _figures(measured: FrontierRows) -> Iterator[Row]:
    for name, title, wanted in (("f1", "macro F1", F1), ("held_out", "log-likelihood per held-out word", LIKELIHOOD)):
        for model, by_epsilon in (*wanted.items(), *((_AS[model], goals) for model, goals in wanted.items())):
            for epsilon, least in by_epsilon.items():
                goal = f"{NEWS}, 20 topics, central, epsilon {epsilon:g}, {model}: {title} at least"
                reached, known = measured.figure(name, model, CENTRAL, epsilon), _oracles(measured, name, epsilon)
                yield from _goal(goal, least, reached, known=known)


def _oracles(measured: FrontierRows, measure: str, epsilon: float) -> Mapping[str, float | None]:
    """What one round reaches that is told the true topics, or each word's topic."""
    told = {"topics_known": TOPICS_KNOWN, "assignments_known": ASSIGNED}
    return {name: measured.figure(measure, model, CENTRAL, epsilon) for name, model in told.items()}


def _readable(measured: FrontierRows) -> Iterator[Row]:
    for measure, where in (("product", "held-out documents"), ("product_all", "all documents")):
        for model, of, words in ((RECOMMENDED, "", "heaviest words"), (AGAIN, "_relevant", "words by relevance")):
            without = measured.figure(measure + of, model, NO_NOISE, None)
            for epsilon in JUDGED_AT:
                reached = measured.figure(measure + of, model, CENTRAL, epsilon)
                title = f"{NEWS}, epsilon {epsilon:g}, {words}: NPMI ({where}) x diversity at least"
                known = _oracles(measured, measure + of, epsilon)
                yield from _goal(f"{title} that without noise", without, reached, known=known)
                if of:
                    yield from _goal(title, READABLE, reached, known=known)


def _distributed(measured: FrontierRows, runs: Sequence[Row]) -> Iterator[Row]:
    for measure in ("held_out", "f1"):
        central = measured.curve(measure, RECOMMENDED, CENTRAL)
        for epsilon in JUDGED_AT:
            figure = measured.figure(measure, RECOMMENDED, DISTRIBUTED, epsilon)
            goal = f"{NEWS}, distributed at epsilon {epsilon:g}: times central's epsilon for the same {measure}, at most"
            if figure is None or len(central) < 2:
                continue
            for row in _goal(goal, NO_MORE_EPSILON, epsilon / _epsilon_for(figure, central), most=True):
                yield {**row, **_between_seeds(runs, measure, epsilon), "note": _limit(epsilon)}


def _between_seeds(runs: Sequence[Row], measure: str, epsilon: float) -> Row:
    """Between which ratios of epsilons 90 of 100 samples of the seeds lie, drawn with replacement: all samples are tried."""
    said = [run for run in runs if (run["corpus"], run["topics"], run["model"]) == (NEWS, 20, RECOMMENDED)]
    said = [run for run in said if run["judging"] == HELD_OUT]
    by_seed = {(run["profile"], run["epsilon"], run["seed"]): run[measure] for run in said}
    seeds = sorted({seed for profile, at, seed in by_seed if (profile, at) == (DISTRIBUTED, epsilon)})
    epsilons = sorted({at for profile, at, _ in by_seed if profile == CENTRAL})
    if len(seeds) < 2 or any((CENTRAL, at, seed) not in by_seed for at in epsilons for seed in seeds):
        return {}
    ratios = []
    for sample in product(seeds, repeat=len(seeds)):
        central = [(at, float(np.mean([by_seed[CENTRAL, at, seed] for seed in sample]))) for at in epsilons]
        figure = float(np.mean([by_seed[DISTRIBUTED, epsilon, seed] for seed in sample]))
        ratios.append(epsilon / _epsilon_for(figure, central))
    low, high = np.percentile(ratios, SURE)
    return {"low": round(float(low), 2), "high": round(float(high), 2)}


def _limit(epsilon: float) -> str:
    """Why no rule for shares comes below a ratio: the honest parties alone must add the whole noise."""
    noise, of_six = math.sqrt(PARTIES / (PARTIES - HELPERS)), math.sqrt(6 / (6 - HELPERS))
    return (
        f"low and high: 90 % of samples of the seeds. If {PARTIES} parties draw a share each, of whom {HELPERS} may help the "
        f"coordinator, the sum has {noise:.2f} times central's noise, nobody missing (protocols/surplus_noise.md): "
        f"{dearer_by(epsilon, noise):.2f} times the epsilon; with six parties {dearer_by(epsilon, of_six):.2f}"
    )


def dearer_by(epsilon: float, noise: float) -> float:
    """Times which epsilon a single Gaussian answer has so many times the noise of one with this epsilon."""
    wanted = noise * noise_of_one_round(epsilon, DELTA)
    low, high = epsilon / 10, epsilon
    while high > low * (1 + 1e-4):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if noise_of_one_round(middle, DELTA) > wanted else (low, middle)
    return epsilon / high


def _epsilon_for(figure: float, curve: Sequence[tuple[float, float]]) -> float:
    """Where the curve has that figure, with straight lines in the logarithm of epsilon; its ends, where it never does."""
    epsilons, values = np.array(curve).T
    rising = np.maximum.accumulate(values) + 1e-9 * np.arange(len(values))
    return math.exp(float(np.interp(figure, rising, np.log(epsilons))))


def _few(measured: FrontierRows) -> Iterator[Row]:
    for corpus in (NEWS_FEW, SNIPPETS_FEW):
        frequencies = measured.figure("held_out", FREQUENCIES, NO_NOISE, None, corpus)
        for epsilon in JUDGED_AT:
            word = "better than" if epsilon > 1 else "at least as well as"
            goal = f"{corpus}, epsilon {epsilon:g}: predicts held-out words {word} word frequencies"
            reached = measured.figure("held_out", RECOMMENDED, CENTRAL, epsilon, corpus)
            yield from _goal(goal, frequencies, reached, above=epsilon > 1)


def _titles(measured: FrontierRows) -> Iterator[Row]:
    """Beside exact word frequencies: those that the whole budget buys, since no model knows its frequencies better."""
    frequencies = measured.figure("held_out", FREQUENCIES, NO_NOISE, None, TITLES)
    for row in measured.rows:
        if row["corpus"] == TITLES and row["model"] not in NOT_OURS:
            noised = measured.figure("held_out", NOISED, row["profile"], row["epsilon"], TITLES)
            by = f"epsilon {row['epsilon']:g}" if row["epsilon"] else "no noise"
            goal = f"{TITLES}, {row['model']}, {row['profile']}, {by}: predicts at least as well as word frequencies"
            yield from _goal(goal, frequencies, row["held_out"], known={"noised_frequencies": noised})
