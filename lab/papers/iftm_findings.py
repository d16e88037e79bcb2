"""What follows from the rows of iFTM's experiments: its figures with ours, and a verdict on each claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import exp

from lab.measuring import Row, committed, mean_with_interval
from lab.papers import protected
from lab.papers.experiment import Claim, Findings, Scale, curves, means, pivoted, said, verdict
from lab.papers.iftm_rows import ALIGNED, ALONE, MATCHED, PROTECTED, WITHOUT
from lab.papers.protected import Measure

PARTIES = ("P1", "P2", "P3")
# Table 3: precision in per cent
THEIRS: Mapping[tuple[str, str], float] = {
    ("lda", "P1"): 78.45, ("lda", "P2"): 79.34, ("lda", "P3"): 76.87, ("lda", MATCHED): 80.56,
    ("sentence-lda", "P1"): 79.65, ("sentence-lda", "P2"): 79.12, ("sentence-lda", "P3"): 77.34,
    ("sentence-lda", MATCHED): 81.03,
}  # fmt: skip
_CLEAR = "matched, no noise"
THEIR_PLAIN, USUAL_TAU, MOST, LEAST = 75.67, 0.2, 11.0, 8.0
_SETTING = "20 Newsgroups, 20 topics, four parties"
_JUDGED = (
    Measure("perplexity", "perplexity", less=True, digits=0),
    Measure("precision", "precision of the classifier", digits=3),
)
_NGRAMS = "reproduce-adapted-ngrams"


def findings(scale: Scale, rows: Sequence[Row]) -> Findings:
    """Tables, plots and verdicts."""
    private = [{**row, "perplexity": _perplexity(row)} for row in rows if row["trained"] == PROTECTED]
    rows = [row for row in rows if row["trained"] != PROTECTED]
    every = [{"model": model, **row} for row in rows for model in scale.sizes["models"] if row.get("model", model) == model]
    named = [{**row, "who": _who(row), "perplexity": _perplexity(row)} for row in every]
    three, four = ([row for row in named if row["parties"] == n] for n in (3, 4))
    usual = [row for row in three if row.get("tau", USUAL_TAU) == USUAL_TAU]
    best = _tuned(usual)
    tables = {
        "Fig. 5: perplexity for everybody's words (less is better)": _by_who(best, "perplexity", 1),
        "Fig. 6: log-likelihood of a word by epsilon, LDA and SentenceLDA": _by_epsilon(three),
        "Fig. 7: log-likelihood of a word by round": _by_round(usual),
        "Four parties, LDA: log-likelihood of a word by round": _by_round(four),
        "Table 3: precision of a classifier with topic features": _by_who(best, "precision", 4),
        "Topics: how many, coherence and diversity": means(
            [row for row in best if row["trained"] != WITHOUT], ("model", "who"), ("topics_found", "npmi", "diversity"), 3
        ),
        "What epsilon promises": _promises(rows),
        "Section 4.5: perplexity of trigrams beside topics (committed result `adapted-ngrams`)": _ngrams(),
        **protected.tables(private, ("perplexity", "precision", "npmi", "diversity"), _SETTING),
    }
    claims = (
        *_scarcity(best),
        *_noise(usual, three),
        *_rounds(usual),
        *_four(usual, four),
        *_classifier(best),
        *_language(),
        *_laws(usual),
        *_guarantee(rows),
        *protected.claims(private, _JUDGED),
    )
    plots = [
        _bars(best, "perplexity", "perplexity, less is better", "Figure 5", "Everybody's words"),
        *_epsilon_plots(three),
        *_round_plots(usual, four),
    ]
    plots.append(_bars(best, "precision", "macro precision", "Table 3", "A classifier with topic features"))
    plots += protected.plots(private, _JUDGED, _SETTING)
    return Findings(claims, {title: lines for title, lines in tables.items() if lines}, plots)


def _who(row: Row) -> str:
    if row["trained"] in (ALONE, WITHOUT):
        return str(row.get("party", WITHOUT))
    if row["trained"] == ALIGNED:
        return ALIGNED
    if row["epsilon"] is None:
        return _CLEAR
    law = "" if row["distribution"] == "continuous" else ", whole noise"
    return f"iFTM-{row['epsilon']:g}{law}"


def _perplexity(row: Row) -> float | None:
    return exp(-row["likelihood"]) if "likelihood" in row else None


def _tuned(usual: Sequence[Row]) -> list[Row]:
    """Of one party's own models those with the number of topics that is best for everybody's words; all other rows."""
    alone = means([row for row in usual if row["trained"] == ALONE], ("model", "party", "topics"), ("likelihood",), 6)
    best: dict[tuple[str, str], Row] = {}
    for row in alone:
        place = row["model"], row["party"]
        if place not in best or row["likelihood"] > best[place]["likelihood"]:
            best[place] = row
    return [row for row in usual if row["trained"] != ALONE or row["topics"] == best[row["model"], row["party"]]["topics"]]


# ---- tables and plots ------------------------------------------------------------------------------------------------


def _order(row: Row) -> int:
    who = str(row["who"])
    if who in PARTIES:
        return PARTIES.index(who)
    if who.startswith("iFTM"):
        return 10 + int(who.removeprefix("iFTM-").partition(",")[0]) + (10 if "whole" in who else 0)
    return {WITHOUT: -1, _CLEAR: 40}.get(who, 50)


def _by_who(best: Sequence[Row], of: str, digits: int) -> list[Row]:
    found = means([row for row in best if row.get(of) is not None], ("model", "who"), (of,), digits)
    lines: dict[str, Row] = {}
    for row in sorted((r for r in found), key=_order):
        line = lines.setdefault(row["who"], {"topics of": row["who"]})
        model = row["model"]
        if of == "precision" and (their := _their_precision(row)) is not None:
            line[f"{model}, paper"] = their
        line |= {model: row[of], f"{model}_away": row[f"{of}_away"]}
    columns = list(dict.fromkeys(column for line in lines.values() for column in line))
    return [{column: line.get(column) for column in columns} for line in lines.values()]


def _their_precision(row: Row) -> float | None:
    if row["who"] == WITHOUT:
        return THEIR_PLAIN / 100
    known = THEIRS.get((row["model"], MATCHED if row["who"] == f"iFTM-{MOST:g}" else row["who"]))
    return None if known is None else round(known / 100, 4)


def _by_epsilon(three: Sequence[Row]) -> list[Row]:
    some = [row for row in three if row["trained"] == MATCHED and row["epsilon"] is not None]
    found = means(some, ("model", "distribution", "tau", "epsilon"), ("likelihood",), 3)
    return pivoted(sorted(found, key=lambda row: row["epsilon"]), ("model", "distribution", "tau"), "epsilon", "likelihood")


def _on_the_way(rows: Iterable[Row]) -> list[Row]:
    """A row for each round after which topics were judged."""
    found = []
    for row in rows:
        if row["trained"] in (MATCHED, ALIGNED):
            same = {name: row.get(name) for name in ("model", "who", "seed")}
            for after in row["after"]:
                likelihood = row[f"likelihood_after_{after}"]
                found.append({**same, "round": after, "likelihood": likelihood, "perplexity": exp(-likelihood)})
    return found


def _by_round(rows: Sequence[Row]) -> list[Row]:
    found = means(_on_the_way(rows), ("model", "who", "round"), ("likelihood",), 3)
    table = pivoted(found, ("model", "who"), "round", "likelihood")
    rounds = [f"{number}{end}" for number in sorted({row["round"] for row in found}) for end in ("", "_away")]
    table.sort(key=lambda row: (row["model"], _order(row)))
    return [{column: line.get(column) for column in ("model", "who", *rounds)} for line in table]


def _epsilon_plots(three: Sequence[Row]) -> Iterator[Row]:
    some = [
        row for row in three if row["trained"] == MATCHED and row["epsilon"] is not None and row["distribution"] == "continuous"
    ]
    found = means(some, ("model", "tau", "epsilon"), ("perplexity",))
    for model in dict.fromkeys(row["model"] for row in found):
        own = [{**row, "line": f"tau = {row['tau']:g}"} for row in found if row["model"] == model]
        own.sort(key=lambda row: (row["tau"], row["epsilon"]))
        yield {
            "figure": "Figure 6", "title": model, "x": "epsilon of a word", "y": "perplexity, less is better",
            **curves(own, "line", "epsilon", "perplexity"),
        }  # fmt: skip


def _round_plots(usual: Sequence[Row], four: Sequence[Row]) -> Iterator[Row]:
    found = [(f"{model}, three parties", [row for row in usual if row["model"] == model]) for model in _models(usual)]
    for title, rows in [*found, ("lda, four parties", list(four))]:
        drawn = means(_on_the_way(rows), ("who", "round"), ("perplexity",))
        if drawn:
            drawn.sort(key=lambda row: (_order(row), row["round"]))
            facts = {"figure": "Figure 7", "title": title, "x": "rounds", "y": "perplexity, less is better", "log": True}
            yield {**facts, **curves(drawn, "who", "round", "perplexity")}


def _models(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["model"] for row in rows if row.get("model")))


def _bars(best: Sequence[Row], of: str, y: str, figure: str, title: str) -> Row:
    """Each party's own topics beside shared ones."""
    top = f"iFTM-{MOST:g}"
    marks = {
        **{party: party for party in PARTIES},
        top: "iFTM",
        f"{top}, whole noise": "whole",
        _CLEAR: "clear",
        ALIGNED: "sync",
    }
    found = means([row for row in best if row.get(of) is not None and row["who"] in marks], ("model", "who"), (of,))
    placed = [{**row, "place": list(marks).index(row["who"]) + 1} for row in found]
    named = f"whose topics; iFTM with epsilon {MOST:g}, whole noise, no noise, in step"
    facts = {"figure": figure, "title": title, "x": named, "y": y, "bars": True, "marks": list(marks.values())}
    return {**facts, **curves(placed, "model", "place", of)}


# ---- claims ----------------------------------------------------------------------------------------------------------


def _values(rows: Iterable[Row], model: str, who: str, of: str = "likelihood") -> dict[int, float]:
    return {row["seed"]: row[of] for row in rows if row.get("model") == model and row["who"] == who and row.get(of) is not None}


def _gain(rows: Sequence[Row], model: str, more: str, less: str, of: str = "likelihood") -> tuple[float, float | None]:
    one, other = _values(rows, model, more, of), _values(rows, model, less, of)
    return mean_with_interval([one[seed] - other[seed] for seed in one if seed in other])


def _worded(gain: tuple[float, float | None], digits: int = 3) -> str:
    return f"{gain[0]:+.{digits}f}" + ("" if gain[1] is None else f" ± {gain[1]:.{digits}f}")


def _best_alone(rows: Sequence[Row], model: str, of: str = "likelihood") -> str:
    found = means([r for r in rows if r["trained"] == ALONE and r["model"] == model], ("who",), (of,))
    return str(max(found, key=lambda row: float(row[of]))["who"])


def _listed(gains: Mapping[str, tuple[float, float | None]]) -> str:
    return "; ".join(f"{model} {_worded(gain)}" for model, gain in gains.items())


def _false_words(rows: Sequence[Row]) -> str:
    """How many words of the list pass the threshold at each place by continuous noise alone."""
    words = next(row["words"] for row in rows)
    known = [(e, words * exp(-e * USUAL_TAU) / 2) for e in (LEAST, MOST)]
    passed = " and ".join(f"{count:.0f} (epsilon {e:g})" for e, count in known)
    return f"With tau = 0.2, continuous noise leaves {passed} false words at each place, beside the one that stood there."


def _scarcity(best: Sequence[Row]) -> Iterator[Claim]:
    models, top = _models(best), f"iFTM-{MOST:g}"
    gains = {m: _gain(best, m, top, _best_alone(best, m)) for m in models}
    whole = {m: _gain(best, m, f"{top}, whole noise", _best_alone(best, m)) for m in models}
    free = {m: _gain(best, m, _CLEAR, _best_alone(best, m)) for m in models}
    yield Claim(
        "With epsilon = 11 and tau = 0.2, topics of all parties predict words better than those of any single party (Fig. 5)",
        "LDA: -2.74e7 against -3.03e7 of the best party (P3)",
        f"for a word, beside the best party: {_listed(gains)}; whole noise: {_listed(whole)}",
        verdict(gain > 0 for gain, _ in (*gains.values(), *whole.values())),
        f"{_false_words(best)} Whole noise of the same epsilon leaves hardly any. Without noise: {_listed(free)}. "
        "Each party's number of topics is the better of those tried.",
    )
    steps = [_gain(best, m, more, less)[0] for m in models for less, more in pairwise(PARTIES)]
    yield Claim(
        "A party with more documents learns better topics (Fig. 5)",
        "P3 better than P2 better than P1",
        f"better in {sum(step > 0 for step in steps)} of {len(steps)} steps",
        verdict(step > 0 for step in steps),
        "The judging documents are everybody's, and a larger party also has more subjects here.",
    )


def _noise(usual: Sequence[Row], three: Sequence[Row]) -> Iterator[Claim]:
    found = means(
        [r for r in usual if r["trained"] == MATCHED and r.get("distribution") == "continuous"],
        ("model", "epsilon"),
        ("likelihood",),
    )
    for_model = {m: sorted((r for r in found if r["model"] == m), key=lambda r: r["epsilon"]) for m in _models(usual)}
    steps = [after["likelihood"] > before["likelihood"] for own in for_model.values() for before, after in pairwise(own)]
    yield Claim(
        "Likelihood rises with epsilon (Fig. 6)",
        "LDA: -4.59e7 at 8, -2.74e7 at 11",
        "; ".join(
            f"{m} " + ", ".join(f"{r['likelihood']:.2f} at {r['epsilon']:g}" for r in own) for m, own in for_model.items()
        ),
        verdict(steps),
        f"It rises in {sum(steps)} of {len(steps)} steps.",
    )
    by_tau = means(
        [
            r
            for r in three
            if r["trained"] == MATCHED
            and r["model"] == "lda"
            and r.get("epsilon") == MOST
            and r["distribution"] == "continuous"
        ],
        ("tau",),
        ("likelihood",),
    )
    if len(by_tau) > 1:
        peak = max(by_tau, key=lambda row: float(row["likelihood"]))
        yield Claim(
            "With moderate noise (epsilon = 11) a threshold of 0.2 is good, for it takes most of the noise out (Fig. 6)",
            "tau = 0.2 is best at 11",
            ", ".join(f"tau {row['tau']:g}: {said(row, 'likelihood', 3)}" for row in sorted(by_tau, key=lambda r: r["tau"])),
            verdict([peak["tau"] == USUAL_TAU]),
            f"Best is {peak['tau']:g}. A word is 1 and noise passes tau with chance exp(-11 tau) / 2, so a higher "
            "threshold loses "
            "hardly a word and more of the noise.",
        )


def _first(rows: Sequence[Row], model: str, who: str, at_least: float) -> int | None:
    found = means(_on_the_way([r for r in rows if r["model"] == model and r["who"] == who]), ("round",), ("likelihood",))
    reached = [row["round"] for row in sorted(found, key=lambda r: r["round"]) if row["likelihood"] >= at_least]
    return reached[0] if reached else None


def _rounds(usual: Sequence[Row]) -> Iterator[Claim]:
    needed, ours = dict[str, int | None](), dict[str, int]()
    for model, end in product(_models(usual), ("", ", whole noise")):
        who = f"iFTM-{MOST:g}{end}"
        way = means(_on_the_way([r for r in usual if r["model"] == model and r["who"] == who]), ("round",), ("likelihood",))
        at = max((row for row in way if row["round"] <= 5), key=lambda row: int(row["round"]))
        name = f"{model}{end}"
        ours[name], needed[name] = at["round"], _first(usual, model, ALIGNED, at["likelihood"])
    last = max(row["rounds"] for row in usual if row["trained"] == ALIGNED)
    yield Claim(
        "Within 5 rounds iFTM reaches what synchronising at every iteration reaches in more than 300 (Fig. 7)",
        "under 5 rounds against over 300",
        "; ".join(f"{m}: {ours[m]} against {n or f'more than {last}'}" for m, n in needed.items()),
        verdict(n is None or n > 5 for n in needed.values()),
        "A round of ours has as many sweeps as iFTM's parties make by themselves; one of the others has one. Its "
        "final model has the "
        "topics of all parties, the synchronised one as many as a single party.",
    )
    models = _models(usual)
    over = {m: _gain(usual, m, f"iFTM-{MOST:g}", ALIGNED) for m in models}
    clean = {m: _gain(usual, m, f"iFTM-{MOST:g}", _CLEAR) for m in models}
    yield Claim(
        "Moderate noise makes topics better than conventional training on the original words (Fig. 7)",
        "all models with epsilon above 8 end higher",
        "epsilon 11 beside synchronised: " + "; ".join(f"{m} {_worded(gain)}" for m, gain in over.items()),
        verdict(gain > 0 for gain, _ in clean.values()),
        "Beside the same matched form without noise it is "
        + "; ".join(f"{m} {_worded(gain)}" for m, gain in clean.items())
        + ". The verdict is on the latter.",
    )


def _four(usual: Sequence[Row], four: Sequence[Row]) -> Iterator[Claim]:
    settled = {}
    for name, rows in (("three", usual), ("four", four)):
        who = f"iFTM-{MOST:g}" if any(r["who"] == f"iFTM-{MOST:g}" for r in four) else _CLEAR
        way = means(_on_the_way([r for r in rows if r["model"] == "lda" and r["who"] == who]), ("round",), ("likelihood",))
        if way:
            end = way[-1]["likelihood"]
            settled[name] = next(row["round"] for row in way if row["likelihood"] >= end - 0.01)
    if len(settled) == 2:
        yield Claim(
            "With a fourth party more rounds are needed (section 4.4)",
            "about 15 rounds instead of under 5",
            f"within 0.01 of the last round's likelihood after {settled['three']} rounds with three, "
            f"{settled['four']} with four",
            verdict([settled["four"] > settled["three"]]),
            "Parties match topics in every round, however many they are; a small fourth one changes little.",
        )


def _classifier(best: Sequence[Row]) -> Iterator[Claim]:
    plain = {row["seed"]: row["precision"] for row in best if row["trained"] == WITHOUT}
    models, top = _models(best), f"iFTM-{MOST:g}"
    above = {m: mean_with_interval([v - plain[s] for s, v in _values(best, m, top, "precision").items()]) for m in models}
    yield Claim(
        "Topics as further features make a classifier more precise (Table 3)",
        f"{THEIR_PLAIN} % without, {THEIRS['lda', MATCHED]} % and {THEIRS['sentence-lda', MATCHED]} % with iFTM's",
        f"{100 * sum(plain.values()) / len(plain):.1f} % without; with iFTM-11's: "
        + "; ".join(f"{m} {_worded((100 * g, None if a is None else 100 * a), 1)} points" for m, (g, a) in above.items()),
        verdict(gain > (away or 0) for gain, away in above.values()),
        "The classifier reads the documents' words by TF-IDF already; 600 documents have a label. A gain counts that "
        "exceeds its interval.",
    )
    over = {m: _gain(best, m, top, _best_alone(best, m, "precision"), "precision") for m in models}
    yield Claim(
        "Shared topics help the classifier more than those of any single party (Table 3)",
        "+1.2 points (LDA), +1.4 (SentenceLDA) above the best party",
        "; ".join(f"{m} {_worded((100 * g, None if a is None else 100 * a), 1)} points" for m, (g, a) in over.items()),
        verdict(gain > (away or 0) for gain, away in over.values()),
        "Compared seed by seed with the party that is best on average.",
    )


# ---- beside the rows: committed results, and what epsilon means -------------------------------------------------------------


def _ngrams() -> list[Row]:
    kept = ("ngrams_of", "topics", "everybody", "percent_lower")
    return [{name: row[name] for name in kept} for row in committed(_NGRAMS)["rows"]]


def _language() -> Iterator[Claim]:
    rows = [row for row in committed(_NGRAMS)["rows"] if row["ngrams_of"] == "all text"]
    alone = {m: max(r["percent_lower"] for r in rows if r["topics"].startswith(f"{m} of ")) for m in ("lda", "sentence-lda")}
    shared = {m: next(r["percent_lower"] for r in rows if r["topics"] == f"{m}, matched") for m in alone}
    noised = next(row["percent_lower"] for row in rows if "epsilon 8" in row["topics"])
    yield Claim(
        "A language model adapted by shared topics is better than by those of any party (Table 2)",
        "word error rate 33.18 % without topics, 31.40 % with the best party's LDA, 30.06 % with iFTM's",
        "perplexity lower by: "
        + "; ".join(f"{m} {shared[m]:.1f} % (best party {alone[m]:.1f} %)" for m in alone)
        + f"; `lda` with epsilon 8 {noised:.1f} %",
        verdict([*(shared[m] > alone[m] for m in alone), noised > alone["lda"]]),
        "Trigrams of everybody's text, topics mixed in with weight 0.1 as there. Speech itself was not tried. "
        "Without noise the claim "
        "holds; with whole noise at epsilon 8 the shared topics are no better than one party's.",
    )


def _laws(usual: Sequence[Row]) -> Iterator[Claim]:
    found = {
        (m, e): _gain(usual, m, f"iFTM-{e:g}, whole noise", f"iFTM-{e:g}")
        for m in _models(usual)
        for e in (LEAST, MOST)
        if _values(usual, m, f"iFTM-{e:g}, whole noise")
    }
    yield Claim(
        "Whole noise (discrete Laplace) predicts as well as continuous noise of the same epsilon (not in the paper)",
        "",
        "; ".join(f"{m} at {e:g}: {_worded(gain)}" for (m, e), gain in found.items()),
        verdict(gain > -(away or 0.01) for gain, away in found.values()),
        "It promises the same. A word's place keeps far fewer false words (at 8 one in 3,000 words instead of one in ten), and "
        "floating-point noise as printed would give its word away in its last bits.",
    )


def _promises(rows: Sequence[Row]) -> list[Row]:
    lengths = next(row for row in rows if row["trained"] == WITHOUT)
    return [
        {
            "epsilon": epsilon,
            "one word added or removed": epsilon,
            "one word replaced": 2 * epsilon,
            "a document of median length": epsilon * lengths["median_words"],
            "a long document (95 of 100 are shorter)": epsilon * lengths["long_words"],
        }
        for epsilon in sorted({row["epsilon"] for row in rows if row.get("epsilon")})
    ]


def _guarantee(rows: Sequence[Row]) -> Iterator[Claim]:
    lengths = next(row for row in rows if row["trained"] == WITHOUT)
    yield Claim(
        "Training is epsilon-differentially private",
        "epsilon of 8 to 11, for data that differ in an entry",
        f"8 for one occurrence of one word; {8 * lengths['median_words']:,.0f} for a document of median length",
        verdict([True, False]),
        "As printed, Equations 7 and 20 and line 24 of Algorithm 1 count the raw words, so no epsilon holds. With "
        "noised words everywhere "
        "(as here) the theorem is of one place of a document. Topic-wise normalisation protects nothing: the counts "
        "can be worked out "
        "again from the shares (`audits/evidence`). `protocols/iftm.md` has the proof and its limits.",
    )
