"""Answers what one training spends with noise by the opener, by each party, or in shares. It reads no document."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from securetm.accounting.calculator.budget_report import (
    BudgetReport,
    PlotLine,
    ReportTable,
    epsilon_against,
    some,
)
from securetm.accounting.calculator.composed_report import composed, curve
from securetm.accounting.calculator.distributed_noise import HOW_SHARES_COUNT, NoiseInShares, Shares, near
from securetm.accounting.calculator.dp_sgd import Training
from securetm.accounting.calculator.option_checks import refused
from securetm.accounting.calculator.persons import persons_table
from securetm.accounting.composition import total
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.spends import Spend
from securetm.stages import Stages
from securetm.wording import counted, upward

_COLUMNS = (
    "mechanism",
    "noise in the sum",
    "epsilon against the coordinator",
    "against model readers",
    "trusted with the noise",
)
_CAPTION = (
    ", where as many as may drop out and collude do. Noise as a standard deviation over the bound on a row, with all of them."
)


@dataclass(frozen=True)
class MechanismComparison:
    """One training, noised by the opener, by each party, or in shares."""

    training: Training
    parties: int
    threshold: int
    colluding: int
    dimension: int
    l2: float

    def __post_init__(self) -> None:
        self.shares(self.threshold, self.colluding)
        if self.training.sampling != "poisson":
            problem = "must be poisson, because only Poisson samples are amplified under all of them"
            raise refused("--sampling", self.training.sampling, problem, "leave --sampling away")

    def shares(self, threshold: int, colluding: int) -> Shares:
        """The same training with its noise in shares."""
        run, vector = self.training, (self.l2, self.dimension)
        group = (self.parties, threshold, colluding)
        return Shares(*group, run.noise, *vector, run.rate, run.steps, run.delta, documents=run.documents, people=run.people)

    def report(self, mechanism: NoiseInShares, progress: Stages) -> BudgetReport:
        """The epsilon against each adversary, and the noise in the sum, by mechanism."""
        training, people = self.training, self.training.people
        bounds = people.bounds(training.spends(), total(training.spends(), training.delta).epsilon, training.delta)
        found = self._mechanisms(mechanism, progress)
        rows = tuple(
            (r["mechanism"], near(r["noise_in_sum"]), _bound(r["coordinator"]), _bound(r["reader"]), r["trusted"])
            for r in found
        )
        return composed(
            f"{counted(self.parties, 'party', 'parties')}, {training.title()}",
            training.promise(),
            training.spends(),
            training.delta,
            sampling="poisson",
            settings=asdict(training) | {name: value for name, value in asdict(self).items() if name != "training"},
            warnings=some(sentence_delta(training.delta, people.units, people.protected), people.warning(bounds)),
            notes=(HOW_SHARES_COUNT["discrete_gaussian"], *people.notes()),
            tables=(
                *persons_table(bounds),
                ReportTable("Who adds the noise", _COLUMNS, rows, f"Epsilon per {people.protected}{_CAPTION}"),
            ),
            plots=(epsilon_against("epochs", people.protected, *self._lines(mechanism, progress)),),
            found={"mechanisms": found, **people.recorded(bounds)},
        )

    def _mechanisms(self, mechanism: NoiseInShares, progress: Stages) -> list[dict[str, Any]]:
        training, n = self.training, self.parties
        whole, guarded = self.shares(n, 0), self.shares(self.threshold, self.colluding)
        progress.stage("epsilon by mechanism", 6)
        done = iter(range(1, 7))

        def epsilon_of(spend: Spend) -> float:
            epsilon = total((spend,), training.delta).epsilon
            progress.step(next(done))
            return epsilon

        def gaussian(noise: float) -> float:
            return epsilon_of(Spend(PoissonSampledDpEvent(training.rate, GaussianDpEvent(noise)), count=training.steps))

        def shared(shares: Shares) -> float:
            return epsilon_of(shares.spend(mechanism, shares.noise, shares.rounds))

        s, root = training.noise, math.sqrt(n)
        base, sized, ideal = gaussian(s), shared(guarded), shared(whole)
        left = math.sqrt(guarded.honest)
        remain = f"distributed, {self.threshold} of {n} may remain, {self.colluding} may collude"
        trusted = counted(guarded.honest, "honest party", "honest parties")
        rows = [
            ("central", s, None, base, "whoever opens the sum"),
            ("local, noise of its own at each party", s * root, base, gaussian(s * left), "nobody else"),
            ("local, the same noise in the sum", s, gaussian(s / root), gaussian(s * left / root), "nobody else"),
            ("distributed, nobody drops out or colludes", s, ideal, ideal, "all other parties"),
            (remain, guarded.left(n, 0), sized, sized, trusted),
        ]
        names = ("mechanism", "noise_in_sum", "coordinator", "reader", "trusted")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _lines(self, mechanism: NoiseInShares, progress: Stages) -> tuple[PlotLine, ...]:
        training, guarded = self.training, self.shares(self.threshold, self.colluding)
        each, most = guarded.spend(mechanism, guarded.noise, 1), training.epochs

        def steps(epochs: float) -> Training:
            return replace(training, epochs=epochs)

        return (
            curve("central, or local", lambda n: steps(n).spends(), most, training.delta, progress),
            curve("distributed", lambda n: (replace(each, count=steps(n).steps),), most, training.delta, progress),
        )


def _bound(epsilon: float | None) -> str:
    return "no bound" if epsilon is None else upward(epsilon)
