"""Puts the result of a finished run together, from the stores of all its roles. It runs nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
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
from securetm.federation.folder import RUN, RunFolder
from securetm.federation.origins import before_in_ledger, before_in_trial, facts_of, moved_since, product_of
from securetm.federation.party.alone import kept_figures
from securetm.federation.party.failure_log import lost_in
from securetm.federation.simulation.comparison import Comparison, PartyFigures
from securetm.federation.store import (
    PartyStore,
    read_json,
)
from securetm.federation.transcript import WorkTimer
from securetm.models.noisy_counts import top_words_above_noise
from securetm.models.quality import named_topics


def summary(folder: RunFolder, trained: Trained, compared: Comparison, timer: WorkTimer) -> dict[str, Any]:
    """The result of a finished run, as `securetm run --json` prints it."""
    model, own, everywhere = folder.agreement.model, compared.own, compared.everywhere
    up, down = timer.transcript.traffic()
    return {
        "run": folder.path.resolve().name,
        "directory": str(folder.path),
        "model": folder.agreement.plan.model.name,
        "profile": folder.agreement.plan.profile,
        "parties": list(folder.members),
        "rounds": trained.rounds,
        "topics": named_topics(model.topics(trained.state), trained.vocabulary) if trained.rounds else [],
        "above_noise": top_words_above_noise(model, trained.state) if trained.rounds else None,
        **compared.useful,
        **forecast_record(folder.agreement, len(folder.members), compared.useful),
        **model.findings(trained.state),
        "start": dict(compared.began),
        "control": None if compared.control is None else dict(compared.control),
        "moved": moved_since(folder.agreement, trained.state if trained.rounds else {}, trained.vocabulary),
        "quality": {**everywhere, **_known(trained.quality)},
        "quality_by_simulation": sorted(set(everywhere) - set(_known(trained.quality))),  # nobody in a federation could say
        "stopped": trained.stopped,
        "epochs": folder.agreement.plan.training.epochs,  # that the plan asks for; 0: rounds
        "alone": {name: dict(own[name].alone) for name in folder.members if own[name].alone},
        "shared_at_party": {name: dict(own[name].shared) for name in folder.members},
        "adapted_at_party": {name: dict(own[name].adapted) for name in folder.members if own[name].adapted},
        "topics_alone": {n: named_topics(one.topics, trained.vocabulary) for n, one in own.items() if one.topics is not None},
        "comparison": dict(compared.facts),
        "prevalence": {name: [round(float(share), 4) for share in own[name].prevalence] for name in folder.members},
        "documents": {name: dict(own[name].documents) for name in folder.members},
        **_left_out(folder, own),
        "not_finite": {
            name: lost_in(folder.party(name)) for name in folder.members
        },  # rows and coordinates, by the parties' logs
        "spent": [spent_by(folder, name) for name in folder.members],
        "origins": facts_of(folder.agreement, origin_of_run(folder)),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(timer.seconds(), 2),  # of all parts of the run, interrupted and killed ones too
        "bytes_up": up,  # all that was sent, also for rounds that were run again after an interruption
        "bytes_down": down,
    }


def _left_out(folder: RunFolder, own: Mapping[str, PartyFigures]) -> dict[str, Any]:
    """Counts the documents that were left out: when they were read, and at each party because they have no agreed word."""
    facts = read_json(folder.path / RUN)
    dropped = {name: list(facts.get("dropped", {}).get(name, ())) for name in folder.members}
    for name, each in dropped.items():
        without = own[name].documents["all"] - own[name].documents["with_agreed_words"]
        each += [{"reason": NOT_AGREED, "documents": without}] if without else []
    return {"source": facts.get("source"), "dropped": dropped}


def _known(quality: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in quality.items() if value == value}


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
        by_word, beside = budget is not None and budget.unit is Unit.WORD, before.epsilon_beside_ledger
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
    store = PartyStore(folder.party(name))
    lengths = kept_figures(store, "document")
    store.close()
    if not lengths:
        return None
    each = before + basic_epsilon(leaves_of([spend for run in ledger.runs() for spend in run.spends()]))
    words = {which: int(lengths[f"{which}_words"]) for which in ("median", "p95")}
    epsilons = {f"{which}_epsilon": each * count if each < math.inf else None for which, count in words.items()}
    return {**{f"{which}_words": count for which, count in words.items()}, **epsilons}
