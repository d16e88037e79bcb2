"""Reads plans: decodes them, and checks whether they are sound by themselves and under their profile.

No document is read, and nothing is chosen: `recommend.py` chooses what a plan leaves open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from securetm.contracts import Budget, Profile, TopicModel, Unit
from securetm.corpus.text_embeddings import USUAL_SIZE
from securetm.corpus.word_vectors import GLOVE, SENTENCE
from securetm.data_classes import dataclass
from securetm.errors import Unsound
from securetm.models.moments import Moments, check_pairs
from securetm.plans.profiles import BLIND, ProfileFile, make_model
from securetm.plans.schema import MOMENTS, NO_VECTORS, NUMBERS, PLAIN, PUBLIC, CorpusChoice, Plan, decode, usual_model
from securetm.settings import Mistakes, require, tables_of

_ROLES = ("text", "label", "party", "date", "person", "embedding", "id")  # of columns
_Fault = tuple[bool, str, str]  # whether it is there, the setting by its dotted name, and what follows "it"


class EmbeddingsWithoutNoise(Unsound):
    """{model} reads embeddings, and the noise of {profile} is in single words: an embedding is made of the words without it"""

    model: str
    profile: str
    hint = "use a model that reads words alone, such as lda or prodlda, or a profile whose noise is in the sums"


@dataclass(frozen=True)
class Request:
    """A plan as somebody wrote it, under its profile: what is not given is as the schema has it, or as a model has it."""

    plan: Plan
    given: frozenset[str]  # the names of the settings that it gives, such as training.rounds
    file: ProfileFile
    path: Path | None = None  # that it was read from
    elsewhere: Collection[str] = ()  # the settings that did not come from there


def read_plan(path: Path | None, overrides: Mapping[str, Any]) -> Request:
    """The plan in a file, or one that says nothing, with overrides such as {"training.rounds": 10}."""
    with tables_of(path, overrides) as tables:
        found = checked(tables, path.name if path else "the command line")
        _check_says_something(tables)
    return replace(found, path=path, elsewhere=overrides)


def checked(tables: Mapping[str, Any], where: str) -> Request:
    """The plan in tables as they stand in TOML. The mistakes of all its sections are told at once, and then what is unsound."""
    mistakes, file, budget, plan = Mistakes(), None, None, Plan()
    with mistakes.kept():
        file = ProfileFile.read(str(tables.get("profile", Plan.profile)))
        budget = file.profile().budget
    with mistakes.kept():
        plan = decode({**tables, "model": _named(tables.get("model", {}), budget)}, where)
    mistakes.tell()
    assert file is not None  # else a mistake was told
    _check_under_profile(plan, budget)
    return Request(plan, _given(tables), file)


def _named(model: Any, budget: Budget | None) -> Any:
    """The section of the model, with the one that is trained where none is named."""
    return {"name": usual_model(budget), **model} if isinstance(model, Mapping) else model


def _given(tables: Mapping[str, Any]) -> frozenset[str]:
    found = {f"{section}.{name}" for section, table in tables.items() if isinstance(table, Mapping) for name in table}
    return frozenset(found | {f"model.{name}" for name in tables.get("model", {}).get("settings", {})})


def _check_says_something(tables: Mapping[str, Any]) -> None:
    """Refuses what somebody wrote that says nothing: a privacy number of 0, and settings of a corpus without effect."""
    for name, value in tables.get("privacy", {}).items():
        fine = name not in NUMBERS or float(value) > 0
        require(fine, "[privacy]", name, 0, "must be above 0; leave it out to keep what the profile says")
    given = tables.get("corpus", {})
    for name, problem in idle_in(given).items():
        require(name not in given, "[corpus]", name, given.get(name), problem)


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


def _check_under_profile(plan: Plan, budget: Budget | None) -> None:
    """Refuses settings that contradict each other, and what a budget of this unit does not cover."""
    plan.tokeniser.make()
    plan.tokeniser.listed()
    public_list = "name a language, or a public list of words, one a line (--vocabulary english, --vocabulary FILE)"
    own = plan.vocabulary
    require(own.source != "file" or bool(own.file), "[vocabulary]", "file", None, public_list)
    _refuse(plan, _of_training(plan))
    _refuse(plan, _of_privacy(plan, budget))
    if budget is not None:
        model = make_model(plan.model.name, plan.model.settings)
        _refuse(plan, _unpaid(plan, budget, model))


def check_completed(plan: Plan, profile: Profile, model: TopicModel) -> None:
    """Refuses a plan whose words, length or start its profile and its model cannot have."""
    _refuse(plan, _of_words_and_length(plan, profile))
    if plan.training.start == MOMENTS:
        _refuse(plan, _of_moments(plan, profile, model))
    elif plan.training.start == PUBLIC or plan.training.vectors or model.needs_public:
        problem = f"cannot be public for {plan.model.name}, which is no table of topics"
        require(model.starts_public, "[training]", "start", PUBLIC, problem)
        problem = "cannot be plain for a decoder through word vectors"
        require(plan.training.start != PLAIN, "[training]", "start", PLAIN, problem)
        known = plan.training.vectors == GLOVE  # a file's or a folder's vectors are looked at when they are read
        problem = f"holds words apart from the embeddings that {plan.model.name} reads: take their sentence model's (minilm)"
        require(not (known and model.among_embeddings), "[training]", "vectors", GLOVE, problem)
        known = model.among_embeddings and plan.training.vectors == SENTENCE
        problem = f"gives {USUAL_SIZE} numbers to a word, and the embeddings of documents have {model.embedding_size}"
        require(not known or model.embedding_size == USUAL_SIZE, "[training]", "vectors", SENTENCE, problem)


def hidden_documents(plan: Plan, profile: Profile) -> str:
    """Why the coordinator never learns how many documents there are; nothing if it does, from the answer about the words."""
    if profile.budget is not None:
        return f"the budget of profile {profile.name!r} has nothing for"
    if plan.vocabulary.source == "file":
        return "nobody counts where the list of words is public"
    return f"profile {profile.name!r} lets only the parties open" if profile.aggregation.opened_by == "parties" else ""


def _refuse(plan: Plan, faults: Iterator[_Fault]) -> None:
    """Refuses the first of the faults that is there."""
    for there, name, problem in faults:
        if there:
            section, _, setting = name.partition(".")
            chosen = getattr(plan, section)
            value = chosen.settings[setting] if section == "model" else getattr(chosen, setting)
            require(False, f"[{section}]", setting, value, problem)


def _of_training(plan: Plan) -> Iterator[_Fault]:
    """Settings of a start, or of an earlier model, that mean nothing beside each other."""
    one = plan.training
    documents = "must be from 0, which does not say it, to the number of documents"
    yield one.persons > (one.documents or 10**9), "training.persons", documents
    beside_plain = f"means nothing beside start = {one.start}: only a public start reads vectors, and one by moments"
    yield bool(one.vectors) and one.start == PLAIN, "training.vectors", beside_plain
    without = "is for a start by moments, which can do without vectors (--start moments)"
    yield one.vectors == NO_VECTORS and one.start != MOMENTS, "training.vectors", without
    started, earlier = one.start in (PUBLIC, MOMENTS) or bool(one.vectors), bool(one.continue_from)
    beside_earlier = f"cannot be {one.start or PUBLIC} beside continue_from: the topics are those of the earlier model"
    yield started and earlier, "training.start", beside_earlier
    alone = "means nothing without start = moments, which asks a question of its own"
    yield bool(one.start_share) and one.start != MOMENTS, "training.start_share", alone
    weightless = "means nothing without continue_from, the model to go on from"
    yield not earlier and one.earlier_weight != 1, "training.earlier_weight", weightless


def _of_privacy(plan: Plan, budget: Budget | None) -> Iterator[_Fault]:
    """A unit that the profile does not protect, and numbers of a budget where nothing is spent."""
    asked, by_word = plan.privacy.unit, budget is not None and budget.unit is Unit.WORD
    yield budget is None and bool(asked), "privacy.unit", "means nothing, because no budget protects it"
    words = f"cannot be had, because profile {plan.profile} adds noise to single word occurrences, and hides no whole {asked}"
    yield by_word and asked not in ("", "word"), "privacy.unit", words
    whole = f"cannot be had, because profile {plan.profile} protects whole documents, or whole persons"
    yield not by_word and asked == "word", "privacy.unit", whole
    profile = Path(plan.profile).stem
    unspent = f"means nothing, because profile {profile} has no privacy budget (--profile dp-distributed has one)"
    for name in NUMBERS:
        yield budget is None and bool(getattr(plan.privacy, name)), f"privacy.{name}", unspent


def _unpaid(plan: Plan, budget: Budget, model: TopicModel) -> Iterator[_Fault]:
    """Settings that a budget of this unit does not cover."""
    device = plan.model.settings.get("device", "auto")
    any_order = "adds in an order that nobody fixes, so that one row may change others: a budget needs cpu"
    yield device not in ("auto", "cpu"), "model.device", any_order
    runs, by_word = plan.tokeniser.ngrams, budget.unit is Unit.WORD
    slots = f"puts one word into up to {runs * (runs + 1) // 2} slots, and a budget of words pays for one"
    yield by_word and runs != 1, "tokeniser.ngrams", slots
    if by_word and model.embedding_size > 0:
        raise EmbeddingsWithoutNoise(plan.model.name, Path(plan.profile).stem)
    together = "lets an embedding depend on other documents, and a budget needs it not to (leave it at 1)"
    yield plan.embeddings.batch != 1, "embeddings.batch", together
    asking = "asks the documents, and no budget pays for it under this profile"
    yield plan.training.stop == "held_out", "training.stop", asking


def _of_words_and_length(plan: Plan, profile: Profile) -> Iterator[_Fault]:
    """Words and a length of the training that the profile cannot have."""
    own, allowed, earlier = plan.vocabulary, profile.vocabularies, plan.training.continue_from
    beside = "cannot be set beside continue_from of [training]: the words are those of the earlier model"
    yield bool(earlier) and own.source != "file", "vocabulary.source", beside
    yield bool(earlier) and own.file != earlier, "vocabulary.file", beside
    unsound = f"is not sound under profile {profile.name!r}, which allows {', '.join(allowed)}"
    yield own.source not in allowed, "vocabulary.source", unsound
    tells = own.source == BLIND and profile.budget is None and profile.aggregation.opened_by == "coordinator"
    untold = "needs a blind list whose exact sums the coordinator opens: nobody else has all words and a use for them"
    yield own.told_at_the_end and not tells, "vocabulary.told_at_the_end", untold
    by_person = profile.budget is not None and plan.privacy.unit in ("", Unit.PERSON.value)  # open: as the documents say
    nobodys = "means nothing, because the budget is not each person's"
    yield bool(plan.training.persons) and not by_person, "training.persons", nobodys
    hidden = hidden_documents(plan, profile)
    uncounted = f"needs the number of documents of all parties, which {hidden}: give rounds instead"
    yield bool(plan.training.epochs and hidden), "training.epochs", uncounted


def _of_moments(plan: Plan, profile: Profile, model: TopicModel) -> Iterator[_Fault]:
    """A question of pairs of words before the training where nobody could ask or use it."""
    name, start = plan.model.name, "training.start"
    yield name == Moments.name, start, "is what the model moments does by itself: leave the start out"
    no_table = f"cannot be had for {name}, which is no table of topics"
    yield not model.starts_public or model.needs_public or model.among_embeddings, start, no_table
    by_parties = f"cannot be had under {profile.name}, where only the parties open sums: take --start public"
    yield profile.aggregation.opened_by == "parties", start, by_parties
    by_word = f"cannot be had under {profile.name}, which adds noise to single words and not to sums"
    yield plan.privacy.unit == "word", start, by_word
    check_pairs(plan.most_words)
    unspent = "means nothing, because no budget is spent"
    yield profile.budget is None and bool(plan.training.start_share), "training.start_share", unspent
