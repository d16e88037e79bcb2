"""Whether a plan is sound by itself and under its profile, before any document is read. It chooses nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from securetm.contracts import Budget, Profile, TopicModel, Unit
from securetm.errors import BadSetting, Unsound
from securetm.models.moments import Moments, check_pairs
from securetm.plans.schema import MOMENTS, NO_VECTORS, NUMBERS, PLAIN, PUBLIC, CorpusChoice, Plan

_PUBLIC_LIST = "name a language, or a public list of words, one a line (--vocabulary english, --vocabulary FILE)"
_ROLES = ("text", "label", "party", "date", "person", "embedding", "id")  # of columns


class EmbeddingsWithoutNoise(Unsound):
    """{model} reads embeddings, and the noise of {profile} is in single words: an embedding is made of the words without it"""

    model: str
    profile: str
    hint = "use a model that reads words alone, such as lda or prodlda, or a profile whose noise is in the sums"


def check_request(tables: Mapping[str, Any]) -> None:
    """Refuses what somebody wrote that says nothing: a privacy number of 0, and settings of a corpus without effect."""
    for name, value in tables.get("privacy", {}).items():
        zero = name in NUMBERS and float(value) <= 0
        _refuse(zero, "[privacy]", name, 0, "must be above 0; leave it out to keep what the profile says")
    given = tables.get("corpus", {})
    for name, problem in idle_in(given).items():
        _refuse(name in given, "[corpus]", name, given.get(name), problem)


def idle_in(corpus: Mapping[str, Any]) -> Mapping[str, str]:
    """The settings of a corpus that mean nothing beside the others, each with the reason."""
    source, partition = corpus.get("source", CorpusChoice.source), corpus.get("partition", CorpusChoice.partition)
    idle: dict[str, str] = {}
    if source == CorpusChoice.source:
        problem = "means nothing for docstrings, of which each package is a party (--corpus FILE)"
        idle = dict.fromkeys((*_ROLES, "partition", "alpha"), problem)
    elif partition == "column":
        idle["parties"] = "means nothing with partition = column: each name in the column is a party (--partition equal)"
    if partition != "dirichlet":
        idle.setdefault("alpha", "means nothing without partition = dirichlet")
    return idle


def check_under_profile(plan: Plan, budget: Budget | None, model: TopicModel) -> None:
    """Refuses settings that contradict each other, and what a budget of this unit does not cover."""
    plan.tokeniser.make()
    plan.tokeniser.listed()
    own = plan.vocabulary
    _refuse(own.source == "file" and not own.file, "[vocabulary]", "file", None, _PUBLIC_LIST)
    _check_training(plan)
    _check_privacy(plan, budget)
    if budget is not None:
        _check_paid(plan, budget, model)


def check_completed(plan: Plan, profile: Profile, model: TopicModel) -> None:
    """Refuses a plan whose words, length or start its profile and its model cannot have."""
    own, allowed = plan.vocabulary, profile.vocabularies
    if earlier := plan.training.continue_from:
        problem = "cannot be set beside continue_from of [training]: the words are those of the earlier model"
        _refuse(own.source != "file", "[vocabulary]", "source", own.source, problem)
        _refuse(own.file != earlier, "[vocabulary]", "file", own.file, problem)
    problem = f"is not sound under profile {profile.name!r}, which allows {', '.join(allowed)}"
    _refuse(own.source not in allowed, "[vocabulary]", "source", own.source, problem)
    by_person = profile.budget is not None and plan.privacy.unit in ("", Unit.PERSON.value)  # open: as the documents say
    persons, problem = plan.training.persons, "means nothing, because the budget is not each person's"
    _refuse(bool(persons) and not by_person, "[training]", "persons", persons, problem)
    hidden = hidden_documents(plan, profile)
    problem = f"needs the number of documents of all parties, which {hidden}: give rounds instead"
    _refuse(bool(plan.training.epochs and hidden), "[training]", "epochs", plan.training.epochs, problem)
    if plan.training.start == MOMENTS:
        _check_moments(plan, profile, model)
    elif plan.training.start == PUBLIC or plan.training.vectors or model.needs_public:
        problem = f"cannot be public for {plan.model.name}, which is no table of topics"
        _refuse(not model.starts_public, "[training]", "start", PUBLIC, problem)
        problem = "cannot be plain for a decoder through word vectors"
        _refuse(plan.training.start == PLAIN, "[training]", "start", PLAIN, problem)


def hidden_documents(plan: Plan, profile: Profile) -> str:
    """Why the coordinator never learns how many documents there are; nothing if it does, from the answer about the words."""
    if profile.budget is not None:
        return f"the budget of profile {profile.name!r} has nothing for"
    if plan.vocabulary.source == "file":
        return "nobody counts where the list of words is public"
    return f"profile {profile.name!r} lets only the parties open" if profile.aggregation.opened_by == "parties" else ""


def _refuse(wrong: bool, where: str, name: str, value: object, problem: str) -> None:
    """Refuses a setting if something is wrong with it; a value of None is missing."""
    if wrong:
        shown = None if value is None else repr(value) if isinstance(value, str) else str(value)
        raise BadSetting(where, name, shown, problem)


def _check_training(plan: Plan) -> None:
    """Refuses settings of a start, or of an earlier model, that mean nothing beside each other."""
    one = plan.training
    problem = "must be from 0, which does not say it, to the number of documents"
    _refuse(one.persons > (one.documents or 10**9), "[training]", "persons", one.persons, problem)
    problem = f"means nothing beside start = {one.start}: only a public start reads vectors, and one by moments"
    _refuse(bool(one.vectors) and one.start == PLAIN, "[training]", "vectors", one.vectors, problem)
    problem = "is for a start by moments, which can do without vectors (--start moments)"
    _refuse(one.vectors == NO_VECTORS and one.start != MOMENTS, "[training]", "vectors", one.vectors, problem)
    problem = f"cannot be {one.start or PUBLIC} beside continue_from: the topics are those of the earlier model"
    asked = one.start in (PUBLIC, MOMENTS) or bool(one.vectors)
    _refuse(asked and bool(one.continue_from), "[training]", "start", one.start, problem)
    problem = "means nothing without start = moments, which asks a question of its own"
    _refuse(bool(one.start_share) and one.start != MOMENTS, "[training]", "start_share", one.start_share, problem)
    problem = "means nothing without continue_from, the model to go on from"
    _refuse(not one.continue_from and one.earlier_weight != 1, "[training]", "earlier_weight", one.earlier_weight, problem)


def _check_privacy(plan: Plan, budget: Budget | None) -> None:
    """Refuses a unit that the profile does not protect, and numbers of a budget where nothing is spent."""
    asked, profile = plan.privacy.unit, Path(plan.profile).stem
    _refuse(budget is None and bool(asked), "[privacy]", "unit", asked, "means nothing, because no budget protects it")
    by_word = budget is not None and budget.unit is Unit.WORD
    problem = f"cannot be had, because profile {plan.profile} adds noise to single word occurrences, and hides no whole {asked}"
    _refuse(by_word and asked not in ("", "word"), "[privacy]", "unit", asked, problem)
    problem = f"cannot be had, because profile {plan.profile} protects whole documents, or whole persons"
    _refuse(not by_word and asked == "word", "[privacy]", "unit", asked, problem)
    problem = f"means nothing, because profile {profile} has no privacy budget (--profile dp-distributed has one)"
    for name in NUMBERS:
        value = getattr(plan.privacy, name)
        _refuse(budget is None and bool(value), "[privacy]", name, value, problem)


def _check_paid(plan: Plan, budget: Budget, model: TopicModel) -> None:
    """Refuses settings that a budget of this unit does not cover."""
    device, where = plan.model.settings.get("device", "auto"), "the plan"
    problem = "adds in an order that nobody fixes, so that one row may change others: a budget needs cpu"
    _refuse(device not in ("auto", "cpu"), where, "model.device", device, problem)
    runs, by_word = plan.tokeniser.ngrams, budget.unit is Unit.WORD
    problem = f"puts one word into up to {runs * (runs + 1) // 2} slots, and a budget of words pays for one"
    _refuse(by_word and runs != 1, where, "tokeniser.ngrams", runs, problem)
    if by_word and model.embedding_size > 0:
        raise EmbeddingsWithoutNoise(plan.model.name, Path(plan.profile).stem)
    problem = "lets an embedding depend on other documents, and a budget needs it not to (leave it at 1)"
    _refuse(plan.embeddings.batch != 1, "[embeddings]", "batch", plan.embeddings.batch, problem)
    problem = "asks the documents, and no budget pays for it under this profile"
    _refuse(plan.training.stop == "held_out", where, "training.stop", plan.training.stop, problem)


def _check_moments(plan: Plan, profile: Profile, model: TopicModel) -> None:
    """Refuses a question of pairs of words before the training where nobody could ask or use it."""
    name, words = plan.model.name, plan.most_words
    by_parties, by_word = profile.aggregation.opened_by == "parties", plan.privacy.unit == "word"
    for wrong, problem in (
        (name == Moments.name, "is what the model moments does by itself: leave the start out"),
        (not model.starts_public or model.needs_public, f"cannot be had for {name}, which is no table of topics"),
        (by_parties, f"cannot be had under {profile.name}, where only the parties open sums: take --start public"),
        (by_word, f"cannot be had under {profile.name}, which adds noise to single words and not to sums"),
    ):
        _refuse(wrong, "[training]", "start", MOMENTS, problem)
    check_pairs(words)
    share, problem = plan.training.start_share, "means nothing, because no budget is spent"
    _refuse(profile.budget is None and bool(share), "[training]", "start_share", share, problem)
