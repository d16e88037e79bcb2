"""The plan of a run: what all parties agree on, and for a simulation where the documents come from. It runs nothing.

A plan is read from TOML, overridden from the command line, checked as a whole, and stored as resolved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from securetm.contracts import Budget, Profile, Unit
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import BadSetting, NotFound
from securetm.profile_errors import VocabularyNotAllowed
from securetm.profiles import VOCABULARIES, ProfileFile, make_model, model_class
from securetm.toml_settings import from_table, read_toml, require

T = TypeVar("T")
_ROLES = ("text", "label", "party", "date", "person", "embedding")  # of columns
STOPS = ("rounds", "weights", "held_out")
DEFAULT_MODEL = "lda"
PUBLIC_LIST = "name a public list of words, one a line (--vocabulary FILE)"
PARTITIONS = ("column", "equal", "dirichlet")


def _unread(problem: OSError | UnicodeDecodeError) -> str:
    """What is wrong with a list of words, without quoting what is in it."""
    if isinstance(problem, OSError):
        return f"cannot be read: {problem.strerror or type(problem).__name__}"
    return "is not UTF-8 (convert it: iconv -f latin1 -t utf-8 OLD > NEW)"


@dataclass(frozen=True)
class CorpusChoice:
    """Where the documents of a simulation come from, and who holds which."""

    source: str = "docstrings"  # a file, a folder of .txt, or docstrings of installed packages
    text: str = ""  # the column of the text; nothing: it is called `text`
    label: str = ""  # the column of the label
    party: str = ""  # the column of who holds the document
    date: str = ""  # the column of the date
    person: str = ""  # the column of whose document it is; a budget then protects persons
    embedding: str = ""  # the column of the embedding
    partition: str = "equal"  # who holds what: column, equal or dirichlet
    parties: int = 5  # where documents are dealt out
    alpha: float = 1.0  # of dirichlet: the smaller, the more the parties differ in their labels

    def __post_init__(self) -> None:
        """Refuses what cannot be partitioned."""
        require(self.partition in PARTITIONS, "[corpus]", "partition", self.partition, known=tuple(PARTITIONS))
        require(self.parties >= 1, "[corpus]", "parties", self.parties, "must be at least 1")
        require(self.alpha > 0, "[corpus]", "alpha", self.alpha, "must be above 0")


@dataclass(frozen=True)
class TokeniserChoice:
    """How texts become words; all parties do it alike."""

    lower: bool = True  # every letter becomes a small one
    stop_words: str = "english"  # english, none, or a file with one word a line
    min_length: int = 3  # letters of the shortest word that is kept
    max_length: int = 40  # letters of the longest word that is kept
    numbers: bool = False  # whether numbers are words
    ngrams: int = 1  # words in the longest phrase that counts as one word
    pattern: str = ""  # a regular expression for words; nothing: the usual one

    def listed(self) -> str | tuple[str, ...]:
        """The stop words themselves where they are in a file, else which of the known lists it is."""
        if self.stop_words in ("english", "none"):
            return self.stop_words
        try:
            return tuple(sorted(set(Path(self.stop_words).read_text("utf-8").split())))
        except (OSError, UnicodeDecodeError) as problem:
            raise BadSetting("[tokeniser]", "stop_words", self.stop_words, _unread(problem)) from problem

    def make(self) -> Tokeniser:
        """The tokeniser of this plan; `stop_words` is english, none, or a file with one word a line."""
        listed = self.stop_words if self.stop_words in ("english", "none") else Path(self.stop_words)
        settings = {name: getattr(self, name) for name in ("lower", "min_length", "max_length", "numbers", "ngrams")}
        return Tokeniser(stop_words=cast(Any, listed), pattern=self.pattern or None, **settings)


@dataclass(frozen=True)
class VocabularyChoice:
    """How the parties come to one list of words.

    `union`: every party sends its words. `joint`: the union is found through a sum, so nobody learns whose words they are.
    `file`: a public list. Without a source, the first that the profile allows.
    """

    source: str = ""  # union, joint or file; nothing: the first that the profile allows
    file: str = ""  # a public list, one word a line
    max_words: int = 2000  # the most frequent ones are kept
    most_candidates: int = 100_000  # words of all parties together that `joint` has room for, at 144 bytes from every party
    min_documents: int = 5  # that a word is in at least
    max_share: float = 0.5  # of all documents that a word is in at most

    def __post_init__(self) -> None:
        """Refuses a list that could not be made."""
        known = self.source in ("", *VOCABULARIES)
        require(known, "[vocabulary]", "source", self.source, known=tuple(VOCABULARIES))
        room = 2 <= self.most_candidates <= 10_000_000
        require(room, "[vocabulary]", "most_candidates", self.most_candidates, "must be from 2 to 10,000,000")
        require(self.source != "file" or bool(self.file), "[vocabulary]", "file", None, PUBLIC_LIST)
        require(2 <= self.max_words <= 1_000_000, "[vocabulary]", "max_words", self.max_words, "must be from 2 to 1,000,000")
        require(self.min_documents >= 1, "[vocabulary]", "min_documents", self.min_documents, "must be at least 1")
        require(0 < self.max_share <= 1, "[vocabulary]", "max_share", self.max_share, "must be above 0 and at most 1")

    def public_words(self) -> tuple[str, ...] | None:
        """The words of the public file, alphabetically, or None where the parties unite their own."""
        if self.source != "file":
            return None
        try:
            lines = Path(self.file).read_text("utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as problem:
            raise BadSetting("[vocabulary]", "file", self.file, _unread(problem)) from problem
        words = tuple(sorted({line.strip() for line in lines} - {""}))  # also of an editor that ends lines in two characters
        require(len(words) >= 2, "[vocabulary]", "file", self.file, "must hold at least two words, one a line, in UTF-8")
        return words


@dataclass(frozen=True)
class TrainingChoice:
    """When training ends: after so many rounds, or earlier when weights or held-out loss no longer move."""

    rounds: int = 1000  # at most; nothing: what the model says for a federation
    stop: str = "rounds"  # end by rounds, weights or held_out
    every: int = 50  # rounds between two looks at weights or held-out words
    tolerance: float = 1e-3  # a smaller change counts as none
    patience: int = 3  # looks without a change before training ends
    held_out: float = 0.1  # share of the documents that is not trained on

    def __post_init__(self) -> None:
        """Refuses what would never begin or never end."""
        require(1 <= self.rounds <= 10_000_000, "[training]", "rounds", self.rounds, "must be from 1 to 10,000,000")
        require(self.stop in STOPS, "[training]", "stop", self.stop, known=tuple(STOPS))
        require(self.every >= 1, "[training]", "every", self.every, "must be at least 1")
        require(self.tolerance >= 0, "[training]", "tolerance", self.tolerance, "must not be negative")
        require(self.patience >= 1, "[training]", "patience", self.patience, "must be at least 1")
        require(0 < self.held_out < 1, "[training]", "held_out", self.held_out, "must lie between 0 and 1")


@dataclass(frozen=True)
class ModelChoice:
    """Which topic model, and what is set of it."""

    name: str = DEFAULT_MODEL
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PrivacyChoice:
    """What a plan sets of a profile that has a privacy budget; 0 or nothing leaves it as the profile says.

    Where `epsilon` is given and `noise` is not, the noise is the least with which the budget lasts for all rounds.
    """

    unit: str = ""  # document or person; person where the corpus names persons, unless said otherwise; word by profile only
    epsilon: float = 0.0  # the budget
    delta: float = 0.0  # the probability that the promise may fail
    noise: float = 0.0  # noise multiplier: deviation of the noise over the bound on a row
    words: float = 0.0  # noise multiplier of the selection of words
    rate: float = 0.0  # with which each document takes part in a round
    radius: float = 0.0  # of the clip

    def __post_init__(self) -> None:
        """Refuses what no profile could mean."""
        require(self.unit in ("", *_UNITS), "[privacy]", "unit", self.unit, known=tuple(_UNITS))
        for name in _NUMBERS:
            value = getattr(self, name)
            require(0 <= value < float("inf"), "[privacy]", name, value, "must be a finite number that is not negative")

    def changed(self) -> dict[str, float]:
        """The numbers of the profile that this plan replaces, by their names there."""
        named = {"noise": "noise_multiplier"}
        return {named.get(name, name): getattr(self, name) for name in _NUMBERS if getattr(self, name)}


_NUMBERS = ("epsilon", "delta", "noise", "words", "rate", "radius")
_UNITS = {"document": Unit.DOCUMENT, "person": Unit.PERSON, "word": Unit.WORD}


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run."""

    seed: int = 0  # public, of batches and model noise
    profile: str = "masked"  # a name, or a file that ends in .toml
    corpus: CorpusChoice = CorpusChoice()
    tokeniser: TokeniserChoice = TokeniserChoice()
    vocabulary: VocabularyChoice = VocabularyChoice()
    model: ModelChoice = ModelChoice()
    training: TrainingChoice = TrainingChoice()
    privacy: PrivacyChoice = PrivacyChoice()

    def profile_in(self, file: ProfileFile) -> Profile:
        """The profile in that file with the numbers that this plan sets."""
        return file.profile(self.privacy.changed(), _UNITS[self.privacy.unit or "document"])

    def unusual(self) -> dict[str, Any]:
        """The settings of the model that differ from what a plan has that names only the model."""
        form = {name: value for name, value in self.model.settings.items() if name == "form"}
        usual = make_model(self.model.name, _model_choice({"name": self.model.name, **form}).settings)
        return {name: value for name, value in self.model.settings.items() if getattr(usual, name, None) != value}

    def tables(self) -> dict[str, Any]:
        """The plan as resolved: plain tables, ready for JSON."""
        return dataclasses.asdict(self)


def read_plan(path: Path | None, overrides: Mapping[str, Any]) -> Plan:
    """The plan in a file (or the default plan), with overrides such as {"training.rounds": 10}, checked as a whole."""
    tables = read_toml(path) if path else {}
    for name, value in overrides.items():
        _place(tables, name.split("."), value)
    plan = plan_from_tables(tables, str(path.name) if path else "the command line")
    for name in tables.get("privacy", {}):  # who asks for none of something is not given what the profile has instead
        problem = "must be above 0; leave it out to keep what the profile says"
        require(name not in _NUMBERS or getattr(plan.privacy, name) > 0, "[privacy]", name, 0, problem)
    _check_of_use(tables.get("corpus", {}))
    return plan


def _check_of_use(given: Mapping[str, Any]) -> None:
    """Refuses what somebody asks for and nothing would come of, before it is taken for done."""
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


def plan_from_tables(tables: Mapping[str, Any], where: str) -> Plan:
    """A plan from tables as they stand in TOML or in a run's own record."""
    known = {part.name for part in dataclasses.fields(Plan)}
    for name in tables:
        if name not in known:
            raise NotFound(f"setting of {where}", name, tuple(sorted(known)))
    scalars = {name: value for name, value in tables.items() if name in ("seed", "profile")}
    model = _model_choice(tables.get("model", {}))
    plan = dataclasses.replace(
        from_table(Plan, scalars, where),
        corpus=_section(CorpusChoice, tables, "corpus"),
        tokeniser=_section(TokeniserChoice, tables, "tokeniser"),
        vocabulary=_section(VocabularyChoice, tables, "vocabulary"),
        model=model,
        training=_training_choice(tables, model),
        privacy=_section(PrivacyChoice, tables, "privacy"),
    )
    return _checked(plan, where)


def _section(cls: type[T], tables: Mapping[str, Any], name: str) -> T:
    table = tables.get(name, {})
    require(isinstance(table, Mapping), "the plan", name, table, f"must be a table [{name}]")
    return from_table(cls, table, f"[{name}]")


def _model_choice(table: Any) -> ModelChoice:
    require(isinstance(table, Mapping), "the plan", "model", table, "must be a table [model]")
    nested = table.get("settings", {})
    require(isinstance(nested, Mapping), "[model]", "settings", nested, "must be a table [model.settings]")
    flat = {name: value for name, value in table.items() if name not in ("name", "settings")}
    given = table.get("name", "")
    require(isinstance(given, str), "[model]", "name", given, "must be a text")
    name = str(table.get("name", DEFAULT_MODEL))
    kind = model_class(name, {**nested, **flat})
    return ModelChoice(name, {**(kind.federated_defaults if kind else {}), **nested, **flat})


def _training_choice(tables: Mapping[str, Any], model: ModelChoice) -> TrainingChoice:
    """As many rounds as that model needs, where the plan does not say."""
    chosen, kind = _section(TrainingChoice, tables, "training"), model_class(model.name, model.settings)
    if kind is None or "rounds" in tables.get("training", {}):
        return chosen
    return dataclasses.replace(chosen, rounds=kind.federated_rounds)


def _checked(plan: Plan, where: str) -> Plan:
    require(0 <= plan.seed < 2**63, where, "seed", plan.seed, "must be at least 0 and below 2^63")
    plan.tokeniser.make()
    plan.tokeniser.listed()
    plan.vocabulary.public_words()
    file = ProfileFile.read(plan.profile)
    budget = file.profile().budget
    plan = dataclasses.replace(plan, privacy=_who_is_protected(plan, budget))
    _check_has_budget(plan, budget)
    profile = plan.profile_in(file)
    _check_budgeted(plan, profile, where)
    source = plan.vocabulary.source or profile.vocabularies[0]
    plan = dataclasses.replace(plan, vocabulary=dataclasses.replace(plan.vocabulary, source=source))
    if source not in profile.vocabularies:
        raise VocabularyNotAllowed(plan.vocabulary.source, profile.name, profile.vocabularies)
    settings = make_model(plan.model.name, plan.model.settings)
    resolved = {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings) if f.init}  # type: ignore[arg-type]
    if profile.budget is not None and resolved.get("device") == "auto":
        resolved["device"] = "cpu"
    return dataclasses.replace(plan, model=ModelChoice(plan.model.name, resolved))


def _who_is_protected(plan: Plan, budget: Budget | None) -> PrivacyChoice:
    """The person where a column of persons is named and the profile has a budget, unless the plan says otherwise."""
    asked = plan.privacy.unit
    require(budget is not None or not asked, "[privacy]", "unit", asked, "means nothing, because no budget protects it")
    by_word = budget is not None and budget.unit is Unit.WORD
    problem = f"cannot be had, because profile {plan.profile} adds noise to single word occurrences, and hides no whole {asked}"
    require(not by_word or asked in ("", "word"), "[privacy]", "unit", asked, problem)
    problem = f"cannot be had, because profile {plan.profile} protects whole documents, or whole persons"
    require(by_word or asked != "word", "[privacy]", "unit", asked, problem)
    named = "person" if plan.corpus.person and budget is not None else ""
    return dataclasses.replace(plan.privacy, unit="word" if by_word else asked or named)


def _check_has_budget(plan: Plan, budget: Budget | None) -> None:
    """Numbers of a budget mean nothing where nothing is spent."""
    profile = Path(plan.profile).stem
    problem = f"means nothing, because profile {profile} has no privacy budget (--profile dp-distributed has one)"
    for name in _NUMBERS:
        require(budget is not None or not getattr(plan.privacy, name), "[privacy]", name, getattr(plan.privacy, name), problem)


def _check_budgeted(plan: Plan, profile: Profile, where: str) -> None:
    budget, paid = profile.budget, profile.budget is not None
    by_loss = plan.training.stop == "held_out"
    device = plan.model.settings.get("device", "auto")
    parallel = "adds in an order that nobody fixes, so that one row may change others: a budget needs cpu"
    require(not paid or device in ("auto", "cpu"), where, "model.device", device, parallel)
    runs, by_word = plan.tokeniser.ngrams, budget is not None and budget.unit is Unit.WORD
    problem = f"puts one word into up to {runs * (runs + 1) // 2} slots, and a budget of words pays for one"
    require(not by_word or runs == 1, where, "tokeniser.ngrams", runs, problem)
    problem = "asks the documents, and no budget pays for it under this profile"
    require(not (paid and by_loss), where, "training.stop", plan.training.stop, problem)


def _place(tables: dict[str, Any], path: list[str], value: Any) -> None:
    if len(path) == 1:
        tables[path[0]] = value
    else:
        inner = tables.setdefault(path[0], {})
        require(isinstance(inner, dict), "the plan", path[0], inner, f"must be a table [{path[0]}]")
        _place(inner, path[1:], value)
