"""What a party keeps of a run that has ended: its own quality figures and a report, beside the model. Nothing of it is sent.

The figures are of its own documents, so they are as secret as these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from securetm.accounting.composition import total
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.all_runs import all_runs
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.federation.origins import before_in_ledger, facts_of, moved_since, product_of
from securetm.federation.party.alone import judge
from securetm.federation.party.party import WORDS, Party
from securetm.federation.release import released_model
from securetm.federation.store import read_arrays, write_json
from securetm.federation.topic_labels import LABELS, TopicLabels
from securetm.models.quality import named_topics
from securetm.plans.agreement import Agreement
from securetm.version import __version__

REPORT = "report.json"
VERSION = 1


def keep_result(party: Party, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Measures the finished model on the party's own documents, and writes the report."""
    folder, rounds = party.store.folder, party.finished or 0
    state, words = read_arrays(released_model(folder), bare=True)[0] if rounds else {}, party.questions.vocabulary
    with party.failure_log.logged():  # the labels beside the model that the training went on from
        if (earlier := party.agreement.earlier) is not None and not (folder / LABELS).exists():
            topics = len(earlier.model.topics(earlier.state))
            TopicLabels.beside(Path(party.agreement.plan.training.continue_from), topics).write(folder)
    with party.failure_log.logged():
        if rounds:
            figures = judge(party.agreement.model, state, party.documents, party.agreement.plan.seed)
            party.store.keep_figures("shared", figures)
    finite = {name: value for name, value in party.store.kept_figures("shared").items() if math.isfinite(value)}
    counted = "SELECT {0}, COUNT(*) FROM {1} GROUP BY {0}"
    told = {"answered": ("question", "rounds"), "refused": ("name", "refusals"), "failures": ("name", "failures")}
    report = {
        "version": VERSION,
        "software": __version__,
        **facts,
        "rounds": rounds,
        "model": party.agreement.plan.model.name,
        "topics": named_topics(party.agreement.model.topics(state), words) if state else [],
        "moved": moved_since(party.agreement, state, words),
        **{what: dict(party.store.rows(counted.format(*of))) for what, of in told.items()},
        "spent": spent(party.ledger.path, party.run, party.agreement) if party.ledger is not None else None,
        "origins": facts_of(party.agreement, product_of(party.agreement, party.run, party.members)),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "quality": finite,
        "directory": str(folder),
        "plan": _plan_with_own_words(party.agreement, folder),
    }
    write_json(folder / REPORT, report)
    return report


def spent(path: Path, run: str, agreement: Agreement) -> dict[str, Any] | None:
    """Returns what this run, with those that it started from, and all runs spent of the data set's budget by that ledger.

    Of a run without a bound there is no figure of its own, only what the total of all runs says. None without a ledger.
    """
    together, own = all_runs(path), agreement.budget
    if together is None:
        return None
    if own is None:
        return {"unit": together.unit.value, "epsilon": None, "delta": None, **together.fields()}
    with Ledger.read(path) as ledger:
        spends, whole, budget = ledger.spends(run), ledger.spent(), ledger.budget
        before = before_in_ledger(agreement, [account.run for account in ledger.runs()])
    spent = {
        "unit": budget.unit.value,
        "epsilon": total(spends, ALONE * own.delta).epsilon,
        "delta": own.delta,
        "of_run": own.epsilon + before.epsilon,
        **together.fields(),
        "budget": budget.epsilon,
        "left": max(0.0, budget.epsilon - whole.epsilon),
        "answers": sum(spend.count for spend in spends),
    }
    return before.added_to(spent)


def _plan_with_own_words(agreement: Agreement, folder: Path) -> dict[str, Any]:
    """The plan as tables. A list of words lies beside the report, wherever the plan's own file is."""
    tables = agreement.plan.tables()
    if agreement.words is not None:
        tables["vocabulary"]["file"] = str((folder / WORDS).resolve())
    elif agreement.base_words:
        tables["vocabulary"]["file"] = ""
    tables["training"] |= {"continue_from": "", "earlier_weight": 1.0}  # the report says how far its topics moved
    return tables
