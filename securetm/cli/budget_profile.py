"""What a run under a profile spends, for how many rounds its budget lasts, and what can be expected of its model.

The spends are those for which the profile's own parts account. No document is read.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dp_accounting import PoissonSampledDpEvent

from securetm.accounting.calculator.budget_report import (
    Course,
    Promise,
    Question,
    largest_by,
    replacing,
    some,
    surely_within,
)
from securetm.accounting.calculator.mechanisms import BOUNDED_ROWS, PUBLIC, UNIT, WordNoise
from securetm.accounting.calculator.option_checks import check, check_delta, refused
from securetm.accounting.calculator.persons import PERSON, SEPARATE, People
from securetm.accounting.calibration import BudgetTooSmall
from securetm.accounting.closed_forms import basic_epsilon
from securetm.accounting.composition import total, within
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Bill, leaves_of
from securetm.cli.run import run_to_type
from securetm.contracts import NoiseBy, Unit
from securetm.corpus.languages import language_code
from securetm.corpus.public_words import USUAL_LENGTH
from securetm.corpus.word_vectors import installed_vectors
from securetm.data_classes import asdict, dataclass, replace
from securetm.errors import BadSetting
from securetm.federation.budget.forecast import asked_about, needed_by, setting_of
from securetm.federation.budget.prices import bill_of, calibrated
from securetm.figures import Curve, ReportTable
from securetm.mechanisms.noising import PRIVATE
from securetm.plans.agreement import Agreement, agree
from securetm.plans.forecast import (
    BY_MOMENTS,
    BY_MOMENTS_ALONE,
    LDA_VI,
    ForecastSetting,
    best_settings,
    forecast,
    setting_under,
)
from securetm.plans.profiles import cohort_of, count_of_parties, read_profile, words_in_sums
from securetm.plans.recommend import plan_from_tables
from securetm.plans.schema import MOMENTS, NO_VECTORS, USUAL_LANGUAGE, hides_documents, usual_model
from securetm.reports.forecast import before_a_run, best_said
from securetm.stages import Stages
from securetm.wording import colluding_parties, counted, upward

if TYPE_CHECKING:
    from securetm.contracts import Budget, Cohort, Profile

MOST_ROUNDS = 10**6
_ROLES = {"coordinator": "the coordinator", "party": "any other party", "model reader": "anyone who gets the model"}
_MOST_PARTIES = 10_000
_STEPS = 12  # about as many as the search for the last round takes
_LIST_OF_YOURS = "WORDS.txt"  # a public list, one word a line, in the place of a language
_DRAWN_ONCE = (
    PUBLIC,
    "the noise is drawn once per corpus, kept by the party alone and used for all rounds and all runs",
)
_CHARGED_ONCE = (
    "Charged once: more rounds, and more runs over the same documents and words, spend no more. Another list of words, or "
    "other documents, means new noise, and the same again."
)
_ALL_ASKED = (
    "For a model that asks for batches. One that asks all documents in every round, as lda does, is not helped by the coins: a "
    "round costs it more, and its ledger ends it sooner (`--model lda` says by how much)."
)
_SHARE = (
    "Computed at nine tenths of delta, as a party's ledger does: the rest is kept for further runs over the same documents."
)
_INSTEAD = "give the profile a larger budget, more noise, or tails that are cut more rarely (`miss`)"


@dataclass(frozen=True)
class ProfileQuestion:
    """What is asked about a run under a profile. What is left out is as a run would have it."""

    profile: str
    parties: int | None = None
    rounds: int | None = None
    words: int | None = None  # if nobody says how many, as many as a run would list
    model: str = ""
    language: str | None = None
    length: float = 0.0  # words of a document; 0: nobody says how many
    people: People = SEPARATE
    epsilon: float | None = None
    delta: float | None = None
    noise: float | None = None
    missing: int | None = None
    colluding: int | None = None
    public: bool = False  # whether the list of words is a public one
    start: str = ""  # where the training begins

    def __post_init__(self) -> None:
        check("--rounds", self.rounds, MOST_ROUNDS)
        check("--parties", self.parties)
        check("--vocabulary-size", self.words)
        check("--document-length", self.length)
        check("--documents", self.people.documents)
        check("--epsilon", self.epsilon)
        check("--noise", self.noise)
        check("--missing", self.missing)
        check("--colluding", self.colluding)
        if self.delta is not None:
            check_delta(self.delta)

    # ---- the run that is meant -----------------------------------------------------------------------------------------

    def budget(self, option: str = "NAME", command: str = "securetm budget profile") -> Budget:
        """The profile's budget; a profile without one is refused."""
        profile = read_profile(self.profile)
        if profile.budget is None:
            problem = "spends no privacy budget, because it adds no noise and promises no differential privacy"
            instead = f"`securetm explain {profile.name}` says what it protects by other means"
            raise BadSetting(command, option, profile.name, problem, instead=instead)
        return profile.budget

    @cached_property
    def cohort(self) -> Cohort:
        """The parties, of whom no more are missing or help an adversary than the profile's noise is sized for."""
        profile = read_profile(self.profile)
        parties = count_of_parties(profile, self.parties)
        cohort = cohort_of(profile, parties)
        most = parties - _remain(profile, cohort)
        if self.missing is not None and self.missing > most:
            problem = (
                f"must be at most {most}: under {profile.name} a sum of {counted(parties, 'party', 'parties')} is opened over "
                f"at least {parties - most}, and no noise is there for more that are missing"
            )
            raise refused("--missing", self.missing, problem, _for_missing(profile, self.missing))
        # Helpers, by every part that adds noise to the model's answers; all other parties where no part names a limit.
        noising = [part.claims(cohort) for part in profile.mechanisms if part.noise_by is not NoiseBy.NOBODY]
        private = [[claim.colluding for claim in claims if claim.what == PRIVATE] for claims in noising]
        helpers = min((max(helped) for helped in private if helped), default=len(cohort.members) - 1)
        if self.colluding is not None and self.colluding > helpers:
            problem = (
                f"must be at most {helpers}: the noise of {profile.name} is sized for no more helpers of {parties} parties"
            )
            instead = "take `dp-local`, whose noise no helper knows, or a profile of your own with a larger `colluding`"
            raise refused("--colluding", self.colluding, problem, instead)
        return cohort

    @cached_property
    def listed(self) -> int:
        return self.listed_if_open if self.words is None else self.words

    @cached_property
    def listed_if_open(self) -> int:
        """How many words a run lists that leaves their number open."""
        usual = ProfileQuestion(self.profile, self.parties, people=self.people, epsilon=self.epsilon, delta=self.delta)
        return plan_from_tables(usual._tables(), "the calculator").vocabulary.max_words

    def agreement(self, **privacy: float) -> Agreement:
        """The run, agreed on as a plan that says only what was asked. Numbers in place of words stand for its vocabulary."""
        tables = self._tables(**privacy)
        tables["vocabulary"] = {**tables["vocabulary"], "max_words": self.listed}
        return agree(plan_from_tables(tables, "the calculator"), listed=tuple(f"word{n}" for n in range(self.listed)))

    def _tables(self, **privacy: float) -> dict[str, Any]:
        """The plan of that run, but for how many words it lists."""
        listed = self.language or (USUAL_LANGUAGE if self.public else "")
        training = {"rounds": self.rounds, **self.told(), "start": self.start or None}
        return {
            "profile": self.profile,
            "vocabulary": {"source": "file", "file": listed} if listed else {},
            "model": {"name": self.model or usual_model(self.budget())},
            "training": {name: value for name, value in training.items() if value is not None},
            "privacy": {**self._numbers(), **privacy},
            "federation": {"parties": self.parties or 0},
        }

    def told(self) -> dict[str, float]:
        """How many documents and persons there are and how long, as a plan says it; nothing where nobody does."""
        people, units = self.people, self.people.units
        if units is None:
            return {}
        by_person = people.protected == PERSON and people.documents is not None
        length = {"document_length": self.length} if self.length else {}
        return {"documents": people.documents or units, **({"persons": units} if by_person else {}), **length}

    def documents_each(self) -> float:
        """How many documents a person has in the mean, where the budget is each person's."""
        documents, units = self.people.documents or 1, self.people.units
        return max(documents / (units or documents), 1.0)

    def _numbers(self) -> dict[str, Any]:
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "noise": self.noise}
        unit = {"unit": PERSON} if self.people.protected == PERSON else {}
        return unit | {name: value for name, value in numbers.items() if value is not None}

    # ---- what it spends ------------------------------------------------------------------------------------------------

    def question(self, progress: Stages) -> Question:
        own, parties = self.budget(), len(self.cohort.members)
        list_note, told = "", dict[str, Any]()
        if self.language:
            length = self.length or USUAL_LENGTH
            expected, list_note = asked_about(self.language, self.listed, self.people.documents, length)
            told["expected_words"] = asdict(expected)
        agreement = calibrated(self.agreement(), parties)
        bill, budget = bill_of(agreement, parties), agreement.budget
        assert budget is not None
        drawn_once = budget.unit is Unit.WORD and bill.round is None
        asked = self._drawn_once(agreement, bill) if drawn_once else self._round_by_round(agreement, bill, progress)
        suggested, forecast_note = "", ""
        if hides_documents(own):
            suggested = self._suggested(told, agreement)
            forecast_note = self._expected(told, agreement)
        named = ((part, part.plan_numbers.get("noise_multiplier", "")) for part in agreement.profile.mechanisms)
        noise = next((float(getattr(part, name)) for part, name in named if name), None)  # none on single words
        settings = {
            "profile": agreement.profile.name,
            "rounds": bill.rounds,
            "model": agreement.plan.model.name,
            "parties": parties,
            "vocabulary_size": self.listed,
            **self._numbers(),
            **({"start": self.start} if self.start else {}),
            "missing": self.missing,
            "colluding": self.colluding,
            **self.people.found,
            "documents": self.people.documents,
        }
        return replace(
            asked,
            settings=settings,
            notes=some(*asked.notes, suggested, list_note, forecast_note),
            found={**asked.found, "noise": noise, **told},
        )

    def _round_by_round(self, agreement: Agreement, bill: Bill, progress: Stages) -> Question:
        """What the run spends. Where the budget ends before the last round, what the rounds spend that it lasts for."""
        budget, profile, parties = agreement.budget, agreement.profile, len(self.cohort.members)
        assert budget is not None
        unit, delta = budget.unit.value, ALONE * budget.delta  # the part of delta that one run may use
        progress.stage("rounds that the budget lasts", _STEPS)
        tried = iter(range(1, MOST_ROUNDS))

        def fits(rounds: int) -> bool:
            progress.step(next(tried))
            return within(bill.spends(rounds), budget.epsilon, delta)

        lasts = largest_by(lambda n: surely_within(bill.spends(n), budget.epsilon, delta), fits, MOST_ROUNDS)
        said_budget = f"{upward(budget.epsilon)} per {unit}"
        if lasts == 0:
            raise BudgetTooSmall(
                "round", said_budget, "a round spends more, or its failure probability exceeds delta", _INSTEAD
            )
        rounds, event = min(bill.rounds, lasts), bill.round.event if bill.round else None
        coins: tuple[str, ...] = ()  # of sampled documents
        if isinstance(event, PoissonSampledDpEvent):
            coin = f"a coin of its own (with probability {event.sampling_probability:.4g}) that nobody else learns"
            coins = (f"a {unit} joins each round by {coin}",)
        ends = (
            f"The budget, epsilon = {said_budget}, lasts for {counted(lasts, 'round')}: "
            f"the ledger ends the run there, before the {counted(bill.rounds, 'round')} asked for."
        )
        found_words = ""
        if (needed := needed_by(agreement, parties)) is not None:
            found_words = (
                f"A word that is in {needed.found_from:,} documents of {needed.whose} is found in 99 of 100 selections; rare "
                "ones are not. A public list of words costs nothing and needs none."
            )
        before = {"words": bill.words, "question before the training": bill.start}
        before = {name: spend for name, spend in before.items() if spend}
        rows = (
            *((f"the {name} alone", 1, total((spend,), delta).epsilon) for name, spend in before.items() if spend),
            (" and ".join([*before, "rounds"]), rounds, total(bill.spends(rounds), delta).epsilon),
            ("the budget", lasts, budget.epsilon),
        )
        most = "; the budget allows a million rounds and more" if lasts == MOST_ROUNDS else ""
        caption = f"The budget lasts so many rounds{most}."
        return Question(
            f"Profile {profile.name}, {counted(rounds, 'round')}",
            Promise(
                unit,
                against_of(profile, self.cohort, budget),
                f"any one {unit} was in a party's corpus",
                coins + assumptions_of(profile, self.cohort) + self.people.assumptions,
            ),
            bill.spends(rounds),
            budget.delta,
            "poisson" if coins else "none",
            {},
            share=ALONE,
            people=self.people,
            moves_as_one=bill.words is None or words_in_sums(profile),
            along="rounds",
            courses=(Course("spent", bill.spends, rounds, whole=True),),
            beside=(Curve("budget", ((0.0, budget.epsilon), (float(rounds), budget.epsilon))),),
            warnings=(ends if bill.rounds > lasts else None,),
            notes=some(
                f"That run: {self._as_run(agreement)}",
                _shares_note(profile, self.cohort),
                *self.people.notes(),
                found_words,
                _SHARE,
                _ALL_ASKED if coins else None,
            ),
            tables=(ReportTable("What it is spent on", ("", "rounds", f"epsilon per {unit}"), rows, caption),),
            found={"rounds": rounds, "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "lasts_rounds": lasts}},
        )

    def _drawn_once(self, agreement: Agreement, bill: Bill) -> Question:
        """The noise on single word occurrences, which any number of rounds and runs uses again."""
        budget, profile = agreement.budget, agreement.profile
        assert budget is not None
        spends = bill.spends(bill.rounds)
        if not within(spends, budget.epsilon, ALONE * budget.delta):
            said_budget = f"{upward(budget.epsilon)} per {UNIT}"
            raise BudgetTooSmall("noise that is drawn once", said_budget, "it spends more", _INSTEAD)
        against, assumed = against_of(profile, self.cohort, budget), assumptions_of(profile, self.cohort)
        pure = basic_epsilon(leaves_of(spends))  # group privacy goes by it, at delta 0
        shown = WordNoise(pure).for_documents()
        lasts = {"epsilon": budget.epsilon, "delta": budget.delta, "lasts_rounds": MOST_ROUNDS}
        return Question(
            f"Profile {profile.name}, noise drawn once for {counted(bill.rounds, 'round')}",
            Promise(UNIT, against, f"any one {UNIT} is in a party's documents", _DRAWN_ONCE + assumed),
            spends,
            budget.delta,
            "none",
            {},
            share=ALONE,
            notes=(_CHARGED_ONCE, BOUNDED_ROWS),
            replacing=replacing(pure, 0.0, UNIT),
            **{**shown, "found": {**shown["found"], "rounds": bill.rounds, "budget": lasts}},
        )

    def _suggested(self, told: dict[str, Any], agreement: Agreement) -> str:
        """How often a run asks where its plan does not say, and with how much noise the whole budget lasts for that."""
        if not agreement.model.budget_rounds:
            return ""
        usual = replace(self, rounds=None, length=0.0, noise=None, missing=None, colluding=None)
        open_rounds = usual.agreement(epsilon=self.epsilon or self.budget().epsilon)
        noise = calibrated(open_rounds, len(self.cohort.members)).plan.privacy.noise
        rounds, units, unit = open_rounds.plan.training.rounds, self.people.units, self.people.protected
        told["suggested"] = {"rounds": rounds, "noise": noise, "documents": units, "unit": unit}
        by = f"for about {units:,} {unit}s" if units else f"where nobody says how many {unit}s there are"
        return (
            f"A run that leaves the rounds open asks {counted(rounds, 'time')} {by} (`[training] documents`), "
            f"with a noise multiplier of {noise:.5g}: the whole budget lasts for that."
        )

    def _as_run(self, agreement: Agreement) -> str:
        """The command of a run with these settings. What the plan leaves to the profile and the model is left out here, too."""
        privacy = agreement.plan.privacy
        settings = {
            "model.name": self.model,
            "vocabulary.file": self.language,
            "training.rounds": self.rounds,
            **{f"training.{name}": value for name, value in self.told().items()},
            "federation.parties": self.parties,
            "privacy.epsilon": privacy.epsilon,
            "privacy.delta": privacy.delta,
            "privacy.noise": self.noise,
        }
        return run_to_type(self.profile, settings, by_person=self.people.protected == PERSON)

    # ---- what can be expected of its model -----------------------------------------------------------------------------

    def _expected(self, told: dict[str, Any], agreement: Agreement) -> str:
        """Whether the model will be of use, and what would be better, where somebody says how many documents there are."""
        documents = self.people.documents
        if not documents:
            return ""
        expected = forecast(setting_of(agreement, len(self.cohort.members), documents, self.length, self.documents_each()))
        told["forecast"] = expected.record()
        left_open = agreement.model.budget_rounds and self.listed_if_open != self.listed
        open_words = f"A run that leaves the number of words open lists {self.listed_if_open:,} (`[training] documents`)."
        best = None if self.noise else best_settings(self.setting(), vectors=installed_vectors() is not None)
        better = ""
        if best is not None:
            most, differs = best_said(best), best.verdict is not expected.verdict
            said = f"Other settings, another verdict: {most[0].lower()}{most[1:]}" if differs else most
            better = f"{said} The run with these: {self.run_with(best.setting)}"
        before = before_a_run(expected, "", language_code(self.language or ""))
        return " ".join(filter(None, (before, open_words if left_open else "", better)))

    def setting(self, **known: Any) -> ForecastSetting:
        """What the forecast counts with; `known` is what is not left open."""
        return setting_under(
            self.profile,
            self.people.documents or 1,
            self.parties,
            epsilon=self.epsilon,
            delta=self.delta,
            documents_per_person=self.documents_each(),
            general_list=bool(self.language),
            length=self.length,
            vectors=installed_vectors() is not None,
            **known,
        )

    def run_with(self, one: ForecastSetting) -> str:
        starts = {BY_MOMENTS: MOMENTS, BY_MOMENTS_ALONE: MOMENTS}
        settings = {
            "model.name": one.model,
            "training.start": starts.get(one.start, one.start) if one.model == LDA_VI else "",
            "training.vectors": NO_VECTORS if one.model == LDA_VI and one.start == BY_MOMENTS_ALONE else "",
            "vocabulary.file": self.language or _LIST_OF_YOURS,
            "vocabulary.max_words": one.words if self.language else 0,
            "model.n_topics": one.topics,
            "training.rounds": one.rounds,
            "privacy.epsilon": one.epsilon,
            **{f"training.{name}": value for name, value in self.told().items()},
            "federation.parties": len(self.cohort.members),
            "privacy.delta": one.delta,
            "privacy.noise": one.noise,
        }
        return run_to_type(self.profile, settings, by_person=self.people.protected == PERSON)


def _remain(profile: Profile, cohort: Cohort) -> int:
    """How many parties must remain in a sum: as the noise needs, and as the sum can be opened."""
    return max(cohort.threshold, profile.aggregation.remaining(cohort, len(cohort.members)))


def _for_missing(profile: Profile, missing: int) -> str:
    names = tuple(f"party {n}" for n in range(_MOST_PARTIES))
    for parties in range(profile.minimum_parties, min(_MOST_PARTIES, 200 + 20 * missing)):
        if parties - _remain(profile, cohort_of(profile, names[:parties])) >= missing:
            return f"with --parties {parties} as many may be missing; or take a profile of your own with a smaller threshold"
    return "take a profile of your own with a smaller threshold_share, whose shares of noise are larger"


def _shares_note(profile: Profile, cohort: Cohort) -> str:
    """How much noise a sum carries where every party adds a share: more than is counted, for those who know their own."""
    if all(part.noise_by is not NoiseBy.SHARES for part in profile.mechanisms):
        return ""
    parties, remain, helpers = len(cohort.members), _remain(profile, cohort), cohort.colluding
    more = math.sqrt(parties / (parties - helpers))
    return (
        f"Counted for {parties - remain} of {parties} parties missing and {helpers} that help an adversary. If nobody is "
        f"missing, the sum carries {more:.2f} times the noise that is counted."
    )


def against_of(profile: Profile, cohort: Cohort, budget: Budget) -> str:
    """The roles against whom every part that adds noise claims privacy, with the fewest colluding parties of all claims."""
    noising = [
        claims
        for claims in (mechanism.claims(cohort) for mechanism in profile.mechanisms)
        if any(c.what == PRIVATE and c.unit is budget.unit for c in claims)  # other parts add no noise to such answers
    ]
    against = []
    for who, named in _ROLES.items():
        each = [
            max((c.colluding for c in claims if (c.what, c.against, c.unit) == (PRIVATE, who, budget.unit)), default=-1)
            for claims in noising
        ]
        if (helpers := min(each, default=-1)) >= 0:
            against.append(f"{named} with {colluding_parties(helpers)}" if helpers else named)
    return " or ".join(against)


def assumptions_of(profile: Profile, cohort: Cohort) -> tuple[str, ...]:
    """Who must be honest, by who adds the noise."""
    added_by = {mechanism.noise_by for mechanism in profile.mechanisms}
    if NoiseBy.OPENER in added_by:
        return ("whoever opens the sums adds the noise and keeps both to itself",)
    if NoiseBy.SHARES in added_by:
        return (
            f"nothing is opened but sums over at least {cohort.threshold} of the {len(cohort.members)} parties",
            f"all parties but {cohort.colluding} add their shares of the noise as agreed",
        )
    return ("the unit's own party adds the noise as agreed",)
