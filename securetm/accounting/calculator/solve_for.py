"""The calculator backwards: noise, epochs or batch for a target epsilon, each tried and found to fit. It spends nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from securetm.accounting.accounting_errors import BudgetTooSmall
from securetm.accounting.calculator.budget_report import BudgetReport
from securetm.accounting.calculator.composed_report import Progress, Spends, largest_by, surely_within
from securetm.accounting.calculator.dp_sgd import SAMPLINGS, Training, dp_sgd
from securetm.accounting.calculator.option_checks import MOST_STEPS, RANGES, check, check_choice, refused
from securetm.accounting.calibration import noise_for
from securetm.accounting.composition import within
from securetm.wording import upward

SOUGHT = ("noise", "epochs", "batch")
_MOST_NOISE = RANGES["--noise"].most
_LEAST_NOISE = 0.05
_MOST_EPOCHS = 1e6
_STRIDE = 0.9  # loss distributions allow about a tenth less noise than Renyi divergences
_TRIES = 12  # about as many as a search takes


@dataclass(frozen=True)
class Target:
    """What is sought, for which epsilon per document; what is sought need not be given."""

    sought: str
    epsilon: float
    documents: int
    delta: float
    batch: int | None = None
    epochs: float | None = None
    noise: float | None = None
    sampling: str = "poisson"
    tokens: int | None = None

    def __post_init__(self) -> None:
        check_choice("--for", self.sought, SOUGHT)
        check_choice("--sampling", self.sampling, SAMPLINGS)
        check("--epsilon", self.epsilon)
        for name in SOUGHT:
            self._check_given(name, getattr(self, name))
        if self.sought == "batch" and self.sampling == "shuffled":
            instead = "shuffled batches are not amplified: no batch size changes epsilon"
            raise refused("--for", "batch", "cannot be solved for shuffled batches", instead)

    def _check_given(self, name: str, value: float | None) -> None:
        """All that is not sought is given, and what is sought is not."""
        if value is not None and name == self.sought:
            instead = f"leave --{name} away, or seek something else than {name}"
            raise refused(f"--{name}", value, "must be left out, because it is what is sought", instead)
        if value is None and name != self.sought:
            raise refused(f"--{name}", None, "", f"give --{name}, or seek it with --for {name}")

    def training(self, found: float) -> Training:
        """The training with what is sought in its place."""
        rest = {"batch": self.batch, "epochs": self.epochs, "noise": self.noise, self.sought: found}
        return Training(
            self.documents,
            int(rest["batch"] or 0),
            float(rest["epochs"] or 0),
            float(rest["noise"] or 0),
            self.delta,
            self.sampling,
            self.tokens,
        )


def solve(target: Target, progress: Progress) -> BudgetReport:
    """What is sought, and the sheet of the training with it."""
    progress.stage(f"the {target.sought} for epsilon = {target.epsilon:g}", _TRIES)
    found = _SEARCHES[target.sought](target, _Tries(target, progress))
    training = target.training(found)
    sheet = dp_sgd(training, progress)
    value = training.batch if target.sought == "batch" else found
    title = f"{_TOLD[target.sought].format(value)}, for epsilon = {target.epsilon:g} per document: {sheet.title}"
    solved = {"for": target.sought, "value": value, "target": target.epsilon}
    return replace(sheet, title=title, found={**sheet.found, "solved": solved})


_TOLD = {"noise": "Noise {:.4f}", "epochs": "{:.6g} epochs", "batch": "Batches of {:,}"}


class _Tries:
    """Whether a choice fits the target: surely, at once and by every accountant; it tells how many were tried."""

    def __init__(self, target: Target, progress: Progress) -> None:
        self.target, self.progress, self.tried = target, progress, 0

    def spends(self, choice: float) -> Spends:
        """The spends of one choice."""
        self.tried += 1
        self.progress.step(self.tried)
        return self.target.training(choice).spends()

    def quick(self, choice: float) -> bool:
        """By Renyi divergences alone: what they allow is allowed."""
        return surely_within(self.target.training(choice).spends(), self.target.epsilon, self.target.delta)

    def fits(self, choice: float) -> bool:
        """By any accountant."""
        return within(self.spends(choice), self.target.epsilon, self.target.delta)

    def most(self, largest_of_all: int, each: float = 1.0) -> int:
        """The largest number of `each` that fits."""
        return largest_by(lambda n: self.quick(n * each), lambda n: self.fits(n * each), largest_of_all)


def _noise(target: Target, tries: _Tries) -> float:
    target.training(1.0)  # everything else must make sense first
    low, high = _LEAST_NOISE, _MOST_NOISE
    if not tries.quick(high):
        raise _too_small(target, f"even noise {_MOST_NOISE:,.0f} spends more", "fewer epochs")
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if tries.quick(middle) else (middle, high)
    low = _STRIDE * high
    while low > _LEAST_NOISE and tries.fits(low):
        low, high = _STRIDE * low, low
    least = noise_for(tries.spends, target.epsilon, target.delta, max(low, _LEAST_NOISE), high)
    return math.ceil(least * 1e4) / 1e4  # four places are what people copy; more noise still fits


def _epochs(target: Target, tries: _Tries) -> float:
    """As many steps, or passes of shuffled batches, as fit; told as epochs."""
    each = 1.0 if target.sampling == "shuffled" else target.training(1.0).rate
    highest = min(MOST_STEPS, round(_MOST_EPOCHS / each))
    count = tries.most(highest, each)
    if count == 0:
        raise _too_small(target, "a single step spends more", "more noise or smaller batches")
    if count == highest:
        raise refused("--noise", target.noise, "is so large that epochs have no end", "ask for a smaller epsilon or less noise")
    return count * each


def _batch(target: Target, tries: _Tries) -> float:
    target.training(1)  # everything else must make sense first
    batch = tries.most(target.documents)
    if batch == 0:
        raise _too_small(target, "even batches of one document spend more", "more noise or fewer epochs")
    return batch


_SEARCHES: dict[str, Callable[[Target, _Tries], float]] = {"noise": _noise, "epochs": _epochs, "batch": _batch}


def _too_small(target: Target, reason: str, instead: str) -> BudgetTooSmall:
    return BudgetTooSmall(
        target.sought, upward(target.epsilon), "document", reason, f"allow a larger epsilon, or take {instead}"
    )
