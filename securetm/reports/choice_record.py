"""What `securetm choose` answers, as plain records: the reason, the cost, what is not protected, the next best, the plan.

The sentences are made of the claims, threat models and figures that they speak of. Nothing is decided here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from securetm.agreement import Agreement, agree
from securetm.contracts import Budget, Profile
from securetm.corpus.public_words import language_code
from securetm.corpus.word_vectors import installed_vectors
from securetm.errors import BadSetting
from securetm.experiments.committed_costs import ProfileCost, by_cost, cost_of
from securetm.forecast import Forecast, forecast, setting_under
from securetm.forecast.best_settings import best_settings
from securetm.forecast.forecast_setting import PLAIN, PUBLIC
from securetm.forecast.usefulness_forecast import LENGTHS, Verdict, forecast_at, forecast_of_lengths, tried_as
from securetm.plan_reading import plan_from_tables
from securetm.plans import hides_documents
from securetm.profile_choice import Choice, Judged, choose, dealt_out
from securetm.profiles import read_profile
from securetm.protection_asked import (
    BREAKERS,
    COORDINATOR,
    NOBODY,
    PARTY,
    READER,
    SECRETS,
    Answers,
    threats_asked,
)
from securetm.reports.chosen_plan import PlanNotes, delta_for, epsilon_for, persons_of, plan_text
from securetm.reports.explanation import explain
from securetm.reports.forecast_sentences import chance_said, forecast_said
from securetm.reports.guess_limit import MOST_RIGHT, is_limited, limit_said, limited_epsilon, of_100, right_guesses
from securetm.reports.plan_cost import plan_cost
from securetm.reports.signed.plain_words import plain_claim
from securetm.threats import Gap
from securetm.wording import counted, listed, upward

_REPORT = "`securetm report`"
_NOBODY_PROMISES = "nothing promises it, and "  # how a reason begins that says why it matters
_WHO: Mapping[str, str] = {COORDINATOR: "the coordinator", PARTY: "other parties", READER: "whoever gets the model"}


@cache
def _place(name: str) -> Any:
    return by_cost(read_profile(name))


def chosen(answers: Answers, notes: PlanNotes) -> dict[str, Any]:
    """Everything that the command prints, writes and gives as JSON."""
    choice = choose(answers, _place)
    profile = choice.chosen
    told = explain(profile.name, dealt_out(answers, profile)) if profile else {}
    best = _best(answers, profile, notes) if profile else None
    made = _made(answers, profile, notes, best) if profile else None
    best = made.expected if made else None
    spent = _spent(answers, profile, notes, made) if profile and made else None
    measured = cost_of(profile, spent["epsilon_of_one"] if spent else None) if profile else None
    return {
        "answers": asdict(answers),
        "asked": asked_said(answers),
        "required": [
            {"claim": one.claim.what, "against": one.claim.against, "colluding": one.claim.colluding, "because": one.because}
            for one in threats_asked(answers).requires
        ],
        "profile": profile.name if profile else None,
        "title": profile.title if profile else None,
        "parties": dealt_out(answers, profile) if profile else None,
        "danger": profile.danger if profile else "",
        "reason": _reason(choice) if profile else [],
        "cost": cost_facts(measured) if measured else None,
        "plan_cost": plan_cost(made.agreement, dealt_out(answers, profile), answers.documents, measured)
        if profile and made and measured
        else None,
        "spent": spent,
        "guess_limit": _guess_limit(spent, profile) if spent and profile else None,
        "forecast": _forecast(best, notes) if best else None,
        "still_shows": told.get("still_shows", []),
        "accepted": told.get("accepted", []),
        "out_of_scope": told.get("out_of_scope", []),
        "next_best": [_next_best(one, choice) for one in choice.next_best],
        "changes": [{"change": one.instead, "profile": one.profile} for one in choice.changes],
        "plan": made.text if made else None,
    }


@dataclass(frozen=True)
class _Made:
    """The plan as text, as a run would read it, and what is expected of it."""

    text: str
    agreement: Agreement
    expected: Forecast | None
    noise: float = 0.0  # of a round, where several trainings share the budget


def _made(answers: Answers, profile: Profile, notes: PlanNotes, best: Forecast | None) -> _Made:
    """The plan. Where several trainings share a budget, it has the noise with which a ledger admits all of them."""
    setting = best.setting if best and best.held_out else None
    text = plan_text(answers, profile, notes, setting)
    agreement = _agreed(text)
    if answers.trainings == 1 or not hides_documents(profile.budget):
        return _Made(text, agreement, best)
    from securetm.federation.run_spending import noise_for_runs  # with the accountant, which one training does not need

    noise = noise_for_runs(agreement, dealt_out(answers, profile), answers.trainings)
    text = plan_text(answers, profile, replace(notes, noise=noise), setting)
    if best is not None and setting is not None:
        lengths = (notes.length,) if notes.length else LENGTHS
        best = forecast_at(replace(setting, noise=noise, epsilon=epsilon_for(answers, profile, notes)), lengths)
    return _Made(text, _agreed(text), best, noise)


def _agreed(text: str) -> Agreement:
    return agree(plan_from_tables(tomllib.loads(text), "the plan"))


def asked_said(answers: Answers) -> str:
    """What was asked for, in one sentence."""
    if not answers.lookers:
        return "Nobody has to be kept from the documents."
    hidden = "; and ".join(SECRETS[one].partition(":")[0] for one in SECRETS if one in answers.hide)
    helped = f", with up to {counted(answers.colluding, 'party', 'parties')} colluding" if answers.colluding else ""
    lies = listed(tuple(BREAKERS[one].partition(" may")[0] for one in BREAKERS if one in answers.breaks and one != NOBODY))
    broken = f"{lies} may break the rules" if lies else "all follow the rules"
    return f"To be hidden from {listed(tuple(_WHO[one] for one in answers.lookers))} ({broken}{helped}): {hidden}."


def cost_facts(cost: ProfileCost) -> dict[str, Any]:
    """The figures of a profile's cost, rounded as they are shown."""
    facts = asdict(cost)
    for name in ("perplexity", "perplexity_without_noise", "perplexity_of_frequencies"):
        facts[name] = None if facts[name] is None else round(facts[name], 3)
    return {**facts, "quality_lost": round(cost.quality_lost, 3)}


def _best(answers: Answers, profile: Profile, notes: PlanNotes) -> Forecast | None:
    """What to expect of the best settings, by the fitted rule; nothing where no budget of documents or persons is spent.

    Persons are taken to have as many documents as the one who has most, which forecasts too little rather than too much.
    """
    if not hides_documents(profile.budget) or profile.budget is None:
        return None
    setting = setting_under(
        profile.name,
        answers.documents,
        dealt_out(answers, profile),
        epsilon=_epsilon_of_one(answers, profile, notes),
        delta=delta_for(answers, profile.budget.delta),
        documents_per_person=answers.documents / (persons_of(answers) or answers.documents),
        general_list=language_code(notes.language) is not None,
    )
    vectors = installed_vectors() is not None
    best = best_settings(setting, (notes.length,) if notes.length else LENGTHS, vectors=vectors)
    if best is not None:
        return best
    usual = replace(setting, start=PUBLIC if vectors else PLAIN)
    return forecast(replace(usual, length=notes.length)) if notes.length else forecast_of_lengths(usual)


def _epsilon_of_one(answers: Answers, profile: Profile, notes: PlanNotes) -> float:
    """What one of the trainings may spend, if it were the only one."""
    assert profile.budget is not None
    epsilon, delta = epsilon_for(answers, profile, notes), delta_for(answers, profile.budget.delta)
    if answers.trainings == 1:
        return epsilon
    from securetm.federation.run_spending import epsilon_of_one

    return epsilon_of_one(Budget(answers.unit, epsilon, delta), answers.trainings)


def _forecast(told: Forecast, notes: PlanNotes) -> dict[str, Any]:
    """The forecast as data, and in words."""
    one = told.setting
    settings = f"{tried_as(one)}, {one.words:,} words, {counted(one.topics, 'topic')}, {counted(one.rounds, 'round')}"
    said = f"Forecast for {one.documents:,} documents, and the settings of the plan ({settings}): {told.verdict.value}. "
    unsure = told.verdict is Verdict.CANNOT_SAY and told.held_out is not None and not notes.length
    instead = " The band is narrower for documents of a known length (--document-length WORDS)." if unsure else ""
    return {**told.record(), "said": f"{said}{chance_said(told)}{forecast_said(told)}{instead}"}


def _spent(answers: Answers, profile: Profile, notes: PlanNotes, made: _Made) -> dict[str, Any] | None:
    """The budget of the plan, for all trainings and for one; nothing where no noise bounds what a model tells."""
    budget = profile.budget
    by_rounds = hides_documents(budget)
    if notes.epsilon and not by_rounds:
        problem = f"cannot be chosen: {profile.name}, which fits, {'has a budget of words' if budget else 'adds no noise'}"
        raise BadSetting("", "--epsilon", f"{notes.epsilon:g}", problem, instead="leave it out, or name what is to be hidden")
    if budget is None:
        return None
    epsilon = epsilon_for(answers, profile, notes) if by_rounds else budget.epsilon
    one = _epsilon_of_one(answers, profile, notes) if by_rounds else epsilon
    several = {"trainings": answers.trainings, "epsilon_of_one": one, "noise": made.noise or None}
    return {"epsilon": epsilon, "delta": delta_for(answers, budget.delta), "unit": answers.unit.value, **several}


def _guess_limit(spent: Mapping[str, Any], profile: Profile) -> dict[str, Any] | None:
    """What the budget means for whoever guesses, beside the limit from which a report warns; nothing for single words."""
    if not hides_documents(profile.budget):
        return None
    epsilon, delta = spent["epsilon"], spent["delta"]
    right, passes = right_guesses(epsilon, delta), is_limited(epsilon, delta)
    rule = f"{100 * MOST_RIGHT:g} times in 100, from which {_REPORT} warns (a limit that securetm chose, and no law)"
    if passes:
        said = f"{limit_said(right)} That is below {rule}. Whether it is little enough, you decide."
        return {"right": right, "passes": True, "said": said}
    least = limited_epsilon(epsilon, delta)
    instead = f"--epsilon {least:g} stays below it" if least else "no epsilon stays below it with so large a delta"
    guess = f"a guess whether somebody was in it is right at most {of_100(right)}"
    said = f"Epsilon {upward(epsilon)} is above {rule}: {guess}. {instead[0].upper()}{instead[1:]}."
    return {"right": right, "passes": False, "said": said, "passing_epsilon": least or None}


# ---- sentences -------------------------------------------------------------------------------------------------------


def _reason(choice: Choice) -> list[str]:
    """Three sentences: what was asked, what the profile promises, and why no cheaper one was taken."""
    profile = choice.chosen
    assert profile is not None
    second = _promised(choice.answers, profile)
    cheaper = [one for one in choice.failing if _place(one.profile.name) < _place(profile.name)]
    if not cheaper:
        return [asked_said(choice.answers), second, "No profile costs less."]
    last = cheaper[-1]
    others = f"; so do {listed(tuple(one.profile.name for one in cheaper[:-1]))}" if cheaper[:-1] else ""
    third = f"What costs less falls short: {last.profile.name} does, because {_lacks(last.gaps)}{others}."
    return [asked_said(choice.answers), second, third]


def _promised(answers: Answers, profile: Profile) -> str:
    """What the profile promises of what was asked, adversary by adversary."""
    kept: dict[str, list[str]] = {}
    for one in threats_asked(answers).requires:
        kept.setdefault(one.claim.against, []).append(f"“{one.claim.what}”")
    if kept:
        said = "; ".join(f"against the {who}, {listed(tuple(what))}" for who, what in kept.items())
        return f"{profile.name} promises, {said}."
    dealt = f"; one organisation deals its documents out to {dealt_out(answers, profile)} parties of a simulation"
    return f"That asks for no promise, and {profile.name} makes none{dealt if answers.parties == 1 else ''}."


def _lacks(gaps: tuple[Gap, ...]) -> str:
    """The first gap, and how many more there are."""
    first, more = gaps[0], len(gaps) - 1
    what = f"“{first.claim}”" + (f" against the {first.adversary}" if first.adversary else "")
    return f"{what} fails ({first.reason})" + (f", and {counted(more, 'more claim')}" if more else "")


def _next_best(judged: Judged, choice: Choice) -> dict[str, Any]:
    """A profile that was not taken, why, and every claim that it lacks."""
    lacks = [{"claim": one.claim, "against": one.adversary, "reason": one.reason} for one in judged.gaps]
    return {"profile": judged.profile.name, "lost_because": _lost(judged, choice), "lacks": lacks}


def _every_lack(gaps: tuple[Gap, ...]) -> str:
    """All that a profile lacks, in plain words: where nothing fits, somebody has to weigh it."""
    said = (
        f"it does not promise that the {one.adversary} {plain_claim(one.claim)} ({one.reason.removeprefix(_NOBODY_PROMISES)})"
        if one.adversary
        else one.reason
        for one in gaps
    )
    return "; ".join(said)


def _lost(judged: Judged, choice: Choice) -> str:
    """Why this profile was not taken: what it lacks, or that it costs more."""
    if choice.chosen is None:
        return _every_lack(judged.gaps)
    if judged.gaps:
        return _lacks(judged.gaps)
    ours, theirs = cost_of(choice.chosen), cost_of(judged.profile)
    if round(theirs.quality_lost, 3) > round(ours.quality_lost, 3):
        lost = f"perplexity {theirs.quality_lost:.3f} times that without noise, against {ours.quality_lost:.3f}"
        return f"it promises all that was asked, at more cost in quality: {lost}"
    if theirs.bytes_up > ours.bytes_up:
        more = f"answers of {theirs.bytes_up:.1f} times and totals of {theirs.bytes_down:.1f} times the bytes of 32-bit numbers"
        return f"it promises all that was asked, with more bytes: {more}"
    if _place(judged.profile.name)[:-1] == _place(choice.chosen.name)[:-1]:
        return "it promises all that was asked at the same figures; of equal ones the first by name is taken"
    return "it promises all that was asked, and does more work for promises that were not asked for"
