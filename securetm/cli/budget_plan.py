"""`securetm budget plan`: several runs over the same documents under one ledger. It reads no document, and spends nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from securetm.cli import options

USUAL_LANGUAGE = "english"

if TYPE_CHECKING:
    from securetm.accounting.calculator.budget_report import Question
    from securetm.accounting.calculator.planned_runs import Often, RunsAhead
    from securetm.cli.budget_profile import ProfileQuestion
    from securetm.federation.budget.prices import RunSpending
    from securetm.plans.forecast import Forecast
    from securetm.stages import Stages

_WORDS = ("once", "public")
Unit = Annotated[
    str,
    typer.Option(help="Who is protected: document or person. The person, if persons or documents per person are given."),
]
EachPerson = Annotated[int | None, typer.Option("--documents-per-person", help="Documents of one person, at most.")]
Persons = Annotated[int | None, typer.Option(help="How many persons the documents are of.")]


@dataclass(frozen=True)
class PlanQuestion:
    """What is asked about runs over time, by options or as a TOML file says it. What is left out is as a run would have it."""

    profile: Annotated[
        str, typer.Option(help="Privacy profile; dp-distributed, if not given.", autocompletion=options.profiles)
    ] = "dp-distributed"
    years: Annotated[int, typer.Option(help="For how many years; 5, if not given.")] = 5
    runs_per_year: Annotated[int, typer.Option(help="Trainings in a year; 1, if not given.")] = 1
    audits_per_year: Annotated[int, typer.Option(help="Audits in a year.")] = 0
    runs_per_audit: Annotated[
        int, typer.Option(help="Trainings on the documents that one audit makes; 0: it attacks a recorded run.")
    ] = 0
    retire_after: Annotated[int, typer.Option(help="Years after which documents are used no more; 0: never.")] = 0
    words: Annotated[str, typer.Option(help="once: the first run finds them for all; public: from a public list.")] = ""
    epsilon: Annotated[float | None, typer.Option(help="The budget of all runs together, in place of the profile's.")] = None
    delta: Annotated[float | None, typer.Option(help="Its delta.")] = None
    noise: Annotated[float | None, typer.Option(help="Noise of a run: how long does the budget last?")] = None
    rounds: Annotated[int | None, typer.Option(help="Rounds of a run; if not given, as many as a run would ask.")] = None
    model: Annotated[
        str, typer.Option(help="Topic model; if not given, the one that a run would train.", autocompletion=options.models)
    ] = ""
    vocabulary_size: Annotated[int, typer.Option(help="Words in the vocabulary.")] = 2000
    unit: Unit = ""
    documents: Annotated[int | None, typer.Option(help="Documents of all parties, about: then how often you can train.")] = None
    document_length: Annotated[float, typer.Option(help="Words of a document, about; 0: not said.")] = 0.0
    documents_per_person: EachPerson = None
    persons: Persons = None
    parties: Annotated[int | None, typer.Option(help="How many parties; if not given, 5 or as many as it needs.")] = None
    missing: Annotated[int | None, typer.Option(help="How many parties may be missing from a sum.")] = None
    colluding: Annotated[int | None, typer.Option(help="How many parties may help the adversary.")] = None
    ledger: Annotated[str, typer.Option(metavar="FILE", help="Go on from what this ledger holds.")] = ""

    def __post_init__(self) -> None:
        from securetm.accounting.calculator.option_checks import check, check_choice, refused
        from securetm.accounting.calculator.planned_runs import MOST_RUNS

        for name in ("years", "runs_per_year", "audits_per_year", "runs_per_audit", "retire_after"):
            check(f"--{name.replace('_', '-')}", getattr(self, name))
        check_choice("--words", self.words, ("", *_WORDS))
        check("--document-length", self.document_length)
        if self.years * (self.runs_per_year + self.audits_per_year * self.runs_per_audit) > MOST_RUNS:
            problem = f"makes more than {MOST_RUNS} runs with the others"
            raise refused("--years", self.years, problem, "plan fewer years, or runs and audits in a year")
        if self.ledger and (self.epsilon is not None or self.delta is not None):
            option, value = ("--epsilon", self.epsilon) if self.epsilon is not None else ("--delta", self.delta)
            problem = "cannot be given beside --ledger, which has its own budget"
            raise refused(option, value, problem, "change the budget first: securetm budget ledger FILE --allow E")

    def question(self, progress: Stages) -> Question:
        """What each of the runs may spend, and what is left after it."""
        from securetm.accounting.calculator.budget_report import Promise
        from securetm.accounting.calculator.planned_runs import PlannedRuns, Schedule
        from securetm.cli.budget_profile import against_of, assumptions_of

        schedule = Schedule(self.years, self.runs_per_year, self.audits_per_year, self.runs_per_audit, self.retire_after)
        asked, run, ledger = self.asked()
        cohort, profile, plan = asked.cohort(), run.agreement.profile, run.agreement.plan
        unit, runs = ledger.budget.unit.value, schedule.in_one_ledger
        promise = Promise(
            unit,
            against_of(profile, cohort, ledger.budget),
            f"any one {unit} was in a party's corpus in any of the runs",
            (
                f"the runs over the same documents are the {len(ledger.before) + runs} planned, whatever they show",
                *assumptions_of(profile, cohort),
                *asked.people.assumptions,
            ),
        )
        settings = {**asdict(self), **asked.people.found, "parties": run.parties, "model": plan.model.name}
        progress.stage("the noise of a run", 1)
        noise = self.noise or ledger.least_noise(runs)
        progress.step(1)
        ledger.lasting(1, noise)
        progress.stage("how often a model would be of use", 1)
        use, often = self._of_use(asked, run, ledger, noise, runs)
        progress.step(1)
        notes, command = (use, _about_words(run)), self._command(asked, run.parties)
        return PlannedRuns(
            profile.name, schedule, ledger, noise, promise, plan.training.rounds, asked.people, settings, notes, command, often
        ).question(progress)

    def asked(self) -> tuple[ProfileQuestion, RunSpending, RunsAhead]:
        """The question about one run, the run whose noise is still open, and the ledger of all of them."""
        from securetm.accounting.calculator.persons import People
        from securetm.accounting.calculator.planned_runs import RunsAhead
        from securetm.accounting.ledger import Ledger
        from securetm.accounting.ledger.accounts import RunAccount
        from securetm.accounting.ledger.all_runs import all_runs
        from securetm.cli.budget_profile import ProfileQuestion
        from securetm.errors import BadSetting
        from securetm.federation.budget.prices import RunSpending, with_words_noise
        from securetm.plans.schema import hides_documents

        epsilon, delta, before, unbounded = self.epsilon, self.delta, list[RunAccount](), ""
        if self.ledger:
            with Ledger.read(Path(self.ledger)) as held:
                before = [run for run in held.runs() if run.answers]
                epsilon, delta = (held.budget.epsilon, held.budget.delta) if held.has_budget else (epsilon, delta)
            together = all_runs(Path(self.ledger))
            unbounded = (together.unbounded_because if together else None) or ""
        asked = ProfileQuestion(
            self.profile,
            self.parties,
            self.rounds,
            self.vocabulary_size,
            self.model,
            people=People(self.unit, self.documents, self.documents_per_person, self.persons),
            epsilon=epsilon,
            delta=delta,
            noise=self.noise,
            missing=self.missing,
            colluding=self.colluding,
            public=self.words == "public",
        )
        parties, own = len(asked.cohort().members), asked.budget("--profile", "securetm budget plan")
        if not hides_documents(own):
            problem = "draws its noise once per corpus and uses it in all runs, so that there is nothing to share out"
            instead = f"`securetm budget profile {self.profile}` says what that one draw spends"
            raise BadSetting("securetm budget plan", "--profile", self.profile, problem, instead=instead)
        run = RunSpending(with_words_noise(asked.agreement(epsilon=epsilon or own.epsilon)), parties)
        assert run.agreement.budget is not None
        return asked, run, RunsAhead(run.agreement.budget, run.spending(), tuple(before), unbounded)

    def _of_use(
        self, asked: ProfileQuestion, run: RunSpending, ledger: RunsAhead, noise: float, runs: int
    ) -> tuple[str, Often | None]:
        """Whether the model of a run will be of use, and how often one can train so that each is."""
        from securetm.cli.budget_often import RunsOfUse
        from securetm.corpus.word_vectors import installed_vectors
        from securetm.federation.budget.forecast import forecast_with
        from securetm.reports.forecast import before_a_run

        if not self.documents:
            return "Whether such models will be of use, and how often you can train, is said if you give --documents.", None

        def forecast(at: float) -> Forecast:
            about = (run.parties, self.documents or 0, self.document_length, asked.documents_each())
            return forecast_with(run.agreement.with_privacy(noise=at), *about)

        of_use = RunsOfUse(ledger, forecast(1.0).setting, self.document_length, installed_vectors() is not None)
        return f"Each of the models: {before_a_run(forecast(noise), '')}", of_use.often(runs)

    def _command(self, asked: ProfileQuestion, parties: int) -> str:
        """How the command of each run begins, with what the plan counted with."""
        from securetm.accounting.calculator.persons import PERSON

        parts = (
            f"securetm run --corpus FILE --profile {self.profile}",
            *(("--person COLUMN",) if asked.people.protected == PERSON else ()),
            *((f"--model {self.model}",) if self.model else ()),
            *((f"--vocabulary {USUAL_LANGUAGE}",) if self.words == "public" else ()),
            f"--set vocabulary.max_words={self.vocabulary_size}",
            *(f"--set training.{name}={value:.12g}" for name, value in asked.told().items()),
            f"--set federation.parties={parties}",
        )
        return " ".join(parts)


def _about_words(run: RunSpending) -> str:
    """How the runs come to their words."""
    if run.bill().words is None:
        return "The list of words is public, and costs nothing."
    noise = run.agreement.plan.privacy.words
    return (
        f"The first run finds the words and pays for them (--set privacy.words={noise:g}). The later ones take its list "
        "(--vocabulary RUN/coordinator/vocabulary.txt), which was paid for; `--words public` plans with a public list."
    )
