"""Plans that `securetm choose` writes for research corpora: what it promises, and what the run with this plan comes to.

Each plan is chosen by public numbers: how many documents there are, about how long they are, and epsilon. The promise is also
made by a rule that was fitted without the corpus. The run is a whole federation of five parties, which finds its words behind
noise; F1 is that of a classifier on the topics of documents that nobody trained on, also of those without a listed word.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

from lab.documents import classified
from lab.federations import dealt_out
from lab.fits.forecast import fit
from lab.fits.forecast_trials import DOCSTRINGS, MESSAGES, NEWS_POSTS, PAPERS, SNIPPETS, TITLES, points_of, with_judges
from lab.keeping import KeptRows, Key, fits, made
from lab.measuring import OnProgress, Row, committed
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.plans.forecast import FittedRule, ForecastSetting, forecast
from securetm.plans.profile_choice import Answers
from securetm.plans.recommend import plan_from_tables
from securetm.reports.choosing import PlanNotes, chosen
from securetm.runs.finished import FinishedRun
from securetm.settings import parsed_toml
from securetm.stages import Unwatched

PARTIES, JUDGES = 5, 1_500
CASES: Sequence[Key] = [
    {"corpus": corpus, "documents": documents, "epsilon": epsilon, "length": length}
    for corpus, documents, epsilon, length in (
        (SNIPPETS, 7_600, 3.0, 20.0),
        (PAPERS, 8_000, 8.0, 6.0),
        (TITLES, 18_000, 3.0, 5.0),
        (PAPERS, 8_000, 3.0, 6.0),
        (MESSAGES, 5_000, 3.0, 7.0),
        (DOCSTRINGS, 8_000, 3.0, 45.0),
        (NEWS_POSTS, 17_000, 3.0, 120.0),
        (SNIPPETS, 12_000, 8.0, 20.0),
        (SNIPPETS, 12_000, 1.0, 0.0),  # nobody says how long they are
    )
]


def reproduce(
    on_progress: OnProgress | None = None, only: Sequence[str] = (), keep: Path | None = None, workers: int = 1
) -> Row:
    """Chooses and carries out every plan; rows in the file `keep` are not made again."""
    wanted = [key for key in CASES if fits(key, only, "chosen-plans")]
    return found(made(wanted, row, KeptRows(keep), workers, on_progress))


def found(rows: Sequence[Row]) -> Row:
    read = "TagMyNews, M10, StackOverflow titles, SMS, docstrings of installed packages, 20 Newsgroups"
    about = {"corpus": read, "reproduction": "chosen-plans", "parties": PARTIES}
    return {**about, "tables": {"Kept": [kept(rows)]}, "rows": list(rows)}


def kept(rows: Sequence[Row]) -> Row:
    """How often the ratio came out in the band, by the rule that is shipped and by one that was fitted without the corpus."""
    told = dict[str, Any](plans=len(rows))
    for name in ("band", "band_left_out"):
        promised = [row for row in rows if row[name] is not None]
        told[f"{name}: promised"] = len(promised)
        told[f"{name}: kept"] = sum(row[name][0] <= row["ratio"] <= row[name][2] for row in promised)
    return told


def row(key: Key) -> Row:
    train, judges = with_judges(key["corpus"], key["documents"], JUDGES)
    answers = Answers(
        looks=("reader",), hide=("document",), parties=PARTIES, documents=len(train), purpose="explore", per_person=0
    )
    told = chosen(answers, PlanNotes(length=key["length"], epsilon=key["epsilon"]))
    plan = plan_from_tables(parsed_toml(told["plan"].encode(), "the plan"), "the plan")
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of documents without a listed word, which count
        run = begin(Path(place) / "run", plan, dealt_out(train, PARTIES))
        result = execute(run, Unwatched(), comparison=False)
        finished = FinishedRun.open(run.path)
        shares, words = finished.transform(judges), len(finished.vocabulary)
    f1 = classified(shares, np.asarray(judges.labels))
    return {**key, "documents": len(train), **promise(told["forecast"], key["corpus"]), **came(result, words, f1)}


@cache
def _rule_without(corpus: str) -> FittedRule:
    points = points_of(committed("reproduce-usefulness-forecast")["rows"])
    return FittedRule.of(fit([point for point in points if point.family != corpus]))


def promise(told: Mapping[str, Any], corpus: str) -> Row:
    """What was promised, as ratios to the perplexity of word frequencies: the least, the middle and the most."""
    left_out = forecast(ForecastSetting(**told["setting"]), _rule_without(corpus)).record()
    names = ("model", "start", "general_list", "listed", "words", "topics", "rounds")
    facts = {name: told["setting"][name] for name in names}
    return {
        **facts,
        "verdict": told["verdict"],
        "chance": told["chance"],
        "band": _ratios(told["held_out"]),
        "band_left_out": _ratios(left_out["held_out"]),
    }


def came(result: Mapping[str, Any], words: int, f1: float) -> Row:
    gain = result["baseline"]["gain"]["value"]
    return {"found": words, "ratio": round(exp(-gain), 4), "useful": result["useful"], "f1": round(f1, 4)}


def _ratios(band: Mapping[str, float] | None) -> list[float] | None:
    return None if band is None else [round(exp(-band[name]), 3) for name in ("high", "middle", "low")]
