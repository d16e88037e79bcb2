"""What a party's ledger holds: spent and allowed, by run, after each answer.

Reading checks the chain, so that a ledger which was changed from outside is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dp_accounting import PoissonSampledDpEvent

from securetm.accounting.calculator.budget_report import (
    FALSE_POSITIVES,
    POINTS,
    BudgetReport,
    ByAccountant,
    Promise,
    accountants,
    replacing,
    sentence,
    sentence_large,
    some,
)
from securetm.accounting.calculator.mechanisms import PUBLIC, UNIT, sentence_whole
from securetm.accounting.closed_forms import basic_epsilon
from securetm.accounting.composition import Total, by_accountant
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import SPENT, Accounts, RunAccount
from securetm.accounting.ledger.all_runs import AllRuns, all_runs
from securetm.accounting.ledger.ledger import SeenHead
from securetm.accounting.ledger.ledger_file import Entry
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend, leaves_of
from securetm.accounting.tradeoff import true_positives
from securetm.contracts import Budget, Unit, unit_name
from securetm.figures import Curve, Figure, ReportTable
from securetm.stages import Stages
from securetm.wording import counted, downward, listed, upward

_AFTER = "What a run with a bound adds is bounded as its own profile says, whatever was released before it."
_FILTER = "Renyi divergences added up over adaptively chosen runs: sound whatever was tried after what"


def ledger_report(path: Path, progress: Stages, seen: Sequence[SeenHead] = ()) -> BudgetReport:
    """The report of one ledger. A ledger that lacks what others have seen of it is refused by name."""
    with Ledger.read(path) as ledger:
        for one in seen:
            ledger.check_seen(one)
        ended, spent, runs, budget, given = ledger.ended, ledger.spent(), ledger.runs(), ledger.budget, ledger.has_budget
        entries, (number, head), witnessed = list(ledger.entries()), ledger.head, ledger.witnessed()
        compared = _compared(seen, ledger.last_witnessed(), witnessed, number)
        whose = f"{ledger.owner}{f' over {ledger.corpus}' if ledger.corpus else ''}"
    together = all_runs(path)
    assert together is not None  # the file was just read
    unit, why = unit_name(budget.unit), together.unbounded_because
    held = {
        "party": whose,
        "entries": number,
        "head": head.hex(),
        "countersigned": witnessed,
        "ended": ended,
        "compared_with": [one.who for one in seen],
        "budget": budget.epsilon if given else None,
        "left": budget.epsilon - spent.epsilon if given else None,
    }
    succeeded = f"Nothing more is entered here: the account of its documents went on in {ended}." if ended else None
    exceeded = (
        f"More was spent than the budget allows: epsilon = {upward(spent.epsilon)} per {unit} of {upward(budget.epsilon)}."
        if spent.epsilon > budget.epsilon
        else None
    )
    each_run = [_run(run, budget) for run in runs]
    drawn = {"poisson" if isinstance(spend.event, PoissonSampledDpEvent) else "none" for spend in _spends(runs)}
    return BudgetReport(
        title=f"Ledger of {whose}: {counted(number, 'entry', 'entries')}, in an unbroken chain",
        epsilon=together.epsilon,
        delta=together.delta,
        unit=unit,
        sampling=" and ".join(sorted(drawn, reverse=True)) or "none",
        accountant=spent.accountant,
        statement=_statement(together, unit, whose),
        by_accountant=_accountants(runs, spent, budget) if given else (),
        true_positives=true_positives(FALSE_POSITIVES, together.epsilon, together.delta) if why is None else 1.0,
        settings={"ledger": str(path), "party": whose, "budget_epsilon": budget.epsilon, "budget_delta": budget.delta},
        warnings=some(exceeded, sentence_large(together.epsilon, unit) if why is None else None, _whole(runs, budget)),
        notes=some(replacing(together.epsilon, together.delta, unit) if why is None else _AFTER, compared, succeeded),
        tables=(*([_state(spent, budget.epsilon, unit)] if given else []), *([_runs(each_run, unit)] if runs else [])),
        plots=_by_answer(entries, unit, progress),
        found={"ledger": held, "runs": each_run, **together.fields()},
        first=f"Unbounded, because of {why}." if why is not None else "",
    )


def _statement(together: AllRuns, unit: str, whose: str) -> str:
    if together.unbounded_because is None:
        return sentence(_promise(unit, whose), together.epsilon, together.delta)
    bounded = f" The runs with a bound add epsilon = {upward(together.of_bounded)} to that." if together.of_bounded else ""
    return (
        f"Nothing bounds what all runs together tell about any one {unit} in the corpus of {whose}: "
        f"unbounded, because of {together.unbounded_because}.{bounded}"
    )


def _compared(seen: Sequence[SeenHead], latest: int, witnessed: int, number: int) -> str:
    """What was checked: a chain alone cannot show that its end was cut off."""
    chain = "The chain shows whether a ledger was changed; it cannot show whether its end was cut off."
    whose = f"This one has all entries that {listed(tuple(one.who for one in seen))} saw." if seen else ""
    beside = whose or "That is not known here, because no file beside it records an earlier head."
    signed = f"Peers who countersigned the present head: {witnessed}."
    behind = f" Entries since the latest head that peers countersigned: {number - latest}." if 0 < latest < number else ""
    return f"{chain} {beside} {signed}{behind}"


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


def _spends(runs: Sequence[RunAccount]) -> list[Spend]:
    return [spend for run in runs for spend in run.spends()]


def _accountants(runs: Sequence[RunAccount], spent: Total, budget: Budget) -> tuple[ByAccountant, ...]:
    """Every accountant for one run. Several runs may be chosen after each other, which only the filter covers."""
    bounded = [run for run in runs if run.answers]
    if len(bounded) != 1:
        return (ByAccountant(spent.accountant, spent.epsilon, _FILTER),)
    return accountants(by_accountant(bounded[0].spends(), ALONE * budget.delta))


def _whole(runs: Sequence[RunAccount], budget: Budget) -> str | None:
    """The warning about whole documents, where single words were protected; group privacy goes by pure epsilons."""
    spent = basic_epsilon(leaves_of(_spends(runs)))
    return sentence_whole(spent) if budget.unit is Unit.WORD and 0 < spent < float("inf") else None


def _state(spent: Total, budget: float, unit: str) -> ReportTable:
    rows = (("spent", upward(spent.epsilon)), ("allowed", upward(budget)), ("left", downward(budget - spent.epsilon)))
    return ReportTable("The budget", ("", f"epsilon per {unit}"), rows)


def _run(run: RunAccount, budget: Budget) -> dict[str, Any]:
    own = {"run": run.run, "profile": run.profile, "began": run.began, "answers": run.answers.total()}
    return own | {"epsilon": None if run.unbounded else run.total(budget).epsilon, "unbounded_because": run.unbounded or None}


def _runs(runs: list[dict[str, Any]], unit: str) -> ReportTable:
    rows = tuple(
        (
            run["run"],
            run["profile"] or "–",
            run["began"][:16].replace("T", " "),
            run["answers"] or "–",
            "unbounded" if run["epsilon"] is None else run["epsilon"],
        )
        for run in runs
    )
    caption = "Each as if it were the only run; what all spend together is in the table above."
    return ReportTable("Runs", ("run", "profile", "began (UTC)", "answers", f"epsilon per {unit}"), rows, caption)


def _by_answer(entries: list[Entry], unit: str, progress: Stages) -> tuple[Figure, ...]:
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
    line = Curve("spent", tuple(points))
    limit = Curve("budget", ((0.0, accounts.budget.epsilon), (float(answers), accounts.budget.epsilon)))
    return (Figure("epsilon against answers", "answers given", f"epsilon per {unit}", (line, limit), points[-1], "now"),)
