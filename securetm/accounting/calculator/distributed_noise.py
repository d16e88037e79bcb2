"""What noise in shares spends, what dropout and collusion cost, and mechanisms side by side. It prints nothing, reads nothing.

The shares' events come from the mechanisms themselves, through a function; no bound of theirs is written again here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from securetm.accounting.calculator.budget_report import BudgetReport, Plot, Promise, ReportTable, sentence_delta
from securetm.accounting.calculator.composed_report import Progress, Spends, curve, figures, places, replaced
from securetm.accounting.calculator.dp_sgd import Training
from securetm.accounting.calculator.option_checks import check, check_choice, check_delta, check_parties, refused
from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.wording import counted, upward

DISTRIBUTIONS = ("discrete_gaussian", "skellam")
_NAMES = {"discrete_gaussian": "discrete Gaussian", "skellam": "Skellam"}


@dataclass(frozen=True)
class Shares:
    """Noise in shares under a hidden sum, sized so that `noise` is left when as many as allowed drop out and collude."""

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

    def __post_init__(self) -> None:
        check_parties(self.parties, self.threshold, self.colluding)
        for name in ("noise", "l2", "dimension", "rate", "rounds", "documents"):
            check(f"--{name}", getattr(self, name))
        check_delta(self.delta)
        check_choice("--distribution", self.distribution, DISTRIBUTIONS)

    @property
    def honest(self) -> int:
        """Shares that are surely in the sum and unknown to the adversary."""
        return self.threshold - self.colluding

    @property
    def share(self) -> float:
        """Standard deviation of one party's share, in steps of the grid."""
        return self.noise * self.sensitivity / math.sqrt(self.honest)

    @property
    def sensitivity(self) -> float:
        """The bound once rows are summed and rounded: each coordinate may move by two steps more."""
        return self.l2 + 2 * math.sqrt(self.dimension)

    def left(self, honest: int) -> float:
        """Deviation over the bound when so many honest shares are in the sum."""
        return self.noise * math.sqrt(honest / self.honest)


SpendOf = Callable[[Shares, int], Spend]  # of one round, by how many honest shares are in the sum


def distributed(shares: Shares, spend_of: SpendOf, progress: Progress) -> BudgetReport:
    """The sheet of noise in shares."""

    def spends(rounds: float, honest: int) -> Spends:
        return (replace(spend_of(shares, honest), count=math.ceil(rounds)),)

    guaranteed = spends(shares.rounds, shares.honest)
    sheet = figures(
        f"{_NAMES[shares.distribution]} shares, {shares.threshold} of {shares.parties} parties remain, "
        f"{shares.colluding} may collude, "
        f"{counted(shares.rounds, 'round')}",
        _promise(shares),
        guaranteed,
        shares.delta,
        sampling="poisson" if shares.rate < 1 else "none",
        settings=asdict(shares) | {"share_deviation": shares.share, "honest_shares": shares.honest},
        warnings=tuple(filter(None, (_delta(shares), _coarse(shares)))),
    )
    cases = _cases(shares, lambda honest: total(spends(shares.rounds, honest), shares.delta).epsilon)
    along = places(shares.rounds, whole=True)
    lines = [curve("guaranteed", lambda n: spends(n, shares.honest), along, shares.delta, progress)]
    if shares.parties > shares.honest:
        lines.append(curve(f"all {shares.parties} honest", lambda n: spends(n, shares.parties), along, shares.delta, progress))
    plot = Plot("epsilon against rounds", "rounds", "epsilon per document", tuple(lines), (float(shares.rounds), sheet.epsilon))
    return replace(
        sheet,
        tables=(_price(shares, cases),),
        notes=(_extra(shares), replaced(sheet.epsilon, shares.delta, "document"), _NO_PLD),
        plots=(plot,),
        found={"cases": cases},
    )


def _promise(shares: Shares) -> Promise:
    helpers = f", {_parties(shares.colluding)} among them" if shares.colluding else ""
    drawn = (
        f"a document joins each round by a coin of its own, with probability {shares.rate:.4g}, that only its party knows",
    )
    return Promise(
        "document",
        f"the coordinator and anyone who sees the sums and the model{helpers}",
        "any one document of an honest party was in its sums",
        (
            *(drawn if shares.rate < 1 else ()),
            f"nothing is opened but sums over at least {shares.threshold} of the {shares.parties} parties",
            f"at most {shares.colluding} of them {'helps' if shares.colluding == 1 else 'help'} the adversary"
            if shares.colluding
            else "no party helps the adversary",
            "the others add their shares as agreed",
        ),
    )


def _parties(colluding: int) -> str:
    return "one colluding party" if colluding == 1 else f"{colluding} colluding parties"


_NO_PLD = (
    "Sums of discrete shares have no privacy loss distribution: the vector bounds of Kairouz, Liu and Steinke (2021) "
    "and of Agarwal, Kairouz "
    "and Liu (2021) are composed as Renyi divergences."
)


def _delta(shares: Shares) -> str | None:
    return sentence_delta(shares.delta, shares.documents) if shares.documents else None


def _coarse(shares: Shares) -> str | None:
    """Rounding is in the sensitivity; on a coarse grid it is most of it."""
    rounding = 2 * math.sqrt(shares.dimension)
    if rounding < 0.05 * shares.l2:
        return None
    return (
        f"Rounding adds up to {rounding:,.0f} steps to a row bounded by {shares.l2:,.0f} steps, and the noise grows with them; "
        "a finer grid (a larger --l2) makes that small."
    )


def _cases(shares: Shares, epsilon_of: Callable[[int], float]) -> list[dict[str, Any]]:
    """From the guarantee to the best case; equal cases are told once."""
    n, t, c = shares.parties, shares.threshold, shares.colluding
    told = {
        (t, c): "guaranteed",
        (t, 0): "nobody colludes",
        (n, c): "nobody drops out",
        (n, 0): "neither",
    }
    return [
        {
            "case": name,
            "answering": answering,
            "colluding": colluding,
            "honest_shares": answering - colluding,
            "noise": shares.left(answering - colluding),
            "noise_in_sum": shares.left(answering),
            "epsilon": epsilon_of(answering - colluding),
        }
        for (answering, colluding), name in {case: told[case] for case in reversed(told)}.items()
    ][::-1]


def _price(shares: Shares, cases: list[dict[str, Any]]) -> ReportTable:
    rows = tuple(
        (case["case"], case["answering"], case["colluding"], _near(case["noise_in_sum"]), _near(case["noise"]), case["epsilon"])
        for case in cases
    )
    columns = ("case", "answer", "collude", "noise in the sum", "unknown to them", "epsilon per document")
    bound = f"the bound on one document's row ({shares.l2:,.0f} steps)"
    caption = f"Noise as a standard deviation over {bound}; a party's share has one of {_near(shares.share)} steps."
    return ReportTable("The price of dropout and collusion", columns, rows, caption)


def _near(value: float) -> str:
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _extra(shares: Shares) -> str:
    more = math.sqrt(shares.parties / shares.honest)
    return (
        f"Sized for {counted(shares.honest, 'honest share')} of {shares.parties}: if everybody answers, the sum carries "
        f"{more:.2f} times the noise that it would need if nobody dropped out and nobody colluded."
    )


# ---- mechanisms side by side ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
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
        run = self.training
        return Shares(
            self.parties,
            threshold,
            colluding,
            run.noise,
            self.l2,
            self.dimension,
            run.rate,
            run.steps,
            run.delta,
            documents=run.documents,
        )


def compare(comparing: Comparison, spend_of: SpendOf, progress: Progress) -> BudgetReport:
    """Who sees what epsilon, and how much noise the sum carries for it."""
    training, n = comparing.training, comparing.parties
    sheet = figures(
        f"{counted(n, 'party', 'parties')}, {counted(training.documents, 'document')} in batches of {training.batch:,}, "
        f"{counted(training.epochs, 'epoch')}, noise {training.noise:.4g}",
        training.promise(),
        training.spends(),
        training.delta,
        sampling="poisson",
        settings=asdict(training) | {name: value for name, value in asdict(comparing).items() if name != "training"},
        warnings=tuple(filter(None, (sentence_delta(training.delta, training.documents),))),
    )
    rows = _mechanisms(comparing, spend_of, progress)
    table = tuple(
        (r["mechanism"], _near(r["noise_in_sum"]), _bound(r["coordinator"]), _bound(r["reader"]), r["trusted"]) for r in rows
    )
    columns = (
        "mechanism",
        "noise in the sum",
        "epsilon against the coordinator",
        "against model readers",
        "trusted with the noise",
    )
    caption = (
        "Epsilon per document, where as many as may drop out and collude do. "
        "Noise as a standard deviation over the bound on a row, with all of them."
    )
    return replace(
        sheet,
        tables=(ReportTable("Who adds the noise", columns, table, caption),),
        plots=(_lines(comparing, spend_of, progress),),
        notes=(replaced(sheet.epsilon, training.delta, "document"), _NO_PLD),
        found={"mechanisms": rows},
    )


def _mechanisms(comparing: Comparison, spend_of: SpendOf, progress: Progress) -> list[dict[str, Any]]:
    training, n = comparing.training, comparing.parties
    whole, guarded = comparing.shares(n, 0), comparing.shares(comparing.threshold, comparing.colluding)
    progress.stage("epsilon by mechanism", 6)
    done = iter(range(1, 7))

    def gaussian(noise: float) -> float:
        epsilon = total(_gaussians(training, noise), training.delta).epsilon
        progress.step(next(done))
        return epsilon

    def shared(shares: Shares, honest: int) -> float:
        epsilon = total((replace(spend_of(shares, honest), count=shares.rounds),), training.delta).epsilon
        progress.step(next(done))
        return epsilon

    s, root = training.noise, math.sqrt(n)
    base, sized, ideal = gaussian(s), shared(guarded, guarded.honest), shared(whole, n)
    left = math.sqrt(guarded.honest)
    rows = [
        ("central", s, None, base, "whoever opens the sum"),
        ("local, noise of its own at each party", s * root, base, gaussian(s * left), "nobody else"),
        ("local, the same noise in the sum", s, gaussian(s / root), gaussian(s * left / root), "nobody else"),
        ("distributed, nobody drops out or colludes", s, ideal, ideal, "all other parties"),
        (
            f"distributed, {comparing.threshold} of {n} may remain, {comparing.colluding} may collude",
            guarded.left(n),
            sized,
            sized,
            counted(guarded.honest, "honest party", "honest parties"),
        ),
    ]
    names = ("mechanism", "noise_in_sum", "coordinator", "reader", "trusted")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _gaussians(training: Training, noise: float) -> Spends:
    return (Spend(PoissonSampledDpEvent(training.rate, GaussianDpEvent(noise)), count=training.steps),)


def _bound(epsilon: float | None) -> str:
    return "no bound" if epsilon is None else upward(epsilon)


def _lines(comparing: Comparison, spend_of: SpendOf, progress: Progress) -> Plot:
    training = comparing.training
    guarded = comparing.shares(comparing.threshold, comparing.colluding)
    each, along = spend_of(guarded, guarded.honest), places(training.epochs)

    def steps(epochs: float) -> Training:
        return replace(training, epochs=epochs)

    lines = (
        curve("central, or local", lambda e: steps(e).spends(), along, training.delta, progress),
        curve("distributed", lambda e: (replace(each, count=steps(e).steps),), along, training.delta, progress),
    )
    return Plot("epsilon against epochs", "epochs", "epsilon per document", lines, (training.epochs, lines[0].points[-1][1]))
