"""Answers which noise, epochs or batch fit an epsilon. The answer was composed and fits. It spends nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from securetm.accounting.accounting_errors import BudgetTooSmall
from securetm.accounting.calculator.budget_report import BudgetReport
from securetm.accounting.calculator.composed_report import Spends, largest_by, surely_within
from securetm.accounting.calculator.dp_sgd import SAMPLINGS, Training
from securetm.accounting.calculator.option_checks import MOST_STEPS, RANGES, check, check_choice, check_delta, refused
from securetm.accounting.calculator.persons import People
from securetm.accounting.calibration import noise_for
from securetm.accounting.composition import within
from securetm.stages import Stages
from securetm.wording import upward

SOUGHT = {"noise": "Noise {:.4f}", "epochs": "{:.6g} epochs", "batch": "Batches of {:,}"}  # and how the title writes it
_LEAST_NOISE, _MOST_NOISE = 0.05, RANGES["--noise"].most
_MOST_EPOCHS = 1e6
_STRIDE = 0.9  # loss distributions allow about a tenth less noise than Renyi divergences
_STEPS = 12  # about as many as a search takes


@dataclass(frozen=True)
class Target:
    """What is sought, and for which epsilon. The value that is sought is not given."""

    sought: str
    epsilon: float
    documents: int
    delta: float
    batch: int | None = None
    epochs: float | None = None
    noise: float | None = None
    sampling: str = "poisson"
    tokens: int | None = None
    unit: str = ""  # document or person, as in a training
    documents_per_person: int | None = None
    persons: int | None = None
    counted: bool = False  # in documents

    def __post_init__(self) -> None:
        check_choice("--for", self.sought, tuple(SOUGHT))
        check_choice("--sampling", self.sampling, SAMPLINGS)
        check("--epsilon", self.epsilon)
        check_delta(self.delta)
        for name in SOUGHT:
            value = getattr(self, name)
            if value is not None and name == self.sought:
                instead = f"leave --{name} away, or seek something else than {name}"
                raise refused(f"--{name}", value, "must be left out, because it is what is sought", instead)
            if value is None and name != self.sought:
                raise refused(f"--{name}", None, "", f"give --{name}, or seek it with --for {name}")
        if self.sought == "batch" and self.sampling == "shuffled":
            instead = "shuffled batches are not amplified: no batch size changes epsilon"
            raise refused("--for", "batch", "cannot be solved for shuffled batches", instead)

    def training(self, found: float) -> Training:
        """The training with what is sought in its place."""
        given = {name: getattr(self, name) or 0 for name in SOUGHT} | {self.sought: found}
        batch, epochs, noise = int(given["batch"]), float(given["epochs"]), float(given["noise"])
        whose = (self.unit, self.documents_per_person, self.persons, self.counted)
        return Training(self.documents, batch, epochs, noise, self.delta, self.sampling, self.tokens, *whose)

    @property
    def protected(self) -> str:
        """The unit of epsilon: a document or a person."""
        return People(self.unit, self.documents, self.documents_per_person, self.persons, self.counted).protected

    def solved(self, progress: Stages) -> Training:
        """The training with what was sought."""
        return self.training(self._found(progress))

    def _found(self, progress: Stages) -> float:
        progress.stage(f"the {self.sought} for epsilon = {upward(self.epsilon)}", _STEPS)
        search = _Search(self, progress)
        return {"noise": search.noise, "epochs": search.epochs, "batch": search.batch}[self.sought]()

    def report(self, progress: Stages) -> BudgetReport:
        """What is sought, and the report of the training with it."""
        found = self._found(progress)
        training = self.training(found)
        report = training.report(progress)
        value = training.batch if self.sought == "batch" else found
        title = (
            f"{SOUGHT[self.sought].format(value)}, for epsilon = {upward(self.epsilon)} per {self.protected}: {report.title}"
        )
        solved = {"for": self.sought, "value": value, "target": self.epsilon}
        return replace(report, title=title, found={**report.found, "solved": solved})


class _Search:
    """Finds what is sought by trying candidates, and shows how many were tried."""

    def __init__(self, target: Target, progress: Stages) -> None:
        self.target, self.progress, self.tried = target, progress, 0

    def noise(self) -> float:
        """The least noise that fits, rounded upwards to four places."""
        self.target.training(1.0)  # refuses what is wrong with the other settings
        low, high = _LEAST_NOISE, _MOST_NOISE
        if not self._surely_fits(high):
            raise self._too_small(f"even noise {_MOST_NOISE:,.0f} spends more", "fewer epochs")
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self._surely_fits(middle) else (middle, high)
        low = _STRIDE * high
        while low > _LEAST_NOISE and self._fits(low):
            low, high = _STRIDE * low, low
        least = noise_for(self._spends, self.target.epsilon, self.target.delta, max(low, _LEAST_NOISE), high)
        return math.ceil(least * 1e4) / 1e4

    def epochs(self) -> float:
        """As many steps, or passes of shuffled batches, as fit; written as epochs."""
        each = 1.0 if self.target.sampling == "shuffled" else self.target.training(1.0).rate
        highest = min(MOST_STEPS, round(_MOST_EPOCHS / each))
        count = self._most(highest, each)
        if count == 0:
            raise self._too_small("a single step spends more", "more noise or smaller batches")
        if count == highest:
            problem = "is so large that epochs have no end"
            raise refused("--noise", self.target.noise, problem, "ask for a smaller epsilon or less noise")
        return count * each

    def batch(self) -> float:
        """The largest batch that fits."""
        self.target.training(1)  # refuses what is wrong with the other settings
        batch = self._most(self.target.documents)
        if batch == 0:
            raise self._too_small("even batches of one document spend more", "more noise or fewer epochs")
        return batch

    def _spends(self, candidate: float) -> Spends:
        self.tried += 1
        self.progress.step(self.tried)
        return self.target.training(candidate).spends()

    def _surely_fits(self, candidate: float) -> bool:
        """By Renyi divergences alone, which is quick: what they allow is allowed."""
        return surely_within(self.target.training(candidate).spends(), self.target.epsilon, self.target.delta)

    def _fits(self, candidate: float) -> bool:
        """By any accountant."""
        return within(self._spends(candidate), self.target.epsilon, self.target.delta)

    def _most(self, largest_of_all: int, each: float = 1.0) -> int:
        """The largest number of `each` that fits."""
        return largest_by(lambda n: self._surely_fits(n * each), lambda n: self._fits(n * each), largest_of_all)

    def _too_small(self, reason: str, instead: str) -> BudgetTooSmall:
        advice = f"allow a larger epsilon, or take {instead}"
        return BudgetTooSmall(self.target.sought, f"{upward(self.target.epsilon)} per {self.target.protected}", reason, advice)
