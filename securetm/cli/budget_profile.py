"""Reads from a profile what the budget calculator needs: what its parts spend, and whom they protect against."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from securetm.accounting.calculator.option_checks import check
from securetm.accounting.calculator.profile_run import MOST_ROUNDS, ProfileRun, SuggestedRounds
from securetm.agreement import Agreement, agree
from securetm.contracts import NoiseBy
from securetm.corpus.public_words import USUAL_LENGTH
from securetm.errors import BadSetting
from securetm.federation.list_fit import asked_about
from securetm.federation.paying import bill_of, calibrated
from securetm.federation.word_threshold import needed_by
from securetm.mechanisms.noising import PRIVATE
from securetm.plan_reading import plan_from_tables
from securetm.plans import ModelChoice, Plan, VocabularyChoice, hides_documents, usual_model
from securetm.profiles import cohort_of, count_of_parties, read_profile, rounds_under
from securetm.wording import colluding_parties

if TYPE_CHECKING:
    from securetm.contracts import Budget, Cohort, Profile

_ROLES = {"coordinator": "the coordinator", "party": "any other party", "model reader": "anyone who gets the model"}


def profile_run(
    name: str,
    parties: int | None,
    rounds: int,
    words: int,
    documents: int | None,
    model: str = "",
    language: str | None = None,
    length: float = USUAL_LENGTH,
) -> ProfileRun:
    """What a run of that model under the profile of that name spends, round by round."""
    check("--rounds", rounds, MOST_ROUNDS)
    check("--parties", parties)
    check("--vocabulary-size", words)
    check("--documents", documents)
    model = model or usual_model(read_profile(name).budget)
    agreement = agree(_plan(name, words, model, language), listed=tuple(f"word{n}" for n in range(words)))
    profile = agreement.profile
    if profile.budget is None:
        problem = "spends no privacy budget, because it adds no noise and promises no differential privacy"
        instead = f"`securetm explain {profile.name}` says what it protects by other means"
        raise BadSetting("securetm budget profile", "NAME", profile.name, problem, instead=instead)
    parties = count_of_parties(profile, parties)
    expected, note = asked_about(language, words, documents, length) if language else (None, "")
    bill = bill_of(agreement, parties)
    cohort = cohort_of(profile, tuple(f"party {n}" for n in range(parties)))
    needed = needed_by(agreement, parties)
    return ProfileRun(
        profile.name,
        profile.budget,
        bill.words,
        bill.round,
        rounds,
        _against(profile, cohort, profile.budget),
        _assumptions(profile, cohort),
        {"model": model, "parties": len(cohort.members), "vocabulary_size": words},
        documents,
        bill.once,
        note,
        asdict(expected) if expected else None,
        *((needed.found_from, needed.whose) if needed is not None else (0, "one party")),
        _suggested(agreement, parties, words, documents),
    )


def _suggested(agreement: Agreement, parties: int, words: int, documents: int | None) -> SuggestedRounds | None:
    """How often a run asks where its plan does not say, and with how much noise the whole budget lasts for that."""
    profile, few = agreement.profile, agreement.model.budget_rounds
    if profile.budget is None or not few or not hides_documents(profile.budget):
        return None
    if documents:
        few = rounds_under(profile, documents, int(agreement.plan.model.settings["n_topics"]), words)
    plan = replace(agreement.plan, training=replace(agreement.plan.training, rounds=few))
    whole = replace(agreement, plan=plan).with_privacy(epsilon=profile.budget.epsilon)
    noise = calibrated(whole, parties).plan.privacy.noise
    return SuggestedRounds(few, noise, documents)


def _plan(name: str, words: int, model: str, language: str | None) -> Plan:
    """A plan with that profile. Where the list of words is public, the plan names one that need not exist."""
    if language or read_profile(name).vocabularies == ("file",):
        public = VocabularyChoice("file", "words.txt", max_words=words)
        return Plan(profile=name, vocabulary=public, model=ModelChoice(model))
    tables = {"profile": name, "vocabulary": {"max_words": words}, "model": {"name": model}}
    return plan_from_tables(tables, "the calculator")


def _against(profile: Profile, cohort: Cohort, budget: Budget) -> str:
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


def _assumptions(profile: Profile, cohort: Cohort) -> tuple[str, ...]:
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
