"""Reads a plan from TOML and the command line, completes it by its profile and its model, and checks it as a whole.

The sections of a plan are in `schema.py`. No document is read here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from securetm.contracts import Budget, Profile, Unit
from securetm.corpus.sentence_models import USUAL_DIGEST, USUAL_SIZE, find_sentence_model, is_usual
from securetm.errors import NotFound
from securetm.models.model_errors import EmbeddingsWithoutNoise
from securetm.plans.profiles import ProfileFile, make_model, model_class, rounds_under, totals_under, words_under
from securetm.plans.schema import (
    MOMENTS,
    MOST_ROUNDS_OF_EPOCHS,
    NUMBERS,
    USUAL_LANGUAGE,
    WITH_PRIVATE,
    CorpusChoice,
    ModelChoice,
    Plan,
    PrivacyChoice,
    TrainingChoice,
    VocabularyChoice,
    hides_documents,
    usual_model,
)
from securetm.plans.start import asked_first, most_words, rounds_rule, with_start, with_vectors
from securetm.settings import SETTING_OF, Mistakes, from_table, placed, read_toml, require

T = TypeVar("T")
_OF_THE_START = ("start", "start_share", "vectors", "vectors_digest")
_NOT_TO_GO_ON = tuple(f"training.{name}" for name in ("continue_from", "earlier_weight", *_OF_THE_START))
_ROLES = ("text", "label", "party", "date", "person", "embedding", "id")  # of columns


def read_plan(path: Path | None, overrides: Mapping[str, Any]) -> Plan:
    """The plan in a file (or the default plan), with overrides such as {"training.rounds": 10}, checked as a whole."""
    tables = read_toml(path) if path else {}
    for name, value in overrides.items():
        _place(tables, name.split("."), value)
    _deal_out_to_all(tables)
    with placed(path, overrides):
        plan = plan_from_tables(tables, str(path.name) if path else "the command line")
        for name, value in tables.get(
            "privacy", {}
        ).items():  # inside a plan, 0 means the profile's number: nobody may write it
            problem = "must be above 0; leave it out to keep what the profile says"
            require(name not in NUMBERS or float(value) > 0, "[privacy]", name, 0, problem)
        _check_corpus_settings(tables.get("corpus", {}))
    return plan


def plan_from_tables(tables: Mapping[str, Any], where: str) -> Plan:
    """A plan from tables as they stand in TOML or in a run's own record. The mistakes of all its sections are told at once."""
    known, mistakes = {part.name: part.default for part in dataclasses.fields(Plan)}, Mistakes()
    for name in tables:
        with mistakes.kept():
            if name not in known:
                raise NotFound(f"{SETTING_OF}{where}", name, tuple(sorted(known)))
    sections = dict[str, Any]()
    for name, usual in known.items():
        with mistakes.kept():
            if dataclasses.is_dataclass(usual) and name != "model":
                sections[name] = _section(type(usual), tables, name)
    plan = Plan()
    with mistakes.kept():
        plan = from_table(Plan, {name: value for name, value in tables.items() if name in ("seed", "profile")}, where)
    budget = None
    with mistakes.kept():
        budget = ProfileFile.read(str(tables.get("profile", plan.profile))).profile().budget
    with mistakes.kept():
        sections["model"] = _model_choice(tables.get("model", {}), budget)
        make_model(sections["model"].name, sections["model"].settings)
    mistakes.tell()
    plan = _with_words(dataclasses.replace(plan, **sections), tables.get("vocabulary", {}))
    return _resolved(plan, where, tables.get("training", {}), tables.get("model", {}))


def unusual_settings(plan: Plan) -> dict[str, Any]:
    """The settings of the model that differ from what a plan has that names only the model."""
    form = {name: value for name, value in plan.model.settings.items() if name == "form"}
    budget = ProfileFile.read(plan.profile).profile().budget
    usual = make_model(plan.model.name, _model_choice({"name": plan.model.name, **form}, budget).settings)
    return {name: value for name, value in plan.model.settings.items() if getattr(usual, name, None) != value}


def settings_to_go_on(plan: Plan, *, own_corpus: bool) -> dict[str, Any]:
    """The settings of a plan, by dotted name, for a run that goes on from its model. Words come with the model."""
    found: dict[str, Any] = {"profile": plan.profile, "seed": plan.seed, "model.name": plan.model.name}
    found |= {f"model.settings.{name}": value for name, value in plan.model.settings.items()}
    for section in ("tokeniser", "training", "privacy", "federation", *(() if own_corpus else ("corpus",))):
        chosen = getattr(plan, section)
        usual = type(chosen)()
        found |= {f"{section}.{name}": value for name, value in vars(chosen).items() if value != getattr(usual, name)}
    return {name: value for name, value in found.items() if name not in _NOT_TO_GO_ON}


def _place(tables: dict[str, Any], path: list[str], value: Any) -> None:
    if len(path) == 1:
        tables[path[0]] = value
    else:
        inner = tables.setdefault(path[0], {})
        require(isinstance(inner, dict), "the plan", path[0], inner, f"must be a table [{path[0]}]")
        _place(inner, path[1:], value)


def _deal_out_to_all(tables: dict[str, Any]) -> None:
    """A simulation whose plan says only how many parties take part deals its documents out to as many."""
    federation, corpus = tables.get("federation", {}), tables.get("corpus", {})
    if not isinstance(federation, Mapping) or not isinstance(corpus, Mapping):
        return
    parties = federation.get("parties")
    if parties and isinstance(parties, int) and corpus.get("partition", CorpusChoice.partition) != "column":
        tables["corpus"] = {"parties": parties, **corpus}


def _section(cls: type[T], tables: Mapping[str, Any], name: str) -> T:
    table = tables.get(name, {})
    require(isinstance(table, Mapping), "the plan", name, table, f"must be a table [{name}]")
    return from_table(cls, table, f"[{name}]")


# ---- what a plan leaves to its model and its profile -----------------------------------------------------------------


def _model_choice(table: Any, budget: Budget | None) -> ModelChoice:
    require(isinstance(table, Mapping), "the plan", "model", table, "must be a table [model]")
    nested = table.get("settings", {})
    require(isinstance(nested, Mapping), "[model]", "settings", nested, "must be a table [model.settings]")
    flat = {name: value for name, value in table.items() if name not in ("name", "settings")}
    given = table.get("name", "")
    require(isinstance(given, str), "[model]", "name", given, "must be a text")
    name = str(table.get("name", usual_model(budget)))
    kind = model_class(name, {**nested, **flat})
    usual = {**kind.federated_defaults, **(kind.budget_defaults if hides_documents(budget) else {})} if kind else {}
    return ModelChoice(name, {**usual, **nested, **flat})


def _with_length(plan: Plan, profile: Profile, given: Mapping[str, Any]) -> TrainingChoice:
    """The [training] section, with as many epochs or rounds as the model needs where the plan does not say."""
    chosen, kind = plan.training, model_class(plan.model.name, plan.model.settings)
    hidden = _documents_hidden_by(plan, profile)
    by_person = profile.budget is not None and plan.privacy.unit in ("", Unit.PERSON.value)  # open: as the documents say
    meaningless = "means nothing, because the budget is not each person's"
    require(by_person or not chosen.persons, "[training]", "persons", chosen.persons, meaningless)
    problem = f"needs the number of documents of all parties, which {hidden}: give rounds instead"
    require(not (chosen.epochs and hidden), "[training]", "epochs", chosen.epochs, problem)
    if kind is not None and kind.most_rounds:
        return dataclasses.replace(chosen, rounds=kind.most_rounds, epochs=0.0)
    if kind is None or "rounds" in given:
        return chosen
    if "epochs" not in given and not hidden:
        chosen = dataclasses.replace(chosen, epochs=kind.federated_epochs)
    if chosen.epochs:
        return dataclasses.replace(chosen, rounds=MOST_ROUNDS_OF_EPOCHS)
    few = kind.budget_rounds if hides_documents(profile.budget) else 0
    if few and chosen.units:
        first, words = asked_first(chosen), most_words(plan)
        topics, parties = int(plan.model.settings["n_topics"]), plan.federation.in_a_round
        few = rounds_under(profile, chosen.units, topics, words, first, parties=parties, rule=rounds_rule(chosen))
    return dataclasses.replace(chosen, rounds=few or kind.federated_rounds)


def _with_totals(plan: Plan, profile: Profile, given: Mapping[str, Any]) -> ModelChoice:
    """The model with the weight of words' totals by the rule, if documents are given. Topics of moments come with totals."""
    chosen, settings = plan.training, plan.model.settings
    by_rule = "totals" in settings and "totals" not in {**given, **given.get("settings", {})}
    if not by_rule or not hides_documents(profile.budget):
        return plan.model
    if not chosen.units:
        unknown = 0.0 if chosen.start == MOMENTS else settings["totals"]
        return dataclasses.replace(plan.model, settings={**settings, "totals": unknown})
    weight = totals_under(
        profile,
        chosen.units,
        int(settings["n_topics"]),
        most_words(plan),
        asked_first(chosen),
        plain=chosen.start == "plain",
        parties=plan.federation.in_a_round,
    )
    return dataclasses.replace(plan.model, settings={**settings, "totals": weight})


def _documents_hidden_by(plan: Plan, profile: Profile) -> str:
    """Why the coordinator never learns how many documents there are; nothing if it does, from the answer about the words."""
    if profile.budget is not None:
        return f"the budget of profile {profile.name!r} has nothing for"
    if plan.vocabulary.source == "file":
        return "nobody counts where the list of words is public"
    return f"profile {profile.name!r} lets only the parties open" if profile.aggregation.opened_by == "parties" else ""


def _with_words(plan: Plan, given: Mapping[str, Any]) -> Plan:
    """The plan with as many words as the rule says, where a budget leaves them open. A list in a file is kept whole."""
    kind, own = model_class(plan.model.name, plan.model.settings), plan.vocabulary
    open_to_rule = "max_words" not in given and not (own.file and own.language is None and not own.file.endswith(WITH_PRIVATE))
    if not (open_to_rule and plan.training.units and kind is not None and kind.budget_rounds):
        return plan
    profile = plan.profile_in(ProfileFile.read(plan.profile))
    if not hides_documents(profile.budget):
        return plan
    words = words_under(profile, plan.training.units, parties=plan.federation.in_a_round)
    return dataclasses.replace(plan, vocabulary=dataclasses.replace(own, max_words=words))


def _resolved(plan: Plan, where: str, given: Mapping[str, Any], model: Mapping[str, Any]) -> Plan:
    """The plan with every setting that it leaves to its profile and its model, or a refusal. The tables are as written."""
    _check_own(plan, where)
    file = ProfileFile.read(plan.profile)
    budget = file.profile().budget
    _check_privacy(plan, budget)
    plan = dataclasses.replace(plan, privacy=_with_unit(plan, budget))
    profile = plan.profile_in(file)
    _check_under_budget(plan, profile.budget, where)
    plan = dataclasses.replace(plan, **_with_sentence_model(plan))
    plan = dataclasses.replace(plan, vocabulary=_with_source(plan, profile), model=_with_all_settings(plan, profile))
    plan.vocabulary.public_words(plan.tokeniser.make())
    plan = dataclasses.replace(plan, training=with_start(plan, profile))
    plan = dataclasses.replace(plan, training=_with_length(plan, profile, given), model=_with_totals(plan, profile, model))
    return dataclasses.replace(plan, training=with_vectors(plan, profile), privacy=_with_epsilon(plan, profile.budget, given))


def _with_sentence_model(plan: Plan) -> dict[str, Any]:
    """The digest of the sentence model's weights and the size of its embeddings, where the model reads what it makes."""
    chosen, read = plan.embeddings, make_model(plan.model.name, plan.model.settings).embedding_size
    if not read or not chosen.model or plan.corpus.embedding:
        return {}
    asked = read if "embedding_size" in plan.model.settings else 0
    if is_usual(chosen.model):
        weights, size = USUAL_DIGEST, USUAL_SIZE
    elif chosen.digest and asked:  # a role that embeds nothing need not have the model
        weights, size = chosen.digest, asked
    else:
        found = find_sentence_model(chosen.model)
        weights, size = found.digest, found.size
    digest = chosen.digest or weights
    problem = f"is not the size of embeddings by {chosen.model}, which is {size}"
    require(asked in (0, size), f"[model] {plan.model.name}", "embedding_size", asked, problem)
    settings = {**plan.model.settings, "embedding_size": size}
    return {
        "embeddings": dataclasses.replace(chosen, digest=digest),
        "model": dataclasses.replace(plan.model, settings=settings),
    }


def _with_unit(plan: Plan, budget: Budget | None) -> PrivacyChoice:
    """The person where a column of persons is named and the profile has a budget, unless the plan says otherwise."""
    named = "person" if plan.corpus.person and budget is not None else ""
    by_word = budget is not None and budget.unit is Unit.WORD
    return dataclasses.replace(plan.privacy, unit="word" if by_word else plan.privacy.unit or named)


def _with_epsilon(plan: Plan, budget: Budget | None, given: Mapping[str, Any]) -> PrivacyChoice:
    """The profile's budget as that of all rounds, where their number and the noise are left open: no round is cut off."""
    chosen, kind = plan.privacy, model_class(plan.model.name, plan.model.settings)
    few = kind is not None and (kind.budget_rounds or kind.most_rounds)
    if budget is None or not hides_documents(budget) or not few or "rounds" in given or chosen.epsilon or chosen.noise:
        return chosen
    return dataclasses.replace(chosen, epsilon=budget.epsilon)


def _with_source(plan: Plan, profile: Profile) -> VocabularyChoice:
    """The source of the vocabulary: where the plan names none, that of its list, or else the first that the profile allows.

    A profile that takes public lists only has the frequent words of a language where the plan names no list.
    """
    given = plan.vocabulary
    if earlier := plan.training.continue_from:
        problem = "cannot be set beside continue_from of [training]: the words are those of the earlier model"
        require(given.source in ("", "file"), "[vocabulary]", "source", given.source, problem)
        require(given.file in ("", earlier), "[vocabulary]", "file", given.file, problem)
        given = dataclasses.replace(given, source="file", file=earlier)
    listed, both = given.file.removesuffix(WITH_PRIVATE), given.file.endswith(WITH_PRIVATE)
    source = given.source or ("joint" if both else "file" if listed else profile.vocabularies[0])
    problem = f"adds words of the parties to the list, and the source is {source}: leave the source out"
    require(source == "joint" or not both, "[vocabulary]", "file", given.file, problem)
    problem = f"adds words of the parties, which profile {profile.name!r} does not take: leave out {WITH_PRIVATE}"
    require(source in profile.vocabularies or not both, "[vocabulary]", "file", given.file, problem)
    choice = dataclasses.replace(given, source=source, file=listed or USUAL_LANGUAGE * (source == "file"))
    problem = f"is not sound under profile {profile.name!r}, which allows {', '.join(profile.vocabularies)}"
    require(source in profile.vocabularies, "[vocabulary]", "source", source, problem)
    return choice


def _settings_of(choice: ModelChoice) -> dict[str, Any]:
    """All settings of the model, those with their default too; numbers that came as texts are numbers here."""
    model = make_model(choice.name, choice.settings)
    return {f.name: getattr(model, f.name) for f in dataclasses.fields(model) if f.init}  # type: ignore[arg-type]


def _with_all_settings(plan: Plan, profile: Profile) -> ModelChoice:
    """Every setting of the model, those with their default too; a budget needs arithmetic in a fixed order."""
    settings = _settings_of(plan.model)
    if profile.budget is not None and settings.get("device") == "auto":
        settings["device"] = "cpu"
    return ModelChoice(plan.model.name, settings)


# ---- checks ----------------------------------------------------------------------------------------------------------


def _check_own(plan: Plan, where: str) -> None:
    """Checks the seed and the files that the plan names."""
    require(0 <= plan.seed < 2**63, where, "seed", plan.seed, "must be at least 0 and below 2^63")
    plan.tokeniser.make()
    plan.tokeniser.listed()


def _check_privacy(plan: Plan, budget: Budget | None) -> None:
    """Refuses a unit that the profile does not protect, and numbers of a budget where nothing is spent."""
    asked = plan.privacy.unit
    require(budget is not None or not asked, "[privacy]", "unit", asked, "means nothing, because no budget protects it")
    by_word = budget is not None and budget.unit is Unit.WORD
    problem = f"cannot be had, because profile {plan.profile} adds noise to single word occurrences, and hides no whole {asked}"
    require(not by_word or asked in ("", "word"), "[privacy]", "unit", asked, problem)
    problem = f"cannot be had, because profile {plan.profile} protects whole documents, or whole persons"
    require(by_word or asked != "word", "[privacy]", "unit", asked, problem)
    profile = Path(plan.profile).stem
    problem = f"means nothing, because profile {profile} has no privacy budget (--profile dp-distributed has one)"
    for name in NUMBERS:
        require(budget is not None or not getattr(plan.privacy, name), "[privacy]", name, getattr(plan.privacy, name), problem)


def _check_under_budget(plan: Plan, budget: Budget | None, where: str) -> None:
    """Refuses settings that a budget of this unit does not cover."""
    paid = budget is not None
    by_loss = plan.training.stop == "held_out"
    device = plan.model.settings.get("device", "auto")
    parallel = "adds in an order that nobody fixes, so that one row may change others: a budget needs cpu"
    require(not paid or device in ("auto", "cpu"), where, "model.device", device, parallel)
    runs, by_word = plan.tokeniser.ngrams, budget is not None and budget.unit is Unit.WORD
    problem = f"puts one word into up to {runs * (runs + 1) // 2} slots, and a budget of words pays for one"
    require(not by_word or runs == 1, where, "tokeniser.ngrams", runs, problem)
    if by_word and make_model(plan.model.name, plan.model.settings).embedding_size > 0:
        raise EmbeddingsWithoutNoise(plan.model.name, Path(plan.profile).stem)
    together = "lets an embedding depend on other documents, and a budget needs it not to (leave it at 1)"
    require(not paid or plan.embeddings.batch == 1, "[embeddings]", "batch", plan.embeddings.batch, together)
    problem = "asks the documents, and no budget pays for it under this profile"
    require(not (paid and by_loss), where, "training.stop", plan.training.stop, problem)


def _check_corpus_settings(given: Mapping[str, Any]) -> None:
    """Refuses a setting of the corpus that would have no effect."""
    source, partition = given.get("source", CorpusChoice.source), given.get("partition", CorpusChoice.partition)
    idle: dict[str, str] = {}
    if source == CorpusChoice.source:
        problem = "means nothing for docstrings, of which each package is a party (--corpus FILE)"
        idle = dict.fromkeys((*_ROLES, "partition", "alpha"), problem)
    elif partition == "column":
        idle["parties"] = "means nothing with partition = column: each name in the column is a party (--partition equal)"
    if partition != "dirichlet":
        idle.setdefault("alpha", "means nothing without partition = dirichlet")
    for name, problem in idle.items():
        require(name not in given, "[corpus]", name, given.get(name), problem)
