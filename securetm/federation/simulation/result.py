"""Puts the result of a finished run together, from the stores of all its roles. It runs nothing."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

from securetm.accounting.closed_forms import basic_epsilon
from securetm.accounting.composition import total
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.all_runs import all_runs
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import leaves_of
from securetm.contracts import Unit
from securetm.contracts.origin import Origin
from securetm.corpus.records import NOT_AGREED
from securetm.federation.budget.forecast import forecast_record
from securetm.federation.coordinator.coordinator import Trained
from securetm.federation.coordinator.run_result import run_result
from securetm.federation.folder import RUN, RunFolder
from securetm.federation.origins import before_in_ledger, before_in_trial, product_of
from securetm.federation.party.failure_log import lost_in
from securetm.federation.party_store import PartyStore
from securetm.federation.simulation.comparison import Comparison
from securetm.federation.store import read_json
from securetm.federation.transcript import WorkTimer


def summary(folder: RunFolder, trained: Trained, compared: Comparison, timer: WorkTimer) -> dict[str, Any]:
    """The result of a finished run, as `securetm run --json` prints it."""
    spent = [spent_by(folder, name) for name in folder.members]
    told = run_result(folder, trained, timer, compared.began, spent, origin_of_run(folder), seen=trained.rounds > 0)
    quality = {**compared.everywhere, **told["quality"]}
    facts, dropped = read_json(folder.path / RUN), dict[str, list[Any]]()
    for name, documents in compared.told["documents"].items():
        without = documents["all"] - documents["with_agreed_words"]
        left_out = [{"reason": NOT_AGREED, "documents": without}] if without else []
        dropped[name] = [*facts.get("dropped", {}).get(name, ()), *left_out]
    return {
        **told,
        **forecast_record(folder.agreement, len(folder.members), compared.told),
        **folder.agreement.model.findings(trained.state),
        **compared.told,
        "quality": quality,
        "quality_by_simulation": sorted(set(compared.everywhere) - set(told["quality"])),  # nobody in a federation could say
        "source": facts.get("source"),
        "dropped": dropped,
        "not_finite": {name: lost_in(folder.party(name)) for name in folder.members},  # by the parties' logs
    }


def origin_of_run(folder: RunFolder) -> Origin:
    """Returns the origin of what this simulation writes: the most that it spent at any party, by the ledgers."""
    agreement, epsilon = folder.agreement, None
    if (budget := agreement.budget) is not None:
        ledgers = [Ledger.read(folder.ledger(name)) for name in folder.members]
        epsilon = max(total(ledger.spends(folder.name), ALONE * budget.delta).epsilon for ledger in ledgers)
        for ledger in ledgers:
            ledger.close()
    return product_of(agreement, folder.name, folder.members, epsilon, simulated=True)


def spent_by(folder: RunFolder, name: str) -> dict[str, Any]:
    """Returns what the run spent of one party's budget, with what it started from, and what all runs told together.

    The figures are those of that party's ledger.
    """
    budget, path = folder.agreement.budget, folder.ledger(name)
    together = all_runs(path)
    assert together is not None  # the party made its ledger before it answered
    with Ledger.read(path) as ledger:
        number, head = ledger.head
        spends, witnessed = ledger.spends(folder.name), ledger.witnessed()
        runs = [account.run for account in ledger.runs()]
        before = before_in_trial(folder.agreement) if folder.is_trial else before_in_ledger(folder.agreement, runs)
        by_word = budget is not None and budget.unit is Unit.WORD
        beside = math.fsum(one.epsilon for one in before.beside_ledger)  # what this ledger does not hold has told, too
        whole = {"per_document": _per_document(folder, name, ledger, beside)} if by_word else {}
    of_ledger = {"ledger": str(path), "trial": folder.is_trial, "entries": number, "head": head.hex()}
    of_ledger |= {"countersigned": witnessed, **together.fields()}
    if budget is None:
        return {"party": name, "unit": together.unit.value, "epsilon": None, "delta": None, **of_ledger}
    mine = total(spends, ALONE * budget.delta)  # its own delta, not the ledger's
    spent = {
        "party": name,
        "unit": budget.unit.value,
        "epsilon": mine.epsilon,
        "delta": budget.delta,
        "accountant": mine.accountant if mine.epsilon else "",
        "budget": budget.epsilon,
        **of_ledger,
        **whole,
    }
    return before.added_to(spent)


def _per_document(folder: RunFolder, name: str, ledger: Ledger, before: float) -> dict[str, Any] | None:
    """Returns the epsilon of a whole document of the party's own lengths, by group privacy at delta 0."""
    with closing(PartyStore(folder.party(name))) as store:
        lengths = store.kept_figures("document")
    if not lengths:
        return None
    each = before + basic_epsilon(leaves_of([spend for run in ledger.runs() for spend in run.spends()]))
    words = {which: int(lengths[f"{which}_words"]) for which in ("median", "p95")}
    epsilons = {f"{which}_epsilon": each * count if each < math.inf else None for which, count in words.items()}
    return {**{f"{which}_words": count for which, count in words.items()}, **epsilons}
