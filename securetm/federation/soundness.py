"""Checks a profile, or a plan, against a model and a threat model, before any document is read.

The profile's own mechanisms and aggregation admit or refuse each question that a run would ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

from securetm.answers.route import compile_route
from securetm.contracts import Profile, Unit
from securetm.errors import Mistake, Unsound
from securetm.federation.budget.witness import quorum
from securetm.federation.questions import TRAIN, Questions, asked_in_run, cohort_size
from securetm.models.trials import CouplesDocuments, check_additive
from securetm.plans.agreement import Agreement, agree
from securetm.plans.profiles import TooFewForProfile, cohort_of, profile_gaps, read_profile
from securetm.plans.reading import EmbeddingsWithoutNoise
from securetm.plans.recommend import plan_from_tables, whole_plan
from securetm.plans.schema import ALL, ModelChoice, Plan, VocabularyChoice
from securetm.settings import read_toml, require
from securetm.threats import Gap, read_threat_model

_SOME_WORDS = tuple(f"word{n}" for n in range(50))


def against(profile: str, threat_model: str | None) -> dict[str, Any]:
    """Returns the profile's own warning, and the threat model that it is checked against."""
    chosen = read_profile(profile)
    threats = read_threat_model(threat_model or chosen.threat_model)
    named = {"name": threats.name, "title": threats.title}
    return {"profile": chosen.name, "danger": chosen.danger, "threat_model": named, "required": len(threats.requires)}


def plan_to_check(name: str) -> Plan | None:
    """Reads the plan in that file, checked as a whole; None where the name is that of a profile, or of a profile's file."""
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file() or "profile" not in read_toml(path):
        return None
    return whole_plan(path, {})


def check_plan(plan: Plan, threat_model: str | None, parties: int) -> list[dict[str, Any]]:
    """Returns every gap of a plan: those of its profile, and questions of its own model that a part refuses."""
    agreement = agree(plan)
    found = _gaps_of_profile(agreement.profile, threat_model, parties, hides_words=plan.vocabulary.is_hidden)
    if not found:
        check_floor(agreement, parties)
        if plan.coordinator.survivors != ALL:
            check_survivors(agreement, parties, int(plan.coordinator.survivors))
    return [asdict(gap) for gap in (*found, *gaps_of_questions(agreement, parties))]


def check(profile: str, model: str | None, threat_model: str | None, parties: int) -> list[dict[str, Any]]:
    """Returns every gap: required claims that no part makes, and questions that a part refuses."""
    chosen = read_profile(profile)
    found = _gaps_of_profile(chosen, threat_model, parties)
    if model is not None:
        source = chosen.vocabularies[0]
        tables = {"profile": profile, "model": {"name": model}}
        public = Plan(profile=profile, model=ModelChoice(model), vocabulary=VocabularyChoice("file", "words.txt"))
        plan = public if source == "file" else plan_from_tables(tables, "the check")
        agreement = agree(plan, listed=_SOME_WORDS if source == "file" else None)
        found += gaps_of_questions(agreement, parties)
    return [asdict(gap) for gap in found]


def _gaps_of_profile(profile: Profile, threat_model: str | None, parties: int, *, hides_words: bool = False) -> list[Gap]:
    threats = read_threat_model(threat_model or profile.threat_model)
    found = list(profile_gaps(profile, threats, parties, hides_words=hides_words))
    if parties < profile.minimum_parties:
        few = TooFewForProfile(parties, profile.minimum_parties, profile.name)
        found = [Gap("a round can take place", "", str(few), few.advice()), *found]
    return found


def gaps_of_questions(agreement: Agreement, parties: int) -> list[Gap]:
    """Questions of a run that some part refuses, and a model whose answers no budget covers."""
    found = []
    if agreement.budget is not None and agreement.unit is not Unit.WORD:  # noise on single words is there before documents meet
        try:  # a clip bounds one document's part of a sum only if no other part depends on that document
            check_additive(agreement.model)
        except CouplesDocuments as coupled:
            found.append(Gap("a budget covers the model's answers", "", str(coupled), coupled.advice()))
    for name, why in _refusals(agreement, parties):
        found.append(Gap(f"the question “{name}” can be answered", "", str(why), why.advice()))
    return found


def check_floor(agreement: Agreement, parties: int) -> None:
    """Refuses batches that every party would refuse by name only. The reason says how large they must be."""
    profile = agreement.profile
    if profile.budget is not None or parties < profile.minimum_parties:  # no batch is asked for, or no round takes place
        return
    cohort = cohort_of(profile, _parties(cohort_size(parties, agreement)))
    questions = Questions(agreement, _SOME_WORDS)
    terms = compile_route(questions.make(TRAIN, dict(asked_in_run(questions))[TRAIN]).terms, profile, cohort).terms
    least = -(-profile.minimum_documents // profile.aggregation.remaining(cohort, parties))
    need = f"is below the {least} documents that each of {parties} parties must bring under {profile.name}, so that a sum holds"
    enough = not terms.batch or terms.batch >= least
    require(enough, "[model]", "batch", terms.batch, f"{need} {profile.minimum_documents} where parties drop out")


def check_survivors(agreement: Agreement, parties: int, survivors: int) -> None:
    """Refuses a number of parties with which no round would end, before anybody is invited.

    Without it, each party would refuse by name (`NotWitnessed`, or too few in its sum), and the run would wait for nothing.
    """
    profile = agreement.profile
    cohort = cohort_of(profile, _parties(cohort_size(parties, agreement)))
    in_a_sum = max(profile.minimum_parties, profile.aggregation.remaining(cohort, parties))
    signed_by = quorum(parties - 1, profile.colluding) if profile.budget is not None else 0
    least = max(in_a_sum, signed_by + 1)
    why = f"under {profile.name} a sum needs so many"
    if least > in_a_sum:
        why = f"under {profile.name} a party answers once {signed_by} others have signed its ledger"
        if least == parties:
            misses_one = next(n for n in count(3) if quorum(n - 1, profile.colluding) < n - 1)
            why += f", so with {misses_one} parties one may be missing, and with fewer none"
    problem = f"must be all, or at least {least} of these {parties} parties: {why}"
    require(survivors >= least, "[coordinator]", "survivors", survivors, problem)


def check_answerable(agreement: Agreement, parties: int) -> None:
    """Raises the first refusal that a run would end with, before any document is read."""
    needed = agreement.profile.minimum_parties
    if parties < needed:
        raise TooFewForProfile(parties, needed, agreement.plan.profile)
    check_sample(agreement, parties)
    for _, unsound in _refusals(agreement, parties):
        raise unsound


def check_sample(agreement: Agreement, parties: int) -> None:
    """Refuses a plan that asks too few parties at a time for its profile."""
    size, profile = agreement.plan.federation.cohort, agreement.profile
    if not size or size >= parties:
        return
    hears_all = profile.aggregation.opened_by != "parties"
    problem = "asks other parties in every round, and a coordinator that repeats a state solves the sums for each party's own: "
    problem += f"{profile.name} promises that even a coordinator that breaks the rules sees only sums"
    require(not profile.hides_from_active, "[federation]", "cohort", size, problem)
    problem = f"leaves parties out of rounds, and under {profile.name} each party trains from every answer"
    require(hears_all, "[federation]", "cohort", size, problem)
    least = max(profile.minimum_parties, profile.aggregation.remaining(cohort_of(profile, _parties(parties)), parties))
    problem = f"is below {least}: under {profile.name} no sum of fewer of {parties} parties is opened"
    require(size >= least, "[federation]", "cohort", size, problem)


def _parties(number: int) -> tuple[str, ...]:
    return tuple(f"party {n}" for n in range(number))


def _refusals(agreement: Agreement, parties: int) -> Iterator[tuple[str, Unsound]]:
    if agreement.unit is Unit.WORD and agreement.model.embedding_size:
        yield TRAIN, EmbeddingsWithoutNoise(agreement.model.name, agreement.profile.name)
        return
    questions, profile = Questions(agreement, _SOME_WORDS), agreement.profile
    for name, about in asked_in_run(questions):
        asked_of = _parties(cohort_size(parties, agreement) if name == TRAIN else parties)
        try:
            compile_route(questions.make(name, about).terms, profile, cohort_of(profile, asked_of))
        except Unsound as unsound:
            yield name, unsound


def agreed_apart(plan: Plan, members: Collection[str], *, tried: bool = True) -> Agreement:
    """Returns the agreement on this plan among these parties, with the noise that its budget calls for.

    A simulation sees whether documents name persons. A role on its own does not, so the plan must say whom a budget protects.
    """
    agreement = agree(plan)
    check_answerable(agreement, len(members))
    check_floor(agreement, len(members))
    for name in plan.model.settings.get("topics_at", {}):
        require(name in members, "[model]", "topics_at", name, known=tuple(members))
    if agreement.budget is not None and agreement.unit is not Unit.WORD and not plan.privacy.unit:
        raise Mistake(
            ("the plan does not say whom the budget of profile {profile} protects, and no role sees all documents to find out"),
            hint=(
                'write unit = "document" under [privacy] of the plan, or unit = "person" where every party\'s '
                "documents name persons"
            ),
            profile=plan.profile,
        )
    from securetm.federation.budget.prices import calibrated  # with loss distributions, slow to import

    return calibrated(agreement, len(members), tried=tried)
