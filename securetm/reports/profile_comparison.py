"""Profiles side by side, one row a question: who sees what, unit and epsilon, rounds, bytes, quality. It shows nothing.

Every answer is read from the profile's parts, its threat model, or a committed result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from securetm.accounting.calculator.budget_report import unit_name
from securetm.contracts import Budget, NoiseBy, Profile, Unit
from securetm.errors import BadSetting
from securetm.experiments.committed_costs import ProfileCost, cost_of
from securetm.profiles import claims_of, cohort_of, count_of_parties, read_profile, words_in_sums
from securetm.reports.explanation import NoisePlace, noise_place
from securetm.threats import read_threat_model
from securetm.wording import counted, upward, upward_figure

_ALL = "the coordinator and all parties"
_SEALED = "sealed"


@dataclass(frozen=True)
class _Subject:
    """A profile with all that its answers are read from."""

    profile: Profile
    parties: int
    cost: ProfileCost | None  # None for a profile of one's own, which no committed result tried

    @property
    def noise(self) -> NoisePlace:
        """Where its noise is added."""
        return noise_place(self.profile)


def compare_profiles(names: Sequence[str], parties: int | None = None) -> dict[str, Any]:
    """The questions with each profile's answer, and whether the answers differ."""
    if len(set(names)) < 2:
        raise BadSetting("", "PROFILES", ", ".join(names) or "empty", "must name two different profiles at least")
    subjects = [_subject(name, parties) for name in dict.fromkeys(names)]
    rows = []
    for question, answer in _QUESTIONS.items():
        said = {one.profile.name: answer(one) for one in subjects}
        rows.append({"question": question, "answers": said, "differs": len(set(said.values())) > 1})
    return {"profiles": [one.profile.name for one in subjects], "rows": rows}


def _subject(name: str, parties: int | None) -> _Subject:
    profile = read_profile(name)
    cost = None if name.endswith(".toml") else cost_of(profile)
    return _Subject(profile, count_of_parties(profile, parties), cost)


# ---- who sees what ---------------------------------------------------------------------------------------------------


def _words(one: _Subject) -> str:
    if one.profile.vocabularies == ("file",):
        return "nobody: the list is public"
    if "union" in one.profile.vocabularies:
        return "the coordinator, and whose they are"
    if one.profile.budget is None:
        return f"{_opener(one)}: every word of all parties, not whose it is"
    return f"{_opener(one)}: words of many documents, with noise" + ("" if words_in_sums(one.profile) else ", by party")


def _answers(one: _Subject) -> str:
    if one.profile.aggregation.channel == _SEALED:
        return "nobody: it looks like random numbers"
    if one.noise is NoisePlace.WORDS:
        return "the coordinator, made of words with noise in their place"
    by_party = one.noise is NoisePlace.PARTIES
    return "the coordinator, with that party's noise" if by_party else "the coordinator, in the clear"


def _sums(one: _Subject) -> str:
    if one.noise is NoisePlace.OPENER:
        return f"{_opener(one)}, exact: it adds the noise"
    exact = {NoisePlace.NONE: "exact", NoisePlace.WORDS: "made of noised words", NoisePlace.PARTIES: "with noise"}
    return f"{_opener(one)}, {exact[one.noise]}"


def _model(one: _Subject) -> str:
    return "all parties" if one.profile.aggregation.opened_by == "parties" else _ALL


def _opener(one: _Subject) -> str:
    return "the parties" if one.profile.aggregation.opened_by == "parties" else "the coordinator"


# ---- what is promised ------------------------------------------------------------------------------------------------


def _reader(one: _Subject) -> str:
    budget = one.profile.budget
    if budget is None or one.noise is NoisePlace.NONE:
        return "no bound"
    return f"at most epsilon = {upward(budget.epsilon)} per {_unit(budget)}, delta = {upward_figure(budget.delta)}"


def _unit(budget: Budget) -> str:
    return unit_name(budget.unit) if budget.unit is Unit.WORD else "document, or person where the plan says so"


def _colluding(one: _Subject) -> str:
    members = tuple(f"party {n}" for n in range(one.parties))
    made = claims_of(one.profile, cohort_of(one.profile, members))
    held = {claim.what: claim.colluding for claim in made if claim.against == "coordinator"}
    if not held:
        return "nothing is promised against the coordinator"
    return f"{counted(min(held.values()), 'party', 'parties')}, of {one.parties}, that help the coordinator"


def _lies(one: _Subject) -> str:
    threats = read_threat_model(one.profile.threat_model)
    lying = any(adversary.behaviour == "active" for adversary in threats.adversaries)
    return "yes" if lying else "no: all follow the protocol"


def _noise(one: _Subject) -> str:
    who = {NoiseBy.SHARES: "each party, a share", NoiseBy.OPENER: "the coordinator", NoiseBy.PARTY: "each party, all of it"}
    added = {part.noise_by for part in one.profile.mechanisms}
    if one.noise is NoisePlace.WORDS:
        return "each party, in the place of every word"
    return next((said for by, said in who.items() if by in added), "nobody")


def _least(one: _Subject) -> str:
    least = one.profile.minimum_documents
    return f"{counted(one.profile.minimum_parties, 'party', 'parties')}, {counted(least, 'document')}"


# ---- what it costs, by committed results -----------------------------------------------------------------------------


def _of_cost(said: Callable[[ProfileCost], str]) -> Callable[[_Subject], str]:
    return lambda one: "not measured" if one.cost is None else said(one.cost)


def _quality(cost: ProfileCost) -> str:
    f1 = "" if cost.f1 is None else f"; F1 {cost.f1:.2f}, of {cost.f1_without_noise:.2f}"
    return f"perplexity {cost.perplexity:.0f}, of {cost.perplexity_without_noise:.0f} without noise{f1}"


def _bytes(cost: ProfileCost) -> str:
    if cost.bytes_up == 1:
        return f"{cost.megabytes:.0f} MB, {cost.counted}"
    return f"{cost.bytes_up:.1f} times up and {cost.bytes_down:.1f} times down those of 32-bit numbers"


_QUESTIONS: Mapping[str, Callable[[_Subject], str]] = {
    "Who sees the words of a party?": _words,
    "Who sees one party's answer?": _answers,
    "Who sees sums over all parties?": _sums,
    "Who sees the model?": _model,
    "What tells the model of one document?": _reader,
    "Who adds noise?": _noise,
    "How many may collude?": _colluding,
    "May the coordinator lie?": _lies,
    "How much does it need?": _least,
    "What quality is left?": _of_cost(_quality),
    "How many rounds?": _of_cost(lambda cost: f"{cost.rounds}"),
    "How many bytes?": _of_cost(_bytes),
    "How long?": _of_cost(lambda cost: f"{cost.seconds:.0f} s"),
    "Measured how?": _of_cost(lambda cost: ", ".join(cost.sources) + _under(cost)),
}


def _under(cost: ProfileCost) -> str:
    return "" if cost.measured_under == cost.profile else f" (under {cost.measured_under})"
