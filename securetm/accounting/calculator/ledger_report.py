"""The question what a party's ledger holds: spent, allowed, by which run, after which answer. Only `allow_epsilon` writes.

Reading checks the chain, so that a ledger which was changed from outside is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dp_accounting import PoissonSampledDpEvent

from securetm.accounting.calculator.budget_report import (
    FALSE_POSITIVES,
    BudgetReport,
    ByAccountant,
    Plot,
    PlotLine,
    Promise,
    ReportTable,
    sentence,
    sentence_large,
    some,
    unit_name,
)
from securetm.accounting.calculator.composed_report import MEANS, POINTS, replacing
from securetm.accounting.calculator.word_noise import PUBLIC, UNIT, sentence_whole
from securetm.accounting.composition import Total, by_accountant
from securetm.accounting.events import event_from_text
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import SPENT, Accounts
from securetm.accounting.ledger.hash_chain import Entry
from securetm.accounting.ledger.ledger import SeenHead
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.pure import basic_epsilon
from securetm.accounting.spends import Spend, leaves_of
from securetm.accounting.tradeoff import true_positives
from securetm.contracts import Budget, Unit
from securetm.stages import Stages
from securetm.wording import counted, downward, listed, upward

_FILTER = "Renyi divergences added up over adaptively chosen runs: sound whatever was tried after what"


def allow_epsilon(path: Path, epsilon: float) -> None:
    """Changes the party's own budget, which becomes an entry; what was spent stays spent."""
    with Ledger.read(path) as ledger:
        owner, corpus, budget = ledger.owner, ledger.corpus, ledger.budget
    Ledger.open(path, owner, replace(budget, epsilon=epsilon), corpus).close()


def ledger_report(path: Path, progress: Stages, seen: Sequence[SeenHead] = ()) -> BudgetReport:
    """The report of one ledger. A ledger that lacks what others have seen of it is refused by name."""
    with Ledger.read(path) as ledger:
        for one in seen:
            ledger.check_seen(one)
        ended, spent, runs, budget = ledger.ended, ledger.spent(), ledger.runs(), ledger.budget
        compared = _compared(seen, *ledger.last_witnessed(), ledger.head[0])
        entries, (number, head), witnessed = list(ledger.entries()), ledger.head, ledger.witnessed()
        whose = f"{ledger.owner}{f' over {ledger.corpus}' if ledger.corpus else ''}"
    unit = unit_name(budget.unit)
    held = {
        "party": whose,
        "entries": number,
        "head": head.hex(),
        "countersigned": witnessed,
        "ended": ended,
        "compared_with": [one.who for one in seen],
        "budget": budget.epsilon,
        "left": budget.epsilon - spent.epsilon,
    }
    replacing_one = replacing(spent.epsilon, spent.delta, unit)
    return BudgetReport(
        title=f"Ledger of {whose}: {counted(number, 'entry', 'entries')}, in an unbroken chain",
        epsilon=spent.epsilon,
        delta=spent.delta,
        unit=unit,
        sampling=_sampling(entries),
        accountant=spent.accountant,
        statement=sentence(_promise(unit, whose), spent.epsilon, spent.delta),
        by_accountant=_accountants(entries, spent),
        true_positives=true_positives(FALSE_POSITIVES, spent.epsilon, spent.delta),
        settings={"ledger": str(path), "party": whose, "budget_epsilon": budget.epsilon, "budget_delta": budget.delta},
        warnings=some(_exceeded(spent, budget.epsilon, unit), sentence_large(spent.epsilon, unit), _whole(entries, budget)),
        notes=some(replacing_one, compared, _succeeded(ended)),
        tables=(_state(spent, budget.epsilon, unit), *([_runs(runs, unit)] if runs else [])),
        plots=_by_answer(entries, unit, progress),
        found={"ledger": held, "runs": [_run(run) for run in runs]},
    )


def _compared(seen: Sequence[SeenHead], latest: int, signers: int, number: int) -> str:
    """What was checked: a chain alone cannot show that its end was cut off."""
    chain = "The chain shows a ledger that was changed; it cannot show that its own end was cut off."
    whose = f"This one has all that {listed(tuple(one.who for one in seen))} saw of it." if seen else ""
    beside = whose or "Whether it was is not known here: nobody's memory of it lies beside it."
    signed = f"Peers who countersigned the present head: {signers if latest == number else 0}."
    behind = f" Entries since the latest head that peers countersigned: {number - latest}." if 0 < latest < number else ""
    return f"{chain} {beside} {signed}{behind}"


def _succeeded(successor: str) -> str | None:
    return f"Nothing more is entered here: the account of its documents went on in {successor}." if successor else None


def _promise(unit: str, whose: str) -> Promise:
    return Promise(
        unit,
        "anyone who sees the answers entered in this ledger",
        f"any one {unit} was in the corpus of {whose}",
        (
            *((PUBLIC,) if unit == UNIT else ()),
            "every answer that was sent is entered",
            "the coins of the sampling stayed secret",
            "as many parties as each profile names were honest and added their noise",
            "a coordinator that a profile trusts with the noise added it (that coordinator itself saw more)",
        ),
    )


def _events(entries: list[Entry]) -> list[Any]:
    return [event_from_text(entry.content["event"]) for entry in entries if entry.content["kind"] == SPENT]


def _sampling(entries: list[Entry]) -> str:
    drawn = {"poisson" if isinstance(event, PoissonSampledDpEvent) else "none" for event in _events(entries)}
    return " and ".join(sorted(drawn, reverse=True)) or "none"


def _accountants(entries: list[Entry], spent: Total) -> tuple[ByAccountant, ...]:
    """Every accountant for one run. Several runs may be chosen after each other, which only the filter covers."""
    accounts = Accounts()
    for entry in entries:
        accounts.take(entry)
    if len(accounts.runs) != 1:
        return (ByAccountant(spent.accountant, spent.epsilon, _FILTER),)
    (run,) = accounts.runs.values()
    proved = by_accountant(run.spends(), ALONE * accounts.budget.delta)
    return tuple(
        ByAccountant(row.accountant, row.epsilon, MEANS[row.accountant]) for row in proved if row.epsilon < float("inf")
    )


def _exceeded(spent: Total, budget: float, unit: str) -> str | None:
    if spent.epsilon <= budget:
        return None
    return f"More was spent than the budget allows: epsilon = {upward(spent.epsilon)} per {unit} of {upward(budget)}."


def _whole(entries: list[Entry], budget: Budget) -> str | None:
    """The warning about whole documents, where single words were protected; group privacy goes by pure epsilons."""
    counts = [int(entry.content["count"]) for entry in entries if entry.content["kind"] == SPENT]
    each = [Spend(event, count=count) for event, count in zip(_events(entries), counts, strict=True)]
    spent = basic_epsilon(leaves_of(each))
    return sentence_whole(spent) if budget.unit is Unit.WORD and 0 < spent < float("inf") else None


def _state(spent: Total, budget: float, unit: str) -> ReportTable:
    rows = (("spent", upward(spent.epsilon)), ("allowed", upward(budget)), ("left", downward(budget - spent.epsilon)))
    return ReportTable("The budget", ("", f"epsilon per {unit}"), rows)


def _runs(runs: list[Any], unit: str) -> ReportTable:
    rows = tuple(
        (run.run, run.profile or "–", run.began[:16].replace("T", " "), run.answers, run.total.epsilon) for run in runs
    )
    caption = "Each as if it were the only run; together they spend what stands above."
    return ReportTable("Runs", ("run", "profile", "began (UTC)", "answers", f"epsilon per {unit}"), rows, caption)


def _run(run: Any) -> dict[str, Any]:
    return {"run": run.run, "profile": run.profile, "began": run.began, "answers": run.answers, "epsilon": run.total.epsilon}


def _by_answer(entries: list[Entry], unit: str, progress: Stages) -> tuple[Plot, ...]:
    """Epsilon after some of the answers, found by reading the ledger again from its beginning."""
    spends = [n for n, entry in enumerate(entries) if entry.content["kind"] == SPENT]
    if len(spends) < 2:
        return ()
    shown = {spends[round((len(spends) - 1) * n / (POINTS - 1))] for n in range(POINTS)}
    progress.stage("epsilon, answer by answer", len(shown))
    accounts, answers, points = Accounts(), 0, []
    for n, entry in enumerate(entries):
        accounts.take(entry)
        answers += int(entry.content.get("count", 0))
        if n in shown:
            points.append((float(answers), accounts.spent().epsilon))
            progress.step(len(points))
    line = PlotLine("spent", tuple(points))
    limit = PlotLine("budget", ((0.0, accounts.budget.epsilon), (float(answers), accounts.budget.epsilon)))
    return (Plot("epsilon against answers", "answers given", f"epsilon per {unit}", (line, limit), points[-1], "now"),)
