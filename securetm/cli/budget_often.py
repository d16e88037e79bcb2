"""How often documents can be trained on under one ledger so that each model is still of use, by the forecast.

It reads no document, and spends nothing. More runs leave less for each: so the most that are of use are sought by halving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from securetm.accounting.calculator.planned_runs import MOST_RUNS, Often, RunsAhead
from securetm.accounting.calibration import BudgetTooSmall
from securetm.figures import ReportTable
from securetm.plans.forecast import (
    LENGTHS,
    Forecast,
    ForecastSetting,
    Verdict,
    best_settings,
    forecast,
    forecast_of_lengths,
    tried_as,
)
from securetm.wording import counted, upward


@dataclass(frozen=True)
class RunsOfUse:
    """The question: a ledger, and what the forecast counts with beside epsilon."""

    ledger: RunsAhead
    setting: ForecastSetting
    length: float  # words of a document; 0: nobody says it
    vectors: bool  # whether word vectors are installed here
    _known: dict[int, float] = field(default_factory=dict)  # epsilon of one of so many runs

    def often(self, planned: int) -> Often:
        """The answer, with a row for the planned number, and for the numbers at which the forecast changes."""
        of_use = self._most(lambda one: one.verdict is Verdict.OF_USE)
        may_be = max(of_use, self._most(lambda one: one.verdict is not Verdict.NOT_OF_USE))
        shown = sorted({1, planned, *(n for n in (of_use, of_use + 1, may_be + 1) if 1 <= n <= MOST_RUNS)})
        rows = tuple((f"{n:,}", upward(self.alone(n)), _said(self.best(n)), self.own(n).verdict.value) for n in shown)
        whose = f"{self.setting.documents:,} documents" + ("" if self.length else " of any length (--document-length WORDS)")
        columns = ("trainings in all", "epsilon of one alone", "forecast with its best settings", "with those of the plan")
        caption = (
            f"{self._answer(of_use, may_be)} “Of use” is a forecast, and no promise: its margin is the worst miss of its "
            "trials, each on a corpus that was left out of the fit."
        )
        table = ReportTable(f"How often you can train on {whose}", columns, rows, caption)
        record = {"of_use": of_use, "may_be": may_be, "most_asked": MOST_RUNS, "planned": planned}
        return Often(table, record, self._too_often(planned, of_use))

    def alone(self, runs: int) -> float:
        """What each of so many runs spends, if it were the only one."""
        if runs == 1 and not self.ledger.before and not self.ledger.spending.first:
            return self.ledger.budget.epsilon
        if runs not in self._known:
            self._known[runs] = self.ledger.alone(self.ledger.least_noise(runs))
        return self._known[runs]

    def best(self, runs: int) -> Forecast:
        """What the forecast says of its best settings for one of so many runs."""
        found = best_settings(self._at(runs), (self.length,) if self.length else LENGTHS, vectors=self.vectors)
        return found or self.own(runs)

    def own(self, runs: int) -> Forecast:
        """What it says of the settings of the plan."""
        at = self._at(runs)
        return forecast(replace(at, length=self.length)) if self.length else forecast_of_lengths(at)

    def _at(self, runs: int) -> ForecastSetting:
        return replace(self.setting, epsilon=self.alone(runs), noise=0.0)

    def _most(self, wanted: Callable[[Forecast], bool]) -> int:
        """The most runs of which each is as wanted; 0 where not even one is."""
        low, high = 0, 1
        while high <= MOST_RUNS and self._fits(high) and wanted(self.best(high)):
            low, high = high, 2 * high
        high = min(high, MOST_RUNS + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(middle) and wanted(self.best(middle)) else (low, middle)
        return low

    def _fits(self, runs: int) -> bool:
        try:
            self.alone(runs)
        except BudgetTooSmall:
            return False
        return True

    def _answer(self, of_use: int, may_be: int) -> str:
        if of_use >= MOST_RUNS:
            return f"Each of {MOST_RUNS} trainings or more will be of use."
        if not of_use:
            unsure = f"up to {counted(may_be, 'training')} it cannot say" if may_be else "a single one is not of use"
            return f"The forecast promises no model of use, however seldom you train: {unsure}."
        more = f"; from there to {may_be:,} it cannot say" if may_be > of_use else ""
        beyond = "; beyond, none is of use" if may_be < MOST_RUNS else ""
        return f"Up to {counted(of_use, 'training')} over the same documents, each model will be of use{more}{beyond}."

    def _too_often(self, planned: int, of_use: int) -> str | None:
        if planned <= of_use:
            return None
        least = f"up to {counted(of_use, 'training')}" if of_use else "not even for a single training"
        return f"{counted(planned, 'training')} are planned; the forecast promises models of use {least}."


def _said(one: Forecast) -> str:
    told = one.setting
    settings = f"{tried_as(told)}, {told.words:,} words, {counted(told.topics, 'topic')}, {counted(told.rounds, 'round')}"
    return f"{one.verdict.value} ({settings})" if one.held_out is not None else one.verdict.value
