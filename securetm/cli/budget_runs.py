"""What each of several runs under one ledger may spend, when its budget ends, and how often a model would be of use.

No document is read, and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from securetm.accounting.calculator.budget_report import Promise, Question
from securetm.accounting.calculator.persons import PERSON, People
from securetm.accounting.calculator.runs_ahead import RunsAhead
from securetm.accounting.calibration import BudgetTooSmall
from securetm.accounting.composition import total
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import RunAccount
from securetm.accounting.ledger.all_runs import all_runs
from securetm.accounting.ledger.privacy_filter import Orders
from securetm.cli.budget_plan import MOST_RUNS, PlanQuestion
from securetm.cli.budget_profile import ProfileQuestion, against_of, assumptions_of
from securetm.cli.run import run_to_type
from securetm.contracts import Budget
from securetm.corpus.word_vectors import installed_vectors
from securetm.data_classes import asdict, dataclass, field, replace
from securetm.errors import BadSetting
from securetm.federation.budget.forecast import setting_of
from securetm.federation.budget.prices import PlannedSpending, with_words_noise
from securetm.figures import Curve, Figure, ReportTable
from securetm.plans.forecast import Forecast, ForecastSetting, Verdict, best_settings, forecast, tried_as
from securetm.plans.schema import USUAL_LANGUAGE, hides_documents
from securetm.reports.forecast import before_a_run
from securetm.stages import Stages
from securetm.wording import counted, downward, upward

_BAR = 10  # cells
_COMPOSED = 24  # places at which loss distributions are composed; runs in between are told what a later one spends
_NOT_ALONE = (
    "The ledger counts as if each run were chosen by what the last one showed, so that nobody has to keep to this plan. It "
    "adds Renyi divergences up, and has more to count than loss distributions of runs that are fixed in advance."
)
_RETIRED = (
    "Retired documents leave with what they spent, and a new data set begins a ledger of its own. It must hold no document and "
    "no person of the old one: who is in both has spent both budgets. Leaving documents out of a run gives nothing back, and "
    "new documents that join an old ledger count as if they had spent what it holds."
)
_ALLOWED = (
    "`securetm budget ledger FILE --allow E` raises a budget later, by an entry. What was promised is then the largest epsilon "
    "that was ever in force, also for the runs before. So ask for the whole time at once."
)
_UNBOUNDED = "This bounds what the planned runs add. All runs together are unbounded, because of"
_AUDITED = (
    "An audit of a recorded run enters nothing: it reads what the run sent, which is paid for. Its findings are figures of "
    "documents without noise, and no epsilon covers them: they stay with whoever holds the documents. Trainings that an audit "
    "makes on the documents spend as runs do (--runs-per-audit). No ledger of the documents knows of them by itself, because "
    "`securetm audit PLAN` gives its runs a trial's budget: they are counted here, so that there is room for them."
)


def question_of(asked: PlanQuestion, progress: Stages) -> Question:
    """What each of the runs may spend, and what is left after it."""
    one, run, ledger = one_run(asked)
    cohort, profile, plan = one.cohort, run.agreement.profile, run.agreement.plan
    budget, planned, people = ledger.budget, asked.in_one_ledger, one.people
    unit, rounds = budget.unit.value, plan.training.rounds
    progress.stage("the noise of a run", 1)
    noise = asked.noise or ledger.least_noise(planned)
    progress.step(1)
    lasts = ledger.lasting(planned, noise)
    progress.stage("how often a model would be of use", 1)
    use, often = "Whether such models will be of use, and how often you can train, is said if you give --documents.", None
    if asked.documents:
        agreed = run.agreement.with_privacy(noise=noise)
        setting = setting_of(agreed, run.parties, asked.documents, asked.document_length, one.documents_each())
        use, often = f"Each of the models: {before_a_run(forecast(setting), '')}", RunsOfUse(ledger, setting).often(planned)
    progress.step(1)
    rows = _rows(asked, ledger, noise, lasts, progress)
    alone, refused = ledger.alone(noise), next((row["year"] for row in rows if not row["admitted"]), None)
    ends = (
        f"The budget lasts for {counted(lasts, 'run')}: the ledger refuses the run after it, in year {refused}, and "
        f"all later ones over these documents, of {counted(planned, 'run')} planned."
    )
    why = ledger.unbounded_because
    settings = {
        "model.name": asked.model,
        "vocabulary.file": USUAL_LANGUAGE if asked.words == "public" else "",
        "vocabulary.max_words": asked.vocabulary_size,
        **{f"training.{name}": value for name, value in one.told().items()},
        "federation.parties": run.parties,
        "training.rounds": rounds,
        "privacy.epsilon": budget.epsilon,
        "privacy.delta": budget.delta,
        "privacy.noise": noise,
    }
    return Question(
        f"{counted(lasts, 'run')} of {counted(rounds, 'round')} under {profile.name}, one ledger of {ledger.said_budget}",
        Promise(
            unit,
            against_of(profile, cohort, budget),
            f"any one {unit} was in a party's corpus in any of the runs",
            (
                f"the runs over the same documents are the {len(ledger.before) + planned} planned, whatever they show",
                *assumptions_of(profile, cohort),
                *people.assumptions,
            ),
        ),
        ledger.spends(lasts, noise),
        budget.delta,
        "none",
        {**asdict(asked), **people.found, "parties": run.parties, "model": plan.model.name},
        warnings=(
            sentence_delta(budget.delta, people.units, people.protected),
            ends if lasts < planned else None,
            f"{_UNBOUNDED} {why}." if why else None,
            often.too_often if often else None,
        ),
        notes=(use, _about_words(run), *people.notes(), _NOT_ALONE, _AUDITED, _RETIRED, _ALLOWED),
        tables=(
            *((often.table,) if often else ()),
            _each(ledger, planned, noise, rounds, run_to_type(asked.profile, settings, by_person=people.protected == PERSON)),
            _over_time(rows, budget, by_data_set=bool(asked.retire_after)),
        ),
        plots=(_plot(rows, budget),),
        found={
            "noise": noise,
            "rounds": rounds,
            "epsilon_per_run": alone,
            "lasts_runs": lasts,
            "runs": rows,
            "how_often": often.record if often else None,
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        },
        first=(
            f"After the last run the ledger holds epsilon = {upward(rows[-1]['spent'])} of {ledger.said_budget}, whatever the "
            "runs show. If all of them are fixed in advance, the promise is:"
        ),
    )


def one_run(asked: PlanQuestion) -> tuple[ProfileQuestion, PlannedSpending, RunsAhead]:
    """The question about one run, the run whose noise is still open, and the ledger of all of them."""
    epsilon, delta, before, unbounded = asked.epsilon, asked.delta, list[RunAccount](), ""
    orders: Orders = ()
    if asked.ledger:
        with Ledger.read(Path(asked.ledger)) as held:
            before, orders = [run for run in held.runs() if run.answers], held.orders
            epsilon, delta = (held.budget.epsilon, held.budget.delta) if held.has_budget else (epsilon, delta)
        together = all_runs(Path(asked.ledger))
        unbounded = (together.unbounded_because if together else None) or ""
    one = ProfileQuestion(
        asked.profile,
        asked.parties,
        asked.rounds,
        asked.vocabulary_size,
        asked.model,
        people=People(asked.unit, asked.documents, asked.documents_per_person, asked.persons),
        epsilon=epsilon,
        delta=delta,
        noise=asked.noise,
        missing=asked.missing,
        colluding=asked.colluding,
        public=asked.words == "public",
    )
    parties, own = len(one.cohort.members), one.budget("--profile", "securetm budget plan")
    if not hides_documents(own):
        problem = "draws its noise once per corpus and uses it in all runs, so that there is nothing to share out"
        instead = f"`securetm budget profile {asked.profile}` says what that one draw spends"
        raise BadSetting("securetm budget plan", "--profile", asked.profile, problem, instead=instead)
    run = PlannedSpending(with_words_noise(one.agreement(epsilon=epsilon or own.epsilon)), parties)
    assert run.agreement.budget is not None
    return one, run, RunsAhead(run.agreement.budget, run.spending(), tuple(before), unbounded, orders)


def _about_words(run: PlannedSpending) -> str:
    if run.words is None:
        return "The list of words is public, and costs nothing."
    noise = run.agreement.plan.privacy.words
    return (
        f"The first run finds the words and pays for them (--set privacy.words={noise:g}). The later ones take its list "
        "(--vocabulary RUN/coordinator/vocabulary.txt), which was paid for; `--words public` plans with a public list."
    )


# ---- what is left after each run -----------------------------------------------------------------------------------


def _rows(asked: PlanQuestion, ledger: RunsAhead, noise: float, lasts: int, progress: Stages) -> list[dict[str, Any]]:
    """Every run with what the ledger holds after it; a run that it refuses spends nothing."""
    progress.stage("what is left after each run", lasts)
    spent, fixed = {}, {}
    above, every = math.inf, -(-lasts // _COMPOSED)
    for run in range(lasts, 0, -1):
        spent[run] = ledger.after(run, noise).spent().epsilon
        if (lasts - run) % every == 0:  # else what later runs spend
            above = total(ledger.spends(run, noise), ledger.budget.delta).epsilon
        fixed[run] = above
        progress.step(lasts + 1 - run)
    return [
        {
            "run": place,
            **one,
            "admitted": number <= lasts,
            "spent": spent[min(number, lasts)],
            "left": ledger.budget.epsilon - spent[min(number, lasts)],
            "fixed_in_advance": fixed[min(number, lasts)],
        }
        for place, one in enumerate(asked.runs(), start=1)
        for number in (one.pop("number"),)
    ]


def _each(ledger: RunsAhead, planned: int, noise: float, rounds: int, run: str) -> ReportTable:
    budget = ledger.budget
    rows = (
        ("epsilon of a run, if it were the only one", upward(ledger.alone(noise))),
        ("noise over the bound on a row", f"{noise:,.5g}"),
        ("rounds", f"{rounds:,}"),
        ("epsilon divided by the runs, which would be less", upward(budget.epsilon / (len(ledger.before) + planned))),
    )
    caption = (
        f"Each run: {run}. In a federation the plan says the same, and PARTY.toml the budget of all runs: [privacy] "
        f"epsilon = {budget.epsilon:g}, delta = {budget.delta:g}."
    )
    return ReportTable("What each run may spend", ("", f"per {budget.unit.value}"), rows, caption)


def _over_time(rows: list[dict[str, Any]], budget: Budget, *, by_data_set: bool) -> ReportTable:
    sets = ("data set",) if by_data_set else ()
    shown = []
    for row in rows:
        share = row["spent"] / budget.epsilon
        full = min(_BAR, math.ceil(share * _BAR)) if share > 0 else 0  # what is spent is never shown as less than a cell
        shown.append(
            (
                row["run"],
                row["year"],
                *(row["data_set"] for _ in sets),
                row["purpose"] if row["admitted"] else f"{row['purpose']}: refused",
                upward(row["spent"]),
                downward(row["left"]),
                "█" * full + "░" * (_BAR - full),
                upward(row["fixed_in_advance"]),
            )
        )
    columns = ("run", "year", *sets, "for", "spent", "left", "of it all", "if fixed in advance")
    caption = (
        f"Epsilon per {budget.unit.value} after the run, as the ledger counts it. Last column: by loss "
        "distributions, if all runs are fixed in advance and made whatever they show."
    )
    return ReportTable("Over time", columns, tuple(shown), caption)


def _plot(rows: list[dict[str, Any]], budget: Budget) -> Figure:
    lines = (
        Curve("by the ledger", tuple((float(row["run"]), row["spent"]) for row in rows)),
        Curve("fixed in advance", tuple((float(row["run"]), row["fixed_in_advance"]) for row in rows)),
        Curve("budget", ((1.0, budget.epsilon), (float(len(rows)), budget.epsilon))),
    )
    return Figure("epsilon over the runs", "runs", f"epsilon per {budget.unit.value}", lines)


# ---- how often each model is of use --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Often:
    """How often documents can be trained on so that each model is of use: for people, as data, and a warning."""

    table: ReportTable
    record: dict[str, Any]
    too_often: str | None  # where more runs are planned


@dataclass(frozen=True)
class RunsOfUse:
    """A ledger, and what the forecast counts with beside epsilon.

    More runs leave less for each: so the most that are of use are sought by halving.
    """

    ledger: RunsAhead
    setting: ForecastSetting
    _known: dict[int, float] = field(default_factory=dict)  # epsilon of one of so many runs

    def often(self, planned: int) -> Often:
        """How often one can train, with a row for the planned number, and for the numbers at which the forecast changes."""
        of_use = self._most(lambda one: one.verdict is Verdict.OF_USE)
        may_be = max(of_use, self._most(lambda one: one.verdict is not Verdict.NOT_OF_USE))
        shown = sorted({1, planned, *(n for n in (of_use, of_use + 1, may_be + 1) if 1 <= n <= MOST_RUNS)})
        rows = []
        for runs in shown:
            best = self.best(runs)
            told, said = best.setting, best.verdict.value
            if best.held_out is not None:
                counts = f"{told.words:,} words, {counted(told.topics, 'topic')}, {counted(told.rounds, 'round')}"
                said += f" ({tried_as(told)}, {counts})"
            rows.append((f"{runs:,}", upward(self.alone(runs)), said, self.own(runs).verdict.value))
        any_length = "" if self.setting.length else " of any length (--document-length WORDS)"
        columns = ("trainings in all", "epsilon of one alone", "forecast with its best settings", "with those of the plan")
        caption = (
            f"{_how_often(of_use, may_be)} “Of use” is a forecast, and no promise: its margin is the worst miss of its "
            "trials, each on a corpus that was left out of the fit."
        )
        title = f"How often you can train on {self.setting.documents:,} documents{any_length}"
        least = f"up to {counted(of_use, 'training')}" if of_use else "not even for a single training"
        too_often = f"{counted(planned, 'training')} are planned; the forecast promises models of use {least}."
        record = {"of_use": of_use, "may_be": may_be, "most_asked": MOST_RUNS, "planned": planned}
        return Often(ReportTable(title, columns, tuple(rows), caption), record, too_often if planned > of_use else None)

    def alone(self, runs: int) -> float:
        """What each of so many runs spends, if it were the only one."""
        if runs == 1 and not self.ledger.before and not self.ledger.spending.first:
            return self.ledger.budget.epsilon
        if runs not in self._known:
            self._known[runs] = self.ledger.alone(self.ledger.least_noise(runs))
        return self._known[runs]

    def best(self, runs: int) -> Forecast:
        return best_settings(self._at(runs), vectors=installed_vectors() is not None, surest=True) or self.own(runs)

    def own(self, runs: int) -> Forecast:
        return forecast(self._at(runs))

    def _at(self, runs: int) -> ForecastSetting:
        return replace(self.setting, epsilon=self.alone(runs), noise=0.0)

    def _most(self, wanted: Callable[[Forecast], bool]) -> int:
        """The most runs of which each is as wanted; 0 where not even one is."""

        def fits(runs: int) -> bool:
            try:
                return wanted(self.best(runs))
            except BudgetTooSmall:
                return False

        low, high = 0, 1
        while high <= MOST_RUNS and fits(high):
            low, high = high, 2 * high
        high = min(high, MOST_RUNS + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def _how_often(of_use: int, may_be: int) -> str:
    if of_use >= MOST_RUNS:
        return f"Each of {MOST_RUNS} trainings or more will be of use."
    if not of_use:
        unsure = f"up to {counted(may_be, 'training')} it cannot say" if may_be else "a single one is not of use"
        return f"The forecast promises no model of use, however seldom you train: {unsure}."
    more = f"; from there to {may_be:,} it cannot say" if may_be > of_use else ""
    beyond = "; beyond, none is of use" if may_be < MOST_RUNS else ""
    return f"Up to {counted(of_use, 'training')} over the same documents, each model will be of use{more}{beyond}."
