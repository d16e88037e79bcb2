"""Reads from a finished run what its page of topics shows. What a place does not know, its page leaves out.

The folder of a simulation knows the shares of topics at every party. A coordinator's folder and a party's do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from securetm.accounting.calculator.budget_report import unit_name
from securetm.contracts import Array, Unit
from securetm.corpus.corpus import Corpus
from securetm.federation.file_digests import RUN
from securetm.federation.finished import FinishedRun
from securetm.federation.folder import RESULT, result_of
from securetm.federation.joining_result import REPORT
from securetm.federation.running_errors import DamagedStore
from securetm.federation.store import read_json
from securetm.federation.topics_by_date import TopicsByDate
from securetm.profiles import read_profile
from securetm.reports.topic_page.documents_behind import documents_behind
from securetm.reports.topic_page.shown_topics import ShownTopics
from securetm.reports.usefulness_sentences import of_use
from securetm.wording import counted, upward, upward_figure

_UNPROTECTED = "No budget: the model may tell who is in it"


def shown_topics(
    finished: FinishedRun,
    *,
    labels: Mapping[int, str] | None = None,
    model_only: bool = False,
    documents: Mapping[str, Corpus] | None = None,
    quoted: bool = False,
    over_time: TopicsByDate | None = None,
) -> ShownTopics:
    """What the page of this run shows. With `model_only`, nothing but what whoever has the model knows.

    `documents`, by whose they are, are those of `over_time`. Only if they are `quoted`, the page shows their words.
    """
    result, profile = _result(finished.folder), read_profile(finished.plan.profile)
    by_party = {} if model_only else _by_party(result)
    given = documents or {}
    behind = next((documents_behind(finished, held, whose) for whose, held in given.items()), None) if quoted else None
    shares, shares_of = _everywhere(result, by_party)
    if behind is not None and shares is None:
        shares, shares_of = behind.shares, f"the documents of {behind.whose}"
    return ShownTopics(
        title=finished.name,
        facts=(*_facts(result, finished, model_only), ("Privacy", _spent(result))),
        topics=finished.components_,
        vocabulary=finished.vocabulary,
        judged="" if model_only or result.get("useful") is None else of_use(result),
        of_use=result.get("useful") is not False,
        danger=profile.danger,
        shares=shares,
        shares_of=shares_of,
        by_party=by_party,
        above_noise=finished.model.above_noise(finished.state),
        noised=finished.spent_a_budget(),
        labels=labels or {},
        behind=behind,
        over_time=over_time,
        over_time_of=next(iter(given)) if len(given) == 1 else "all parties",
        secret=finished.is_adapted(),
    )


def _result(run: Path) -> dict[str, Any]:
    """The result of a run, or what a party reports of it."""
    if (run / RUN).is_file():
        return result_of(run)
    report = read_json(run / REPORT)
    if missing := [name for name in ("party", "federation", "rounds", "spent") if name not in report]:
        raise DamagedStore(str(run / REPORT), f"it does not say `{missing[0]}`")
    return report


def _by_party(result: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(shares, dtype=float) for name, shares in (result.get("prevalence") or {}).items()}


def _everywhere(result: Mapping[str, Any], by_party: Mapping[str, Array]) -> tuple[Array | None, str]:
    """The share of each topic in all documents, and whose these are. A run of an earlier version kept no counts of them."""
    if not by_party:
        return None, ""
    held = result.get("documents") or {}
    documents = np.array([held[name]["with_agreed_words"] if held else 1 for name in by_party], dtype=float)
    counts = f"{counted(int(documents.sum()), 'document')} of " if held else ""
    every = f"all {counts}{counted(len(by_party), 'party', 'parties')}"
    return documents / max(documents.sum(), 1) @ np.array(list(by_party.values())), every


def shares_everywhere(finished: FinishedRun) -> tuple[Array | None, str]:
    """The share of each topic in all documents, and whose these are; None where this folder does not know it."""
    if not (finished.folder / RESULT).is_file():
        return None, ""
    result = result_of(finished.folder)
    return _everywhere(result, _by_party(result))


def _facts(result: Mapping[str, Any], finished: FinishedRun, model_only: bool) -> tuple[tuple[str, str], ...]:
    model, words = finished.plan.model.name, len(finished.vocabulary)
    size = f"{model}, {counted(len(finished.components_), 'topic')}, {counted(words, 'word')}"
    return ("Model", size), ("Trained by", _trained_by(result, model_only)), ("Profile", _profile(finished))


def _trained_by(result: Mapping[str, Any], model_only: bool) -> str:
    rounds = f"{counted(result['rounds'], 'round')}"
    if "parties" not in result:  # a party's own report
        return f"{result['party']} in federation {result['federation']}, {rounds}"
    held = {} if model_only else result.get("documents") or {}
    documents = f" with {counted(sum(one['all'] for one in held.values()), 'document')}" if held else ""
    return f"{counted(len(result['parties']), 'party', 'parties')}{documents}, {rounds}"


def _profile(finished: FinishedRun) -> str:
    profile = read_profile(finished.plan.profile)
    return f"{profile.name}: {profile.title}"


def _spent(result: Mapping[str, Any]) -> str:
    """The most that this run spent of any party's budget."""
    given = result["spent"]
    spends = [one for one in (given if isinstance(given, list) else [given]) if one and one["epsilon"] is not None]
    if not spends:
        return _UNPROTECTED
    most = max(spends, key=lambda one: one["epsilon"])
    return f"Epsilon {upward(most['epsilon'])} per {unit_name(Unit(most['unit']))} at delta {upward_figure(most['delta'])}"
