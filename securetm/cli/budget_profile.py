"""Reads from a profile what the budget calculator needs: what its parts spend, and whom they protect against."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from securetm.accounting.calculator.option_checks import check, check_delta, refused
from securetm.accounting.calculator.persons import PERSON, SEPARATE, People
from securetm.accounting.calculator.profile_run import MOST_ROUNDS, ProfileRun, SuggestedRounds
from securetm.contracts import NoiseBy
from securetm.corpus.public_words import USUAL_LENGTH
from securetm.corpus.word_vectors import installed_vectors
from securetm.errors import BadSetting
from securetm.federation.budget.forecast import asked_about, forecast_with, needed_by
from securetm.federation.budget.prices import bill_of, calibrated
from securetm.mechanisms.noising import PRIVATE
from securetm.plans.agreement import Agreement, agree
from securetm.plans.forecast import LENGTHS, Forecast, best_settings, setting_under
from securetm.plans.profiles import cohort_of, count_of_parties, read_profile, words_in_sums
from securetm.plans.recommend import plan_from_tables
from securetm.plans.schema import USUAL_LANGUAGE, hides_documents, usual_model
from securetm.reports.forecast import before_a_run, best_said, run_to_type
from securetm.wording import colluding_parties, counted

if TYPE_CHECKING:
    from securetm.contracts import Budget, Cohort, Profile

_ROLES = {"coordinator": "the coordinator", "party": "any other party", "model reader": "anyone who gets the model"}
_MOST_PARTIES = 10_000
_USUAL_WORDS = 2_000


def words_of_a_run(
    profile: str, people: People, parties: int | None, epsilon: float | None = None, delta: float | None = None
) -> int:
    """How many words a run lists that leaves their number open; the usual number where nobody says how many documents."""
    asked = ProfileQuestion(profile, parties, people=people, epsilon=epsilon, delta=delta)
    return plan_from_tables(asked.tables(), "the calculator").vocabulary.max_words


@dataclass(frozen=True)
class ProfileQuestion:
    """What is asked about a run under a profile. What is left out is as a run would have it."""

    profile: str
    parties: int | None = None
    rounds: int | None = None
    words: int = _USUAL_WORDS
    model: str = ""
    language: str | None = None
    length: float = USUAL_LENGTH
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
        check("--documents", self.people.documents)
        check("--epsilon", self.epsilon)
        check("--noise", self.noise)
        check("--missing", self.missing)
        check("--colluding", self.colluding)
        if self.delta is not None:
            check_delta(self.delta)

    def run(self) -> ProfileRun:
        """What a run of that model under that profile spends, round by round."""
        budget, cohort = self.budget(), self.cohort()
        told: dict[str, Any] = {}
        list_note = ""
        if self.language:
            expected, list_note = asked_about(self.language, self.words, self.people.documents, self.length)
            told["expected_words"] = asdict(expected)
        parties = len(cohort.members)
        agreement = calibrated(self.agreement(), parties)
        profile, bill = agreement.profile, bill_of(agreement, parties)
        assert profile.budget is not None
        needed = needed_by(agreement, parties)
        forecast_note, forecast = self._forecast(agreement, parties)
        return ProfileRun(
            profile.name,
            profile.budget,
            bill,
            against_of(profile, cohort, profile.budget),
            assumptions_of(profile, cohort),
            {"model": agreement.plan.model.name, "parties": parties, "vocabulary_size": self.words, **self._asked()},
            self.people,
            _noise_of(profile),
            bill.words is None or words_in_sums(profile),
            *((needed.found_from, needed.whose) if needed is not None else (0, "one party")),
            self._suggested(parties) if hides_documents(budget) else None,
            before=(f"That run: {self._as_run(agreement)}", _shares_note(profile, cohort)),
            after=(list_note, forecast_note),
            told=told | ({"forecast": forecast} if forecast else {}),
        )

    def _forecast(self, agreement: Agreement, parties: int) -> tuple[str, dict[str, Any] | None]:
        """Whether the model will be of use, in words and as numbers; nothing where nobody says how many documents there are."""
        documents = self.people.documents
        if not documents or not hides_documents(agreement.budget):
            return "", None
        length = 0.0 if self.length == USUAL_LENGTH else self.length
        told = forecast_with(agreement, parties, documents, length, self.documents_each())
        said = (before_a_run(told, ""), self._words_left_open(agreement), self._best_said(agreement, told, parties, length))
        return " ".join(filter(None, said)), told.record()

    def documents_each(self) -> float:
        """How many documents a person has in the mean, where the budget is each person's."""
        documents, units = self.people.documents or 1, self.people.units
        return max(documents / (units or documents), 1.0)

    def _words_left_open(self, agreement: Agreement) -> str:
        listed = words_of_a_run(self.profile, self.people, self.parties, self.epsilon, self.delta)
        if not agreement.model.budget_rounds or listed == self.words:
            return ""
        return f"A run that leaves the number of words open lists {listed:,} (`[training] documents`)."

    def _best_said(self, agreement: Agreement, told: Forecast, parties: int, length: float) -> str:
        """The settings of which most is expected, by the same rule as `securetm budget forecast`, and a run with these."""
        budget, documents = agreement.budget, self.people.documents
        if self.noise or budget is None or documents is None:
            return ""
        vectors = installed_vectors() is not None
        setting = setting_under(
            self.profile,
            documents,
            parties,
            epsilon=budget.epsilon,
            delta=budget.delta,
            documents_per_person=self.documents_each(),
            general_list=agreement.plan.vocabulary.language is not None,
            length=length or None,
            vectors=vectors,
        )
        best = best_settings(setting, (length,) if length else LENGTHS, vectors=vectors)
        if best is None:
            return ""
        differs = "Other settings, another verdict: " if best.verdict is not told.verdict else ""
        persons = (self.people.units or 0) if self.people.protected == PERSON else 0
        language = agreement.plan.vocabulary.file if agreement.plan.vocabulary.language else ""
        run = run_to_type(best.setting, self.profile, parties=parties, language=language, persons=persons, length=length)
        most = best_said(best)
        return f"{differs}{most[0].lower() if differs else most[0]}{most[1:]} The run with these: {run}"

    def agreement(self, **privacy: float) -> Agreement:
        """The run, agreed on as a plan that says only what was asked. Numbers in place of words stand for its vocabulary."""
        tables = self.tables(**privacy)
        tables["vocabulary"] = {**tables["vocabulary"], "max_words": self.words}
        plan = plan_from_tables(tables, "the calculator")
        return agree(plan, listed=tuple(f"word{n}" for n in range(self.words)))

    def tables(self, **privacy: float) -> dict[str, Any]:
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
        length = {} if self.length == USUAL_LENGTH else {"document_length": self.length}
        return {"documents": people.documents or units, **({"persons": units} if by_person else {}), **length}

    def _as_run(self, agreement: Agreement) -> str:
        """The command of a run with these settings. What the plan leaves to the profile and the model is left out here, too."""
        plan = agreement.plan
        parts = [f"securetm run --corpus FILE --profile {self.profile}", "--person COLUMN" * (self.people.protected == PERSON)]
        parts += [f"--model {self.model}" * bool(self.model), f"--vocabulary {self.language}" * bool(self.language)]
        told = [f"--set training.{name}={value:.12g}" for name, value in self.told().items()]
        parts += [f"--rounds {self.rounds}" * bool(self.rounds), *told]
        parts += [f"--set federation.parties={self.parties}" * bool(self.parties)]
        numbers = {"epsilon": plan.privacy.epsilon, "delta": plan.privacy.delta, "noise": self.noise}
        parts += [f"--set privacy.{name}={value:g}" for name, value in numbers.items() if value]
        return " ".join([part for part in parts if part] + ["--ledgers FOLDER"])

    def _numbers(self) -> dict[str, Any]:
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "noise": self.noise}
        unit = {"unit": PERSON} if self.people.protected == PERSON else {}
        return unit | {name: value for name, value in numbers.items() if value is not None}

    def _asked(self) -> dict[str, Any]:
        """The settings that were given, for the record."""
        started = {"start": self.start} if self.start else {}
        return {**self._numbers(), **started, "missing": self.missing, "colluding": self.colluding, **self.people.found}

    def budget(self, option: str = "NAME", command: str = "securetm budget profile") -> Budget:
        """The profile's budget; a profile without one is refused."""
        profile = read_profile(self.profile)
        if profile.budget is None:
            problem = "spends no privacy budget, because it adds no noise and promises no differential privacy"
            instead = f"`securetm explain {profile.name}` says what it protects by other means"
            raise BadSetting(command, option, profile.name, problem, instead=instead)
        return profile.budget

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
            raise refused("--missing", self.missing, problem, self._for_missing(profile, self.missing))
        helpers = _helpers(profile, cohort)
        if self.colluding is not None and self.colluding > helpers:
            problem = (
                f"must be at most {helpers}: the noise of {profile.name} is sized for no more helpers of {parties} parties"
            )
            instead = "take `dp-local`, whose noise no helper knows, or a profile of your own with a larger `colluding`"
            raise refused("--colluding", self.colluding, problem, instead)
        return cohort

    def _for_missing(self, profile: Profile, missing: int) -> str:
        """What to change so that so many parties may be missing."""
        names = tuple(f"party {n}" for n in range(_MOST_PARTIES))
        for parties in range(profile.minimum_parties, min(_MOST_PARTIES, 200 + 20 * missing)):
            if parties - _remain(profile, cohort_of(profile, names[:parties])) >= missing:
                return (
                    f"with --parties {parties} as many may be missing; or take a profile of your own with a smaller threshold"
                )
        return "take a profile of your own with a smaller threshold_share, whose shares of noise are larger"

    def _suggested(self, parties: int) -> SuggestedRounds | None:
        """How often a run asks where its plan does not say, and with how much noise the whole budget lasts for that."""
        model = self.agreement().model
        if not model.budget_rounds:
            return None
        asked = ProfileQuestion(
            self.profile,
            self.parties,
            None,
            self.words,
            self.model,
            self.language,
            people=self.people,
            delta=self.delta,
            start=self.start,
        )
        open_rounds = asked.agreement(epsilon=self.epsilon or self.budget().epsilon)
        noise = calibrated(open_rounds, parties).plan.privacy.noise
        return SuggestedRounds(open_rounds.plan.training.rounds, noise, self.people.units, self.people.protected)


def _remain(profile: Profile, cohort: Cohort) -> int:
    """How many parties must remain in a sum: as the noise needs, and as the sum can be opened."""
    return max(cohort.threshold, profile.aggregation.remaining(cohort, len(cohort.members)))


def _helpers(profile: Profile, cohort: Cohort) -> int:
    """How many parties may help an adversary, by every part that adds noise; all others where no part names a limit."""
    noising = [part.claims(cohort) for part in profile.mechanisms if part.noise_by is not NoiseBy.NOBODY]
    private = [[claim.colluding for claim in claims if claim.what == PRIVATE] for claims in noising]
    each = [max(helped) for helped in private if helped]  # other parts add no noise to the model's answers
    return min(each, default=len(cohort.members) - 1)


def _noise_of(profile: Profile) -> float | None:
    """The noise multiplier of the profile; nothing where its noise is on single words."""
    named = ((part, part.plan_numbers.get("noise_multiplier", "")) for part in profile.mechanisms)
    return next((float(getattr(part, name)) for part, name in named if name), None)


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
