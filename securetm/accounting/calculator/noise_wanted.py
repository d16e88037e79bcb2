"""A training whose noise is given, or sought for an epsilon, and shares of that noise. It computes no budget itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from securetm.accounting.calculator.budget_report import BudgetReport
from securetm.accounting.calculator.distributed_noise import NoiseInShares, shares_table
from securetm.accounting.calculator.dp_sgd import Training
from securetm.accounting.calculator.mechanism_comparison import MechanismComparison
from securetm.accounting.calculator.option_checks import check_parties, refused
from securetm.accounting.calculator.persons import People
from securetm.accounting.calculator.solve_for import Target
from securetm.stages import Stages

Group = tuple[int, int, int]  # parties, how many must remain in a sum, how many may help an adversary


def trained(
    documents: int,
    batch: int,
    epochs: float,
    delta: float,
    sampling: str,
    tokens: int | None,
    people: People,
    noise: float | None,
    epsilon: float | None,
    group: Group | None,
    progress: Stages,
) -> BudgetReport:
    """The report of one training."""
    return with_group(
        _wanted(documents, batch, epochs, delta, sampling, tokens, people, noise, epsilon).report, group, progress
    )


def compared(
    documents: int,
    batch: int,
    epochs: float,
    delta: float,
    people: People,
    noise: float | None,
    epsilon: float | None,
    group: Group,
    dimension: int,
    l2: float,
    mechanism: NoiseInShares,
    progress: Stages,
) -> BudgetReport:
    """The report of one training under central, local and distributed noise."""
    check_parties(*group)
    asked = _wanted(documents, batch, epochs, delta, "poisson", None, people, noise, epsilon)
    training = asked.solved(progress) if isinstance(asked, Target) else asked
    return MechanismComparison(training, *group, dimension, l2).report(mechanism, progress)


def with_group(report: Callable[[Stages], BudgetReport], group: Group | None, progress: Stages) -> BudgetReport:
    """The report with the shares of its noise, where parties add it."""
    if group is None:
        return report(progress)
    check_parties(*group)
    made = report(progress)
    named = dict(zip(("parties", "threshold", "colluding"), group, strict=True))
    table = shares_table(float(made.settings["noise"]), *group)
    return replace(made, settings={**made.settings, **named}, tables=(*made.tables, table))


def _wanted(
    documents: int,
    batch: int,
    epochs: float,
    delta: float,
    sampling: str,
    tokens: int | None,
    people: People,
    noise: float | None,
    epsilon: float | None,
) -> Training | Target:
    """The training with that noise, or the question for the noise of that epsilon: one of both is given."""
    if noise is not None and epsilon is not None:
        raise refused("--epsilon", epsilon, "cannot be given beside --noise, which decides it", "give one of both")
    if epsilon is not None:
        return Target("noise", epsilon, documents, delta, batch, epochs, None, sampling, tokens, *people.told)
    if noise is None:
        raise refused("--noise", None, "", "give --noise, or --epsilon to have the least noise for it")
    return Training(documents, batch, epochs, noise, delta, sampling, tokens, *people.told)
