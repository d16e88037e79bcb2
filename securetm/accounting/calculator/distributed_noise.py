"""Answers what noise in shares spends, and what dropout and collusion cost. It reads no document.

The caller passes the mechanism, which computes its own events; no bound of it is written again here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from securetm.accounting.calculator.budget_report import (
    BudgetReport,
    PlotLine,
    Promise,
    ReportTable,
    epsilon_against,
    some,
)
from securetm.accounting.calculator.composed_report import Spends, composed, curve
from securetm.accounting.calculator.option_checks import check, check_choice, check_delta, check_parties
from securetm.accounting.calculator.persons import SEPARATE, People, persons_table
from securetm.accounting.composition import total
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.spends import Spend
from securetm.contracts import Block, Cohort, Domain, Mechanism, Terms
from securetm.stages import Stages
from securetm.wording import colluding_parties, counted

DISTRIBUTIONS = {"discrete_gaussian": "discrete Gaussian", "skellam": "Skellam"}
HOW_SHARES_COUNT = {
    "discrete_gaussian": (
        "Sums of discrete Gaussian shares are accounted as one Gaussian of nearly the same variance, and where they are too "
        "narrow for that by the Renyi bound of Kairouz, Liu and Steinke (2021)."
    ),
    "skellam": (
        "Sums of Skellam shares have no privacy loss distribution: the vector bound of Agarwal, Kairouz and Liu (2021) is "
        "composed as Renyi divergences."
    ),
}

NoiseInShares = Callable[[float, str], Mechanism]  # the mechanism, by its noise multiplier and its distribution


@dataclass(frozen=True)
class Shares:
    """Noise in shares under a hidden sum, sized so that `noise` is left when as many as allowed drop out and collude.

    The parties take off what is there for those who may drop out, if they do not.
    """

    parties: int
    threshold: int
    colluding: int
    noise: float  # deviation that honest shares leave in the smallest sum, over the bound on one document's row
    l2: float  # that bound, in steps of the grid
    dimension: int
    rate: float
    rounds: int
    delta: float
    distribution: str = "discrete_gaussian"
    documents: int | None = None
    people: People = SEPARATE

    def __post_init__(self) -> None:
        check_parties(self.parties, self.threshold, self.colluding)
        for name in ("noise", "l2", "dimension", "rate", "rounds", "documents"):
            check(f"--{name}", getattr(self, name))
        check_delta(self.delta)
        check_choice("--distribution", self.distribution, tuple(DISTRIBUTIONS))

    @property
    def honest(self) -> int:
        """Shares that are surely in the sum and unknown to the adversary."""
        return self.threshold - self.colluding

    @property
    def share(self) -> float:
        """Standard deviation of one party's share before anything is taken off, in steps of the grid."""
        return self.noise * self.sensitivity / math.sqrt(self.honest)

    @property
    def sensitivity(self) -> float:
        """The bound once rows are summed and rounded: each coordinate may move by two steps more."""
        return self.l2 + 2 * math.sqrt(self.dimension)

    def left(self, answering: int, colluding: int) -> float:
        """Deviation over the bound of the noise that colluding parties do not know, in a sum over those who answer.

        Only for as many as all parties, or as the threshold: in between the noise of the next smaller measured size stays.
        """
        return self.noise * math.sqrt((answering - colluding) / (answering - self.colluding))

    def promise(self) -> Promise:
        """What the figures mean, and what they assume."""
        colluding = self.colluding
        beside = f", {colluding_parties(colluding)} among them" if colluding else ""
        helps = f"at most {colluding} of them {'helps' if colluding == 1 else 'help'} the adversary"
        unit = self.people.protected
        coin = f"a {unit} joins each round by a coin of its own, with probability {self.rate:.4g}, that only its party knows"
        return Promise(
            unit,
            f"the coordinator and anyone who sees the sums and the model{beside}",
            f"any one {unit} of an honest party was in its sums",
            (
                *((coin,) if self.rate < 1 else ()),
                f"nothing is opened but sums over at least {self.threshold} of the {self.parties} parties",
                helps if colluding else "no party helps the adversary",
                "the others add their shares as agreed",
                *self.people.assumptions,
            ),
        )

    def spend(self, mechanism: NoiseInShares, left: float, rounds: int) -> Spend:
        """The spend of so many sums with so much unknown noise, as the mechanism itself accounts for it."""
        terms = Terms(
            (Block("row", (self.dimension,)),),
            domain=Domain.INTEGER,
            bits=64,
            grid=1.0,
            sampling=self.rate,
            l2=self.sensitivity,
            l1=self.l2 * self.dimension**0.5 + 2.0 * self.dimension,
            linf=self.l2 + 2,
        )
        cohort = Cohort(b"", 0, tuple(map(str, range(self.parties))), self.threshold, self.colluding)
        noise = mechanism(left, self.distribution)
        noised = noise.admit(terms, cohort)
        return Spend(noise.event(noised, cohort), noise.failure_probability(noised, cohort), rounds)

    def report(self, mechanism: NoiseInShares, progress: Stages) -> BudgetReport:
        """What the shares spend, guaranteed and in better cases."""

        def spends(rounds: float, left: float) -> Spends:
            return (self.spend(mechanism, left, math.ceil(rounds)),)

        cases = self._cases(lambda left: total(spends(self.rounds, left), self.delta).epsilon)

        def line(name: str, left: float) -> PlotLine:
            return curve(name, lambda rounds: spends(rounds, left), self.rounds, self.delta, progress, whole=True)

        people, guaranteed = self.people, spends(self.rounds, self.noise)
        bounds = people.bounds(guaranteed, cases[0]["epsilon"], self.delta)
        more = self.left(self.parties, 0) / self.noise
        best = (line(f"all {self.parties} honest", self.left(self.parties, 0)),) if more > 1 else ()
        surplus = (
            f"Sized for {counted(self.honest, 'honest share')} of {self.parties}: if everybody answers, what is there for "
            "those who may drop out is taken off the sum, and the sum carries "
            f"{more:.2f} times the noise that it would need if nobody dropped out and nobody colluded."
        )
        return composed(
            f"{DISTRIBUTIONS[self.distribution]} shares, {self.threshold} of {self.parties} parties remain, "
            f"{self.colluding} may collude, {counted(self.rounds, 'round')}",
            self.promise(),
            guaranteed,
            self.delta,
            sampling="poisson" if self.rate < 1 else "none",
            settings={n: v for n, v in asdict(self).items() if n != "people"}
            | {"share_deviation": self.share, "honest_shares": self.honest},
            warnings=some(
                sentence_delta(self.delta, people.units, people.protected), people.warning(bounds), self._coarse_grid()
            ),
            notes=(surplus, HOW_SHARES_COUNT[self.distribution], *people.notes()),
            tables=(*persons_table(bounds), self._price(cases)),
            plots=(epsilon_against("rounds", people.protected, line("guaranteed", self.noise), *best),),
            found={"cases": cases, **people.recorded(bounds)},
        )

    def _coarse_grid(self) -> str | None:
        """The warning that rounding is a large part of the sensitivity."""
        rounding = 2 * math.sqrt(self.dimension)
        if rounding < 0.05 * self.l2:
            return None
        return (
            f"Rounding adds up to {rounding:,.0f} steps to a row bounded by {self.l2:,.0f} steps, and the noise grows with "
            "them; a finer grid (a larger --l2) makes that small."
        )

    def _cases(self, epsilon_of: Callable[[float], float]) -> list[dict[str, Any]]:
        """The cases from the guarantee to the best one. Of equal cases, the better one's name is kept."""
        n, t, c = self.parties, self.threshold, self.colluding
        named = {(t, c): "guaranteed", (t, 0): "nobody colludes", (n, c): "nobody drops out", (n, 0): "neither"}
        return [
            {
                "case": name,
                "answering": answering,
                "colluding": colluding,
                "honest_shares": answering - colluding,
                "noise": self.left(answering, colluding),
                "noise_in_sum": self.left(answering, 0),
                "epsilon": epsilon_of(self.left(answering, colluding)),
            }
            for (answering, colluding), name in named.items()
        ]

    def _price(self, cases: list[dict[str, Any]]) -> ReportTable:
        columns = ("case", "answer", "collude", "noise in the sum", "unknown to them", f"epsilon per {self.people.protected}")
        rows = tuple(
            (one["case"], one["answering"], one["colluding"], near(one["noise_in_sum"]), near(one["noise"]), one["epsilon"])
            for one in cases
        )
        bound = f"the bound on one {self.people.protected}'s row ({self.l2:,.0f} steps)"
        caption = f"Noise as a standard deviation over {bound}; a party's share has one of {near(self.share)} steps."
        return ReportTable("The price of dropout and collusion", columns, rows, caption)


def shares_table(noise: float, parties: int, threshold: int, colluding: int) -> ReportTable:
    """How large shares of so much noise are, where as many may be missing and help an adversary."""
    check_parties(parties, threshold, colluding)
    honest = threshold - colluding
    rows = (
        ("the share of each party", near(noise / math.sqrt(honest))),
        (f"unknown to an adversary, {counted(parties - threshold, 'party', 'parties')} missing", near(noise)),
        ("in the sum, nobody missing", near(noise * math.sqrt(parties / (parties - colluding)))),
    )
    helped = f"{colluding} of them may help an adversary" if colluding else "none of them helps an adversary"
    caption = f"Standard deviation over the bound on a row. {threshold} of {parties} parties must remain in a sum; {helped}."
    return ReportTable("The noise in shares", ("", "noise"), rows, caption)


def near(value: float) -> str:
    """A deviation as tables write it."""
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
