"""A profile in plain records and in the terminal: who sees what, what protects it, what is spent; several side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from securetm.aggregation import AGGREGATIONS
from securetm.auditing.attacks import ATTACKS
from securetm.auditing.plans import audit_plan_names, read_audit_plan
from securetm.contracts import Claim, NoiseBy, Profile, Sampling, ThreatModel, Unit, unit_name
from securetm.corpus.readers import READERS
from securetm.corpus.word_vectors import installed_vectors
from securetm.data_classes import asdict, dataclass
from securetm.engines import ENGINES
from securetm.errors import BadSetting
from securetm.mechanisms import MECHANISMS
from securetm.models import MODELS
from securetm.plans.agreement import begins_public
from securetm.plans.profiles import (
    BLIND,
    JOINT,
    claims_of,
    cohort_of,
    count_of_parties,
    profile_gaps,
    read_profile,
    words_in_sums,
)
from securetm.registries import OURS, Registry, unreadable_packages
from securetm.reports.committed_costs import cost_of, cost_of_list, frontier_says
from securetm.reports.document import Paragraph
from securetm.reports.terminal import show
from securetm.reports.texts import blocks, said, sentence, table
from securetm.threats import read_threat_model
from securetm.wording import upward

REGISTRIES = {
    "models": MODELS,
    "mechanisms": MECHANISMS,
    "aggregations": AGGREGATIONS,
    "attacks": ATTACKS,
    "corpus_readers": READERS,
    "engines": ENGINES,
}


def listed_parts() -> dict[str, list[dict[str, str]]]:
    return {
        kind: [{"name": part.name, "package": part.package, "place": part.place} for part in registry.listed()]
        for kind, registry in REGISTRIES.items()
    }


def parts_of(profile: Profile) -> list[tuple[Registry, str, Any]]:
    """The registry and the name of each part of a profile, and the part itself, in the profile's order."""
    parts: list[tuple[Registry, Any]] = [(AGGREGATIONS, profile.aggregation)]
    parts += [(MECHANISMS, part) for part in profile.mechanisms]
    return [(registry, registry.name_of(part), part) for registry, part in parts]


def unusable_parts() -> list[dict[str, str]]:
    """The declared parts of other packages that cannot be used, and the packages that cannot be read, each with the reason.

    The parts of other packages are imported to find out.
    """
    parts = [
        {"kind": kind, "name": part.name, "package": part.package, "place": part.place, "problem": problem}
        for kind, registry in REGISTRIES.items()
        for part, problem in registry.unusable()
    ]
    unread = unreadable_packages()
    return parts + [{"kind": "", "name": "", "package": name, "place": "", "problem": problem} for name, problem in unread]


def show_parts(facts: Mapping[str, Any], unusable: list[dict[str, str]], to: Console) -> None:
    """One row for each kind, where a part of another package is named with its package; then what cannot be used."""
    show(blocks("profiles.parts", facts, unusable, OURS), to)


# ---- what a profile means --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    role: str
    sees: tuple[str, ...]
    protected_by: tuple[str, ...]


def explain(name: str, parties: int | None = None) -> dict[str, Any]:
    """All facts of `securetm explain` about a profile."""
    profile = read_profile(name)
    noise, parties = noise_place(profile), count_of_parties(profile, parties)
    threats = read_threat_model(profile.threat_model)
    promised = promised_of(claims_of(profile, cohort_of(profile, parties)), threats)
    vectors = installed_vectors() if begins_public(profile) else None
    coins = any(part.sampling is Sampling.COINS for part in profile.mechanisms)
    return {
        "profile": profile.name,
        "title": profile.title,
        "danger": profile.danger,
        "digest": profile.digest.hex(),
        "threat_model": {"name": threats.name, "title": threats.title},
        "views": [asdict(view) for view in views_of(profile, parties)],
        "spent": _spent(profile, noise, parties),
        "start": sentence("profiles.start", begins_public(profile), vectors),
        "recommended": frontier_says(profile.name),
        "still_shows": list(said("profiles.still_shows", noise, profile.aggregation.channel == "sealed")),
        "accepted": [{"claim": what, "reason": reason} for what, reason in threats.accepts if what not in promised],
        "out_of_scope": list(threats.risks),
        "vocabularies": list(profile.vocabularies),
        "lists": list(ways_to_a_list(profile)),
        "minimum_parties": profile.minimum_parties,
        "minimum_documents": profile.minimum_documents,
        "minimum_counts": sentence("profiles.counted_documents", coins),
        "gaps": [asdict(gap) for gap in profile_gaps(profile, threats, parties)],
        "parts": [{"kind": of.kind, "name": part, "package": of.find(part).package} for of, part, _ in parts_of(profile)],
        "audits": [plan.title for plan in map(read_audit_plan, audit_plan_names()) if profile.name in plan.profiles],
    }


_WAYS = (("union", False), ("file", False), (JOINT, False), (BLIND, False), (JOINT, True), (BLIND, True))  # noised or not


def ways_to_a_list(profile: Profile) -> Iterator[dict[str, Any]]:
    """The ways to a list of words side by side: what each shows to whom, costs and finds, and whether the profile allows it."""
    how = words_in_sums(profile) or profile.budget is None, profile.aggregation.opened_by == "parties"
    for way, noised in _WAYS:
        coordinator, party = said("profiles.list_shows", way, noised, *how)
        allowed = way in profile.vocabularies and (way == "file" or noised == (profile.budget is not None))
        cost = cost_of_list(way, noised=noised, by_parties=how[1])
        yield {"list": way, "noised": noised, "allowed": allowed, "coordinator": coordinator, "party": party, **cost}


def promised_of(claims: Iterable[Claim], threats: ThreatModel) -> frozenset[str]:
    """What a profile promises against adversaries of this threat model: nobody may then say that it is accepted to fail."""
    named = {one.name for one in threats.adversaries}
    return frozenset(one.what for one in claims if one.against in named)


def views_of(profile: Profile, parties: int) -> Sequence[View]:
    """What each role sees under a profile, and what is claimed against it in a cohort of so many parties."""
    facts = profile, noise_place(profile), words_in_sums(profile)
    claims = claims_of(profile, cohort_of(profile, parties))
    return (
        View("the coordinator", said("profiles.coordinator", *facts), _against("coordinator", claims)),
        View("every other party", said("profiles.party", *facts), _against("party", claims)),
        View("whoever gets the model", said("profiles.reader"), _against("model reader", claims)),
    )


def noise_place(profile: Profile) -> str:
    """Where the noise is added: at "words" of documents, by the "parties", by the "opener" of a sum, or "none".

    A budget of single words adds none by itself; a part must claim that it does.
    """
    if profile.budget is None:
        return "none"
    if profile.budget.unit is Unit.WORD:
        cohort = cohort_of(profile, max(profile.minimum_parties, 2))
        promised = any(claim.unit is Unit.WORD for part in profile.mechanisms for claim in part.claims(cohort))
        return "words" if promised else "none"
    return "opener" if any(part.noise_by is NoiseBy.OPENER for part in profile.mechanisms) else "parties"


def _against(adversary: str, claims: frozenset[Claim]) -> tuple[str, ...]:
    units: dict[tuple[str, int], set[str]] = {}
    for claim in claims:
        if claim.against == adversary:
            units.setdefault((claim.what, claim.colluding), set()).update([unit_name(claim.unit)] if claim.unit else [])
    return said("profiles.promised", [(*promise, sorted(of)) for promise, of in sorted(units.items())])


def _spent(profile: Profile, noise: str, parties: int) -> str:
    words, needed = [], None
    if noise == "words" and profile.budget is not None:
        from securetm.accounting.calculator.mechanisms import WordNoise  # slow to import, and other profiles do without

        words = [f"{upward(profile.budget.epsilon * words)} for one of {words} words" for words in WordNoise.words]
    elif profile.budget is not None and "joint" in profile.vocabularies:
        from securetm.federation.budget.forecast import in_words, threshold_of  # with what a question asks, slow to import

        threshold = threshold_of(profile, parties)
        needed = None if threshold is None else in_words(threshold)
    return sentence("profiles.spent", profile.budget, noise, words, needed)


def centres_show(profile: str, model: str) -> list[str]:
    """What the centres of a model that clusters embeddings show under a profile; nothing of other models."""
    clusters = MODELS.load(model).among_embeddings
    return list(said("profiles.centres", noise_place(read_profile(profile)))) if clusters else []


def show_explanation(facts: Mapping[str, Any], to: Console) -> None:
    """What a profile means: who sees what, what protects it, what is spent, and what still shows."""
    show(blocks("profiles.explanation", facts, OURS), to)


def show_check(facts: Mapping[str, Any], to: Console) -> None:
    """What a profile gives up, against whom it was checked, and every gap."""
    show(blocks("profiles.check", facts), to)


# ---- several side by side --------------------------------------------------------------------------------------------


def compare_profiles(names: Sequence[str], parties: int | None = None) -> dict[str, Any]:
    """The questions with each profile's answer, and whether the answers differ."""
    if len(set(names)) < 2:
        raise BadSetting("", "PROFILES", ", ".join(names) or "empty", "must name two different profiles at least")
    given = {read_profile(name).name: _answers(name, parties) for name in dict.fromkeys(names)}
    rows = []
    for place, question in enumerate(said("profiles.questions")):
        answers = {name: answered[place] for name, answered in given.items()}
        rows.append({"question": question, "answers": answers, "differs": len(set(answers.values())) > 1})
    return {"profiles": list(given), "rows": rows}


def _answers(name: str, parties: int | None) -> tuple[str, ...]:
    profile = read_profile(name)
    count = count_of_parties(profile, parties)
    held = {one.what: one.colluding for one in claims_of(profile, cohort_of(profile, count)) if one.against == "coordinator"}
    return said(
        "profiles.answers",
        profile,
        noise_place(profile),
        words_in_sums(profile),
        count,
        held.values(),
        any(one.behaviour == "active" for one in read_threat_model(profile.threat_model).adversaries),
        {part.noise_by.value for part in profile.mechanisms},
        None if name.endswith(".toml") else cost_of(profile),  # no committed result tried a profile of one's own
    )


_QUESTION, _LEAST = 18, 22  # characters for a question, and at least for an answer


def show_comparison(facts: Mapping[str, Any], to: Console) -> None:
    """One row a question; rows whose answers differ are marked. Profiles without room stand in a table below."""
    each = max((to.width - _QUESTION - 8) // (_LEAST + 3), 1)
    names = facts["profiles"]
    tables = (table("profiles.comparison", names[at : at + each], facts["rows"]) for at in range(0, len(names), each))
    show((*tables, Paragraph("≠: not the same under all of them.")), to)
