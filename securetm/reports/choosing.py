"""What `securetm choose` answers: the reason, the cost, what is not protected, the next best, the plan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import floor, log10
from typing import Any

from rich.console import Console

from securetm.contracts import Budget, NamingThreshold, Profile, Unit
from securetm.corpus.languages import ENGLISH_CODE, language_code
from securetm.corpus.word_vectors import installed_vectors
from securetm.data_classes import asdict, dataclass, replace
from securetm.errors import BadSetting
from securetm.federation.budget.forecast import documents_needed_by, forecast_of, needed_by, why_no_forecast
from securetm.federation.questions import JOINT
from securetm.federation.sources import language_taken
from securetm.plans.agreement import Agreement, agree
from securetm.plans.forecast import (
    BY_MOMENTS,
    BY_MOMENTS_ALONE,
    LENGTHS,
    PLAIN,
    PUBLIC,
    Forecast,
    ForecastSetting,
    Verdict,
    best_settings,
    forecast,
    least_words,
    length_asked,
    order_of,
    setting_under,
    tried_as,
    words_found,
)
from securetm.plans.profile_choice import (
    BREAKERS,
    COORDINATOR,
    NOBODY,
    PARTY,
    READER,
    SECRETS,
    Answers,
    Choice,
    Judged,
    choose,
    dealt_out,
    documents_needed,
    threats_asked,
)
from securetm.plans.profiles import read_profile
from securetm.plans.recommend import Recommendation, plan_text, recommended
from securetm.plans.schema import MODEL_UNDER_BUDGET, NO_VECTORS, USUAL_LANGUAGE, WITH_PRIVATE, Plan, hides_documents
from securetm.reports.committed_costs import ProfileCost, by_cost, cost_of
from securetm.reports.forecast import before_a_run, chance_said, forecast_said, in_language
from securetm.reports.profiles import explain
from securetm.reports.statement.guesses import MOST_RIGHT, is_limited, limit_said, limited_epsilon, of_100, right_guesses
from securetm.reports.statement.questions import plain_claim
from securetm.reports.terminal import show
from securetm.reports.texts import blocks, sentence
from securetm.settings import require
from securetm.threats import MANY_HELPERS, Gap, read_threat_model
from securetm.wording import counted

_LEAST_DELTA = 1e-12
_WORDS_ONCE = "The first run finds the words, and pays for them; the others take its list (--vocabulary), or pay again."
MOST_EPSILON = 1_000
_STARTS = {
    PLAIN: {"start": "plain"},
    BY_MOMENTS: {"start": "moments"},
    BY_MOMENTS_ALONE: {"start": "moments", "vectors": NO_VECTORS},
}


@dataclass(frozen=True)
class PlanNotes:
    """What a plan says beside the answers: where the documents are, and the language of a public list of words."""

    corpus: str = ""
    person: str = ""  # the column of persons
    language: str = ""  # or the file of a public list
    length: float = 0.0  # words of a document, about; 0: nobody says it
    epsilon: float = 0.0  # that may be spent; 0: the profile's, or the largest below securetm's own limit on guesses
    public: str = ""  # why the list of words in a file is public
    noise: float = 0.0  # of a round, where several trainings share the budget; 0: as epsilon says
    allowed: float = 0.0  # epsilon that may be spent, where several trainings can share less; 0: they share all of it
    spoken: str = ""  # the code of the documents' language, where it is seen and no English, and nobody names one
    surely: bool = False  # whether each third of them shows it
    has_parties: bool = False  # whether a column of the documents names who holds each
    seen_length: float = 0.0  # words of the documents that are there: told to whoever holds them, and in no plan

    @property
    def code(self) -> str | None:
        """The code of the language that the list or the documents are in; None: nobody says it."""
        return language_code(self.language) or self.spoken or None

    def under(self, profile: Profile) -> PlanNotes:
        """What a plan of this profile may say: under a budget no language that some of the documents show alone."""
        return self if self.surely or profile.budget is None else replace(self, spoken="")

    def __post_init__(self) -> None:
        """Refuses a length that no document has, and an epsilon that no run can spend."""
        fine = 0 <= self.length <= 1e6
        require(
            fine, "securetm choose", "--document-length", self.length, "must be from 0, which does not say it, to 1,000,000"
        )
        require(0 <= self.epsilon <= MOST_EPSILON, "", "--epsilon", self.epsilon, f"must be above 0 and at most {MOST_EPSILON}")


def plan_of(
    answers: Answers,
    profile: Profile,
    notes: PlanNotes,
    best: ForecastSetting | None = None,
    unknown: ForecastSetting | None = None,
) -> tuple[Recommendation, str]:
    """The plan that is recommended, with the settings of which the forecast expects most, and its file.

    Of `unknown` nothing can be forecast: it says which words are listed, and how many of them a document has.
    """
    hidden, parties = hides_documents(profile.budget), dealt_out(answers, profile)
    said = dict[str, str]()
    whole = bool(notes.language) and language_code(notes.language) is None  # a list in a file is kept whole
    listed_of = best or unknown
    general = listed_of is not None and listed_of.general_list
    if general:
        said["vocabulary.file"] = "of general texts: behind the noise too few words of these documents would be found"
    if best is not None and best.listed:
        said["vocabulary.file"] = "words of general texts, and those of these documents that are found behind the noise"
    if notes.spoken:
        said["tokeniser.stop_words"] = language_taken(notes.spoken)
    named = notes.language or notes.spoken or USUAL_LANGUAGE
    named += WITH_PRIVATE if best is not None and best.listed else ""
    listed = {"file": named} if whole or general or (notes.language and best is None) else {}
    asked: dict[str, Any] = {
        "profile": profile.name,
        "training": _training(answers, notes, best, said, listed_of.length if listed_of else notes.length) if hidden else {},
        "federation": {"parties": parties} if hidden else {},
        "model": {"name": best.model, "n_topics": best.topics} if best else {},
        "privacy": _privacy(answers, profile, notes, said) if hidden else {},
        "tokeniser": {"stop_words": notes.code} if notes.code not in (None, ENGLISH_CODE) and not listed else {},
        "vocabulary": {**listed, **({"max_words": best.listed or best.words} if best is not None and not whole else {})},
        "origins": {"vocabulary": notes.public} if notes.public else {},
        "corpus": _corpus(notes, parties, hidden, said),
    }
    head = [
        f"A plan for {counted(parties, 'party', 'parties')}, written by `securetm choose`.",
        f"`securetm explain {profile.name}` says what is protected; `securetm check` on this file, whether it is sound.",
    ]
    if hidden and answers.trainings > 1:
        head += ["In a federation each PARTY.toml has the same epsilon and delta in its [privacy]: the budget of all runs."]
        head += [] if listed else [_WORDS_ONCE]
    found = recommended(asked, "the plan")
    return found, plan_text(found, said, head)


def delta_for(answers: Answers, delta: float) -> float:
    """The profile's delta, or the power of ten below 1 over twice the number of documents, where that is smaller."""
    smaller: float = 10.0 ** floor(-log10(2 * answers.documents))
    return delta if delta <= smaller else max(smaller, _LEAST_DELTA)


def epsilon_for(answers: Answers, profile: Profile, notes: PlanNotes) -> float:
    """What the plan spends: as asked, or the profile's epsilon, or the largest under securetm's own limit on guesses."""
    assert profile.budget is not None
    own = profile.budget.epsilon
    return notes.epsilon or limited_epsilon(own, delta_for(answers, profile.budget.delta)) or own


def persons_of(answers: Answers) -> int:
    """How many persons there are at least, if each has as many documents as the one who has most; 0 where none are meant."""
    return max(answers.documents // answers.per_person, 1) if answers.unit is Unit.PERSON else 0


def _training(
    answers: Answers, notes: PlanNotes, best: ForecastSetting | None, said: dict[str, str], length: float
) -> dict[str, Any]:
    """Public numbers, and what the forecast makes of them."""
    persons, asked = persons_of(answers), dict[str, Any](documents=answers.documents)
    said["training.documents"] = "of all parties, about: a public number, as the next ones"
    if persons:
        asked["persons"] = persons
        said["training.persons"] = f"at least, if each has {answers.per_person} documents"
    if notes.length:
        asked["document_length"] = float(f"{length:g}")
        said["training.document_length"] = "words on the list"
    if best is not None:
        asked |= {"rounds": best.rounds, **(_start(best.start) if best.model == MODEL_UNDER_BUDGET else {})}
        said["training.rounds"] = "of these, and of words, topics and start, the forecast expects most"
    return asked


def _start(start: str) -> dict[str, str]:
    """How the training begins. Vectors are named with their digest, so that only the coordinator needs to have them."""
    vectors = installed_vectors() if start == PUBLIC else None
    if vectors is None:
        return _STARTS.get(start, {})
    return {"start": PUBLIC, "vectors": vectors.name, "vectors_digest": vectors.digest}


def _privacy(answers: Answers, profile: Profile, notes: PlanNotes, said: dict[str, str]) -> dict[str, Any]:
    assert profile.budget is not None
    delta, several = delta_for(answers, profile.budget.delta), answers.trainings > 1
    together = f"of all {answers.trainings} trainings on these documents together" if several else "of all rounds together"
    more = f"; of {notes.allowed:g} that may be spent, so many can share no more" if notes.allowed else ""
    said["privacy.epsilon"] = f"{together}: the noise follows from it{more}"
    if delta != profile.budget.delta:
        said["privacy.delta"] = "below 1 over the number of documents"
    whom = "every document must name its person" if answers.unit is Unit.PERSON else "no person has two documents"
    said["privacy.unit"] = whom if answers.per_person else "the documents are of no persons"
    asked = {"unit": "document" if not answers.per_person else answers.unit.value}
    numbers = {"epsilon": epsilon_for(answers, profile, notes), "delta": delta, "noise": notes.noise if several else 0.0}
    if several:
        said["privacy.noise"] = f"of a round: a ledger for all runs (--ledgers) admits {answers.trainings}"
    return {**asked, **{name: float(f"{value:g}") for name, value in numbers.items() if value}}


def _corpus(notes: PlanNotes, parties: int, hidden: bool, said: dict[str, str]) -> dict[str, Any]:
    """Only for a simulation: in a federation every party brings its own documents by its PARTY.toml."""
    if not notes.corpus:
        return {}
    said["corpus"] = "of a simulation on one machine"
    person = {"person": notes.person} if notes.person and hidden else {}
    dealt = {"partition": "column"} if notes.has_parties else {"partition": "equal", "parties": parties}
    return {"source": notes.corpus, **dealt, **person}


def plan_cost(agreement: Agreement, parties: int, documents: int, measured: ProfileCost) -> dict[str, Any]:
    """The figures of this plan. Time is told of the model that was measured alone, and no time of another one."""
    plan, rounds = agreement.plan, agreement.plan.training.rounds
    topics, words = agreement.model.most_shown_topics, len(agreement.longest_list)
    values = topics * words / (measured.topics * measured.words)
    megabytes = measured.megabytes * rounds / measured.rounds * values * parties / measured.parties
    seconds = measured.seconds * rounds / measured.rounds * documents / measured.documents
    return {
        "model": plan.model.name,
        "rounds": rounds,
        "topics": topics,
        "words": words,
        "parties": parties,
        "documents": documents,
        "megabytes": round(megabytes, 3),
        "seconds": round(seconds, 1) if plan.model.name == measured.model else None,
        "and_words": plan.vocabulary.source == JOINT,
        "bytes_up": measured.bytes_up,
        "bytes_down": measured.bytes_down,
    }


_WHO: Mapping[str, str] = {COORDINATOR: "the coordinator", PARTY: "other parties", READER: "whoever gets the model"}


@cache
def _place(name: str) -> Any:
    return by_cost(read_profile(name))


def chosen(answers: Answers, notes: PlanNotes) -> dict[str, Any]:
    """Everything that the command prints, writes and gives as JSON."""
    choice = choose(answers, _place)
    profile = choice.chosen
    notes = _shared(answers, profile, notes.under(profile)) if profile else notes
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
        "out_of_scope": _beyond(profile, answers) if profile else [],
        "next_best": [_next_best(one, choice) for one in choice.next_best],
        "changes": [{"change": one.instead, "profile": one.profile} for one in choice.changes],
        "plan": made.text if made else None,
    }


def _beyond(profile: Profile, answers: Answers) -> list[str]:
    """What the profile's threat model does not consider. Of helpers of the coordinator as many are named as there may be.

    Where no more than three parties are, there are no three helpers, and none where all are asked for as colluding ones.
    """
    others = answers.parties - 1
    each = read_threat_model(profile.threat_model).out_of_scope
    if others in (1, 2):
        each = tuple(one for one in each if one.name != MANY_HELPERS or answers.colluding < others)
    return [sentence("choosing.helpers", others) if one.name == MANY_HELPERS and others in (1, 2) else one.risk for one in each]


@dataclass(frozen=True)
class _Made:
    """The plan as text, as a run would read it, and what is expected of it."""

    text: str
    agreement: Agreement
    expected: Forecast | None
    noise: float = 0.0  # of a round, where several trainings share the budget


def _shared(answers: Answers, profile: Profile, notes: PlanNotes) -> PlanNotes:
    """The notes with as much of epsilon as so many trainings can share."""
    if answers.trainings == 1 or not hides_documents(profile.budget):
        return notes
    from securetm.federation.budget.prices import epsilon_for_runs

    best, whole = _best(answers, profile, notes), epsilon_for(answers, profile, notes)
    agreement = agree(plan_of(answers, profile, notes, best.setting if best and best.held_out else None)[0].plan)
    epsilon = epsilon_for_runs(agreement, dealt_out(answers, profile), answers.trainings)
    return replace(notes, epsilon=epsilon, allowed=whole) if epsilon < whole else notes


def _made(answers: Answers, profile: Profile, notes: PlanNotes, best: Forecast | None) -> _Made:
    """The plan. Where several trainings share a budget, it has the noise with which a ledger admits all of them."""
    setting, unknown = (best.setting, None) if best and best.held_out else (None, best.setting if best else None)
    found, text = plan_of(answers, profile, notes, setting, unknown)
    agreement = agree(found.plan)
    if best is not None and setting is None:  # of no settings anything is known: what the run will say of its own
        best = forecast_of(agreement, dealt_out(answers, profile)) or best
    if answers.trainings == 1 or not hides_documents(profile.budget):
        return _Made(text, agreement, best)
    from securetm.federation.budget.prices import noise_for_runs  # with the accountant, which one training does not need

    noise = noise_for_runs(agreement, dealt_out(answers, profile), answers.trainings)
    found, text = plan_of(answers, profile, replace(notes, noise=noise), setting, unknown)
    if best is not None and setting is not None:
        epsilon = epsilon_for(answers, profile, notes)
        best = forecast(replace(setting, noise=noise, epsilon=epsilon, length=setting.length if notes.length else 0.0))
    return _Made(text, agree(found.plan), best, noise)


def asked_said(answers: Answers) -> str:
    """What was asked for, in one sentence."""
    hidden = [SECRETS[one].partition(":")[0] for one in SECRETS if one in answers.hide]
    lie = [BREAKERS[one].partition(" may")[0] for one in BREAKERS if one in answers.breaks and one != NOBODY]
    return sentence("choosing.asked", answers, [_WHO[one] for one in answers.lookers], hidden, lie)


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
    parties = dealt_out(answers, profile)
    setting = setting_under(
        profile.name,
        answers.documents,
        parties,
        epsilon=_epsilon_of_one(answers, profile, notes),
        delta=delta_for(answers, profile.budget.delta),
        documents_per_person=answers.documents / (persons_of(answers) or answers.documents),
        length=notes.length,
    )
    vectors = installed_vectors() is not None and notes.code in (None, ENGLISH_CODE)
    usual = replace(setting, start=PUBLIC if vectors else PLAIN)
    if notes.language and language_code(notes.language) is None:  # a list in a file is kept
        return best_settings(setting, vectors=vectors) or forecast(usual)
    each = []
    if JOINT in profile.vocabularies:
        needed = _needed(answers, profile, notes)
        together = needed is None or needed.together
        setting = replace(setting, found_from=documents_needed_by(needed, parties), found_together=together)
        each.append(best_settings(setting, vectors=vectors, written=notes.length))
        if "file" in profile.vocabularies:
            both = replace(setting, general_list=True, listed=setting.words)
            each.append(best_settings(both, vectors=vectors, written=notes.length))
    if "file" in profile.vocabularies:
        general = replace(setting, found_from=0.0, general_list=True)
        each.append(best_settings(general, vectors=vectors, written=notes.length))
    known = [one for one in each if one is not None]
    if known:
        return max(known, key=order_of)
    unknown = replace(usual, found_from=setting.found_from)
    enough = unknown.found_from > 0 and words_found(unknown) >= least_words(unknown.topics)
    if "file" in profile.vocabularies and not enough:
        unknown = replace(usual, general_list=True, written=notes.length)  # of their own words too few would be found
        unknown = replace(unknown, length=length_asked(unknown)) if notes.length else unknown
    return forecast(unknown)


def _needed(answers: Answers, profile: Profile, notes: PlanNotes) -> NamingThreshold | None:
    """In how many documents a word has to be to be found behind this profile's noise."""
    agreement = agree(plan_of(answers, profile, replace(notes, language=""))[0].plan)
    return needed_by(agreement, dealt_out(answers, profile))


def _epsilon_of_one(answers: Answers, profile: Profile, notes: PlanNotes) -> float:
    """What one of the trainings may spend, if it were the only one."""
    assert profile.budget is not None
    epsilon, delta = epsilon_for(answers, profile, notes), delta_for(answers, profile.budget.delta)
    if answers.trainings == 1:
        return epsilon
    from securetm.federation.budget.prices import epsilon_of_one

    return epsilon_of_one(Budget(answers.unit, epsilon, delta), answers.trainings)


def _forecast(told: Forecast, notes: PlanNotes) -> dict[str, Any]:
    """The forecast as data, and in words."""
    told = in_language(told, notes.code)
    expected = f"{chance_said(told, notes.code)}{forecast_said(told)}"
    lengths = LENGTHS if told.held_out is not None and not notes.length else []
    return {**told.record(), "said": sentence("choosing.forecast", told, tried_as(told.setting), expected, lengths)}


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
    several["allowed"] = notes.allowed or None
    return {"epsilon": epsilon, "delta": delta_for(answers, budget.delta), "unit": answers.unit.value, **several}


def _guess_limit(spent: Mapping[str, Any], profile: Profile) -> dict[str, Any] | None:
    """What the budget means for whoever guesses, beside the limit from which a report warns; nothing for single words."""
    if not hides_documents(profile.budget):
        return None
    epsilon, delta = spent["epsilon"], spent["delta"]
    right, passes = right_guesses(epsilon, delta), is_limited(epsilon, delta)
    least = limited_epsilon(epsilon, delta) or None
    said_of = sentence("choosing.guess_limit", epsilon, passes, MOST_RIGHT, limit_said(right), of_100(right), least)
    facts = {"right": right, "passes": passes, "said": said_of}
    return facts if passes else {**facts, "passing_epsilon": least}


# ---- sentences -------------------------------------------------------------------------------------------------------


def _reason(choice: Choice) -> list[str]:
    """Three sentences: what was asked, what the profile promises, and why no cheaper one was taken."""
    profile = choice.chosen
    assert profile is not None
    kept: dict[str, list[str]] = {}
    for one in threats_asked(choice.answers).requires:
        kept.setdefault(one.claim.against, []).append(one.claim.what)
    dealt = dealt_out(choice.answers, profile) if choice.answers.parties == 1 else 0
    cheaper = [one for one in choice.failing if _place(one.profile.name) < _place(profile.name)]
    promised = sentence("choosing.promised", profile.name, kept, dealt)
    return [asked_said(choice.answers), promised, sentence("choosing.cheaper", cheaper)]


def _next_best(judged: Judged, choice: Choice) -> dict[str, Any]:
    """A profile that was not taken, why, and every claim that it lacks."""
    lacks = [{"claim": one.claim, "against": one.adversary, "reason": one.reason} for one in judged.gaps]
    return {"profile": judged.profile.name, "lost_because": _lost(judged, choice), "lacks": lacks}


def _lost(judged: Judged, choice: Choice) -> str:
    """Why this profile was not taken: what it lacks, or that it costs more."""
    if choice.chosen is None:
        return sentence("choosing.every_lack", [(one, plain_claim(one.claim)) for one in judged.gaps])
    if judged.gaps:
        return sentence("choosing.lacks", judged.gaps)
    equal = _place(judged.profile.name)[:-1] == _place(choice.chosen.name)[:-1]
    return sentence("choosing.costs_more", cost_of(choice.chosen), cost_of(judged.profile), equal)


def show_choice(facts: Mapping[str, Any], to: Console) -> None:
    """The chosen profile with its reason, cost and limits, or what would have to change; then the next best."""
    show(blocks("choosing.chosen" if facts["profile"] else "choosing.nothing_fits", facts, Verdict.OF_USE.value), to)


def bytes_said(cost: Mapping[str, Any]) -> str:
    """All messages of the training, and what encryption makes of them."""
    return sentence("choosing.bytes", cost)


def too_few_documents(plan: Plan, parties: int) -> list[dict[str, Any]]:
    """The gap of a plan whose documents, dealt out equally, are too few for its sums; none if it does not say how many."""
    documents, profile = plan.training.documents, read_profile(plan.profile)
    if not documents or parties < profile.minimum_parties:
        return []
    need = documents_needed(profile, parties)
    if documents // parties >= need:
        return []
    problem = sentence("choosing.too_few", documents, parties, need)
    return [asdict(Gap("a sum holds enough documents", "", problem, "correct [federation] parties or [training] documents"))]


def use_said(plan: Plan, parties: int) -> str:
    """Whether the model will be of use, in words; nothing where no documents or persons have a budget."""
    agreement = agree(plan)
    if not hides_documents(agreement.budget):
        return ""
    return before_a_run(forecast_of(agreement, parties), why_no_forecast(agreement), plan.language)
