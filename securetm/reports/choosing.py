"""What `securetm choose` answers: the reason, the cost, what is not protected, the next best, the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import floor, log10
from typing import Any

from rich.console import Console

from securetm.contracts import Budget, Profile, Unit
from securetm.corpus.public_words import language_code
from securetm.corpus.word_vectors import installed_vectors
from securetm.errors import BadSetting
from securetm.federation.budget.forecast import forecast_of, why_no_forecast
from securetm.federation.questions import JOINT
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
    forecast_at,
    forecast_of_lengths,
    setting_under,
    tried_as,
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
from securetm.plans.schema import MODEL_UNDER_BUDGET, NO_VECTORS, Plan, hides_documents
from securetm.reports.committed_costs import ProfileCost, by_cost, cost_of
from securetm.reports.document import Block, Paragraph, Table, items, paragraphs
from securetm.reports.forecast import before_a_run, chance_said, forecast_said
from securetm.reports.profiles import explain
from securetm.reports.statement.guesses import MOST_RIGHT, is_limited, limit_said, limited_epsilon, of_100, right_guesses
from securetm.reports.statement.questions import plain_claim
from securetm.reports.terminal import show
from securetm.settings import require
from securetm.threats import Gap
from securetm.wording import counted, listed, upward, upward_figure

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

    def __post_init__(self) -> None:
        """Refuses a length that no document has, and an epsilon that no run can spend."""
        fine = 0 <= self.length <= 1e6
        require(
            fine, "securetm choose", "--document-length", self.length, "must be from 0, which does not say it, to 1,000,000"
        )
        require(0 <= self.epsilon <= MOST_EPSILON, "", "--epsilon", self.epsilon, f"must be above 0 and at most {MOST_EPSILON}")


def plan_of(
    answers: Answers, profile: Profile, notes: PlanNotes, best: ForecastSetting | None = None
) -> tuple[Recommendation, str]:
    """The plan that is recommended, with the settings of which the forecast expects most, and its file."""
    hidden, parties = hides_documents(profile.budget), dealt_out(answers, profile)
    said = dict[str, str]()
    asked: dict[str, Any] = {
        "profile": profile.name,
        "training": _training(answers, notes, best, said) if hidden else {},
        "federation": {"parties": parties} if hidden else {},
        "model": {"name": best.model, "n_topics": best.topics} if best else {},
        "privacy": _privacy(answers, profile, notes, said) if hidden else {},
        "vocabulary": _vocabulary(notes, best),
        "origins": {"vocabulary": notes.public} if notes.public else {},
        "corpus": _corpus(notes, parties, hidden, said),
    }
    head = [
        f"A plan for {counted(parties, 'party', 'parties')}, written by `securetm choose`.",
        f"`securetm explain {profile.name}` says what is protected; `securetm check` on this file, whether it is sound.",
    ]
    if hidden and answers.trainings > 1:
        head += ["In a federation each PARTY.toml has the same epsilon and delta in its [privacy]: the budget of all runs."]
        head += [] if notes.language else [_WORDS_ONCE]
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


def _training(answers: Answers, notes: PlanNotes, best: ForecastSetting | None, said: dict[str, str]) -> dict[str, Any]:
    """Public numbers, and what the forecast makes of them."""
    persons, asked = persons_of(answers), dict[str, Any](documents=answers.documents)
    said["training.documents"] = "of all parties, about: a public number, as the next ones"
    if persons:
        asked["persons"] = persons
        said["training.persons"] = f"at least, if each has {answers.per_person} documents"
    if notes.length:
        asked["document_length"] = float(f"{notes.length:g}")
        said["training.document_length"] = "words"
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
    said["privacy.epsilon"] = f"{together}: the noise follows from it"
    if delta != profile.budget.delta:
        said["privacy.delta"] = "below 1 over the number of documents"
    whom = "every document must name its person" if answers.unit is Unit.PERSON else "no person has two documents"
    said["privacy.unit"] = whom if answers.per_person else "the documents are of no persons"
    asked = {"unit": "document" if not answers.per_person else answers.unit.value}
    numbers = {"epsilon": epsilon_for(answers, profile, notes), "delta": delta, "noise": notes.noise if several else 0.0}
    if several:
        said["privacy.noise"] = f"of a round: a ledger for all runs (--ledgers) admits {answers.trainings}"
    return {**asked, **{name: float(f"{value:g}") for name, value in numbers.items() if value}}


def _vocabulary(notes: PlanNotes, best: ForecastSetting | None) -> dict[str, Any]:
    whole = bool(notes.language) and language_code(notes.language) is None  # a list in a file is kept whole
    listed = {"file": notes.language} if notes.language else {}
    return {**listed, **({"max_words": best.words} if best is not None and not whole else {})}


def _corpus(notes: PlanNotes, parties: int, hidden: bool, said: dict[str, str]) -> dict[str, Any]:
    """Only for a simulation: in a federation every party brings its own documents by its PARTY.toml."""
    if not notes.corpus:
        return {}
    said["corpus"] = "of a simulation on one machine"
    person = {"person": notes.person} if notes.person and hidden else {}
    return {"source": notes.corpus, "partition": "equal", "parties": parties, **person}


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


def plan_said(cost: dict[str, Any]) -> str:
    """The run of the plan in one line."""
    return (
        f"{cost['model']}, {counted(cost['topics'], 'topic')}, at most {cost['words']:,} words, "
        f"{counted(cost['rounds'], 'round')}, {counted(cost['parties'], 'party', 'parties')}, {cost['documents']:,} documents"
    )


def bytes_of_plan(cost: dict[str, Any]) -> str:
    """About how much is sent in all rounds, and what comes to it."""
    more = ", and once the search for words" if cost["and_words"] else ""
    times = f"up {cost['bytes_up']:.1f} times, down {cost['bytes_down']:.1f} times that, as it is encrypted"
    encrypted = "" if cost["bytes_up"] == 1 else f"; {times}"
    return f"about {_amount(cost['megabytes'])} MB in all rounds{more}{encrypted}"


def time_of_plan(cost: dict[str, Any]) -> str:
    """About how long it takes; nothing where no such model was measured."""
    if cost["seconds"] is None:
        return f"not measured for {cost['model']}"
    return f"about {_amount(cost['seconds'])} s for {counted(cost['rounds'], 'round')} on this project's machine"


def _amount(value: float) -> str:
    """To two digits, and never without one."""
    return f"{float(f'{value:.2g}'):g}" if value >= 0.1 else "0.1"


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
    found, text = plan_of(answers, profile, notes, setting)
    agreement = agree(found.plan)
    if answers.trainings == 1 or not hides_documents(profile.budget):
        return _Made(text, agreement, best)
    from securetm.federation.budget.prices import noise_for_runs  # with the accountant, which one training does not need

    noise = noise_for_runs(agreement, dealt_out(answers, profile), answers.trainings)
    found, text = plan_of(answers, profile, replace(notes, noise=noise), setting)
    if best is not None and setting is not None:
        lengths = (notes.length,) if notes.length else LENGTHS
        best = forecast_at(replace(setting, noise=noise, epsilon=epsilon_for(answers, profile, notes)), lengths)
    return _Made(text, agree(found.plan), best, noise)


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
    from securetm.federation.budget.prices import epsilon_of_one

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


def show_choice(facts: Mapping[str, Any], to: Console) -> None:
    """The chosen profile with its reason, cost and limits, or what would have to change; then the next best."""
    rows = tuple((one["profile"], one["lost_because"]) for one in facts["next_best"])
    title = "The two next best" if facts["profile"] else "Nearest"
    found = _chosen(facts) if facts["profile"] else _none(facts)
    show((*found, Table(("profile", "why not"), rows, title=title, whole=(0,))), to)


def _none(facts: Mapping[str, Any]) -> Iterator[Block]:
    said = [f"{one['change']}: then {one['profile']}" for one in facts["changes"]]
    yield Paragraph("No profile promises all of that.", "danger")
    yield Paragraph(facts["asked"])
    yield from items(said, "One of these would have to change")
    if not said:
        yield Paragraph("No single change, pair or three of changes is enough: ask for less.")


def _chosen(facts: Mapping[str, Any]) -> Iterator[Block]:
    limit, forecast = facts["guess_limit"], facts["forecast"]
    limited = Paragraph(limit["said"], "strong" if limit["passes"] else "danger") if limit else None
    if limited is not None and not limit["passes"]:
        yield limited
    yield Paragraph(f"{facts['profile']}: {facts['title']}", "fine")
    yield from paragraphs((facts["danger"],), "danger")
    yield Paragraph(" ".join(facts["reason"]))
    if limited is not None and limit["passes"]:
        yield limited
    yield Paragraph("")
    yield from _costs(facts)
    if forecast:
        yield Paragraph(forecast["said"], "" if forecast["verdict"] == Verdict.OF_USE.value else "alarm")
    not_kept = [f"accepted: “{one['claim']}” may fail: {one['reason']}" for one in facts["accepted"]]
    yield from items([*not_kept, *facts["out_of_scope"]], "What it does not protect")


def _costs(facts: Mapping[str, Any]) -> Iterator[Block]:
    """What the run of the plan costs; below it, what was measured of another run."""
    cost, own, forecast = facts["cost"], facts["plan_cost"], facts["forecast"]
    rows = (
        ("the run", plan_said(own)),
        ("privacy", _spent_said(facts["spent"])),
        ("time", time_of_plan(own)),
        ("bytes", bytes_of_plan(own)),
        *([("quality", f"{forecast['verdict']}, by the forecast below")] if forecast else []),
    )
    under = "" if cost["measured_under"] == cost["profile"] else f"; measured under {cost['measured_under']}"
    at = f" at epsilon {cost['epsilon']:g}" if cost["epsilon"] else ""
    another = f"Bytes and time are in proportion to another run, which was measured{at}: {cost['setting']}{under}. It had:"
    figures = (*quality_said(cost), f"{cost['seconds']:.0f} s for {counted(cost['rounds'], 'round')}", bytes_said(cost))
    yield Table(("", ""), rows, title="What it costs", kind="facts")
    yield Paragraph(another)
    yield from paragraphs(f"  {one}" for one in (*figures, f"(again: {', '.join(cost['sources'])})"))


def _spent_said(spent: Mapping[str, Any] | None) -> str:
    if not spent:
        return "no budget: nothing limits what the results tell of one document or person"
    number = spent["trainings"]
    whole = "the one training" if number == 1 else f"all {number} trainings on these documents together"
    one = "" if number == 1 else f"; each, if it were the only one, {upward(spent['epsilon_of_one'])}"
    said = f"epsilon {upward(spent['epsilon'])} per {spent['unit']}, delta {upward_figure(spent['delta'])}, for {whole}{one}"
    return said if number > 1 else f"{said}: a second one on the same documents adds to it (--trainings)"


def quality_said(cost: Mapping[str, Any]) -> list[str]:
    """Held-out words and classification, beside what they are without noise."""
    beside = [f"{cost['perplexity_without_noise']:.0f} without noise"]
    if cost["perplexity_of_frequencies"]:
        beside.append(f"{cost['perplexity_of_frequencies']:.0f} by word frequencies alone")
    said = [f"perplexity of held-out words {cost['perplexity']:.0f} ({', '.join(beside)})"]
    if cost["f1"]:
        without = f"{cost['f1_without_noise']:.2f} without noise, {cost['f1_without_documents']:.2f} without any document"
        said.append(f"F1 of a classifier on the topics {cost['f1']:.2f} ({without})")
    return said


def bytes_said(cost: Mapping[str, Any]) -> str:
    """All messages of the training, and what encryption makes of them."""
    if cost["bytes_up"] == 1:
        return f"{cost['megabytes']:.0f} MB, {cost['counted']}"
    times = f"up {cost['bytes_up']:.1f} times, down {cost['bytes_down']:.1f} times the bytes of 32-bit numbers"
    return f"{cost['megabytes']:.0f} MB under {cost['measured_under']}; encrypted: {times}"


def too_few_documents(plan: Plan, parties: int) -> list[dict[str, Any]]:
    """The gap of a plan whose documents, dealt out equally, are too few for its sums; none if it does not say how many."""
    documents, profile = plan.training.documents, read_profile(plan.profile)
    if not documents or parties < profile.minimum_parties:
        return []
    need = documents_needed(profile, parties)
    if documents // parties >= need:
        return []
    problem = f"{documents:,} documents of {parties:,} parties are {documents // parties:,} each, and each must bring {need:,}"
    return [asdict(Gap("a sum holds enough documents", "", problem, "correct [federation] parties or [training] documents"))]


def use_said(plan: Plan, parties: int) -> str:
    """Whether the model will be of use, in words; nothing where no documents or persons have a budget."""
    agreement = agree(plan)
    if not hides_documents(agreement.budget):
        return ""
    return before_a_run(forecast_of(agreement, parties), why_no_forecast(agreement))
