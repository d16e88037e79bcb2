"""The schema of a plan: every section, every setting, and what each may be. A plan says everything; reading it infers nothing.

A plan is what all parties agree on and, for a simulation, where the documents come from. `recommend.py` makes a whole plan of
one that leaves settings open, and `reading.py` says whether it is sound.
"""

from __future__ import annotations

import dataclasses
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from securetm.contracts import Budget, Profile, Unit
from securetm.contracts.origin import LONGEST_REASON
from securetm.corpus.languages import ENGLISH_CODE, language_code
from securetm.corpus.public_words import frequent_words
from securetm.corpus.text_embeddings import MAX_TOKENS, USUAL, TextEmbedder
from securetm.corpus.tokeniser import (
    ENGLISH_LIST,
    KEPT,
    LATER,
    LONGEST,
    NO_LIST,
    WORDS,
    Tokeniser,
    is_named,
    stop_words_of,
)
from securetm.data_classes import dataclass, field
from securetm.data_homes import COORDINATOR_OUT
from securetm.errors import BadSetting
from securetm.models.stored_model import StoredModel
from securetm.plans.profiles import BLIND, VOCABULARIES, ProfileFile, make_model
from securetm.plans.rules import MOST_START
from securetm.settings import Limit, OwnTable, above, at_least, from_table, one_of, require, shaped, within

STOPS = ("rounds", "weights", "held_out")
PLAIN, PUBLIC, MOMENTS = STARTS = ("plain", "public", "moments")
NO_VECTORS = "none"  # in place of vectors: a start by moments then reads none, wherever some are installed
DEFAULT_MODEL, MODEL_UNDER_BUDGET = "lda", "lda-vi"  # where a plan names none; with a budget of documents or persons
USUAL_LANGUAGE = "english"  # of the public list, where a profile takes no other list and the plan names none
WITH_PRIVATE = "+private"  # behind a public list: words that the parties find together are added to it
PARTITIONS = ("column", "equal", "dirichlet")
ALL = "all"
MODEL_ENDING = ".safetensors"
NUMBERS = ("epsilon", "delta", "noise", "words", "rate", "radius")
UNITS = {"document": Unit.DOCUMENT, "person": Unit.PERSON, "word": Unit.WORD}
_PORTS = 1 << 16


def _is_port(port: int | str) -> bool:
    return isinstance(port, int) and 0 <= port < _PORTS


def _is_address(text: str) -> bool:
    address, _, port = text.rpartition(":")
    return bool(address) and port.isdecimal() and int(port) < _PORTS


_SHARE = Limit(lambda share: 0 < share <= 1, "must be above 0 and at most 1")
_PART = Limit(lambda share: 0 < share < 1, "must lie between 0 and 1")
_SEED = Limit(lambda seed: 0 <= seed < 2**63, "must be at least 0 and below 2^63")
_NUMBER = Limit(lambda number: 0 <= number < float("inf"), "must be a finite number that is not negative")
_DIGEST = shaped("([0-9a-f]{64})?", "64 digits from 0 to f, as sha256sum prints them")
_REASON = Limit(
    lambda reason: not reason or (bool(reason.strip()) and reason.isprintable() and len(reason) <= LONGEST_REASON),
    f"is no reason: a reason is one line of at most {LONGEST_REASON} characters that can be printed",
)
_ADDRESS = Limit(_is_address, "must be an address and a port, such as 0.0.0.0:8470")
_PORT = Limit(_is_port, "must be a port, or 0 for none")
_SCRAPED = Limit(lambda at: _is_port(at) or _is_address(str(at)), "must be a port, an address and a port, or 0 for none")
_SURVIVORS = Limit(lambda least: least == ALL or (isinstance(least, int) and least >= 1), "must be all, or at least 1")
_PATH = Limit(bool, "must name a path")
_EPOCHS = within(0, 1_000_000, "from 0 to 1,000,000; 0 trains for so many rounds instead")
_START_SHARE = within(0, MOST_START, f"from 0 (by the rule) to {MOST_START:g}")
_WEIGHT = within(0, 1_000_000)


def _text_of(path: Path) -> str:
    """The text of a list of words. A device or a pipe might never end, so it is not opened."""
    if stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        raise OSError(0, "it is no ordinary file")
    return path.read_text("utf-8-sig")


def _unread(problem: OSError | ValueError) -> str:
    """Says what is wrong with a list of words, without quoting it."""
    if isinstance(problem, OSError):
        return f"cannot be read: {problem.strerror or type(problem).__name__}"
    if not isinstance(problem, UnicodeDecodeError):
        return "is no path"
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
    id: str = ""  # the column of the document's own id; nothing: a document is named by what it says
    partition: Annotated[str, one_of(*PARTITIONS)] = "equal"  # who holds what: column, equal or dirichlet
    parties: Annotated[int, at_least(1)] = 5  # where documents are dealt out
    alpha: Annotated[float, above(0)] = 1.0  # of dirichlet: the smaller, the more the parties differ in their labels


@dataclass(frozen=True)
class TokeniserChoice:
    """How texts become words; all parties do it alike."""

    lower: bool = True  # every letter becomes a small one
    stop_words: str = ENGLISH_LIST  # a language (english, sl), none, or a file with one word a line
    min_length: int = 3  # letters of the shortest word that is kept
    max_length: int = 40  # letters of the longest word that is kept
    numbers: bool = False  # whether numbers are words
    ngrams: int = 1  # words in the longest phrase that counts as one word
    pattern: str = ""  # a regular expression for words; nothing: the usual one
    longest: int = LONGEST  # words of the longest document; a longer one is refused when it is read
    markup: Annotated[str, one_of(*LATER["markup"])] = KEPT  # of HTML: kept as text, or dropped, with links; entities decoded
    hashtags: Annotated[str, one_of(*LATER["hashtags"])] = WORDS  # of #big_data: its words, the whole, or none
    names: Annotated[str, one_of(*LATER["names"])] = WORDS  # of @anna: its words, the whole, or none
    quotes: Annotated[str, one_of(*LATER["quotes"])] = KEPT  # of earlier mails and posts: kept as text, or dropped

    @property
    def language(self) -> str | None:
        """The code of the language of the stop words; None where they are in a file, or there are none."""
        return language_code(self.stop_words)

    def listed(self) -> str | tuple[str, ...]:
        """Reads the stop words of a file or of another language than English, else returns the name of the list."""
        if self.stop_words == NO_LIST or self.language == ENGLISH_CODE:
            return NO_LIST if self.language is None else ENGLISH_LIST
        if self.language is not None:
            return tuple(sorted(stop_words_of(self.stop_words)))
        try:
            return tuple(sorted(set(Path(self.stop_words).read_text("utf-8").split())))
        except (OSError, UnicodeDecodeError) as problem:
            raise BadSetting("[tokeniser]", "stop_words", self.stop_words, _unread(problem)) from problem

    def make(self) -> Tokeniser:
        """Makes the tokeniser of this plan."""
        listed = self.stop_words if is_named(self.stop_words) else Path(self.stop_words)
        own = {
            name: getattr(self, name) for name in ("lower", "min_length", "max_length", "numbers", "ngrams", "longest", *LATER)
        }
        return Tokeniser(stop_words=listed, pattern=self.pattern or None, **own)


@dataclass(frozen=True)
class EmbeddingsChoice:
    """How each party turns its texts into embeddings, where the model reads them and the documents bring none."""

    model: str = USUAL  # a sentence-transformers model, by name or folder; nothing: documents bring embeddings
    digest: Annotated[str, _DIGEST] = ""  # SHA-256 of its weights, which all parties must have
    max_tokens: Annotated[int, at_least(0)] = MAX_TOKENS  # of a text that are read; 0: as many as the model can
    batch: Annotated[int, within(1, 4096)] = 1  # texts embedded at once; above 1 each depends on the others in its last bits

    def embedder(self) -> TextEmbedder:
        """Makes what embeds texts as this plan says."""
        return TextEmbedder(self.model, self.digest, self.max_tokens, self.batch)


@dataclass(frozen=True)
class VocabularyChoice:
    """How the parties come to one list of words.

    `union`: every party sends its words. `joint`: the union is found through a sum, so nobody learns whose words they are.
    `file`: a public list. Without a source, the first that the profile allows. `joint` with a public list beside it: the words
    of that list, and those that the sum adds. `blind`: every word is hashed under a key that only the parties have, so the
    coordinator trains over columns without names.
    """

    source: Annotated[str, one_of("", *VOCABULARIES)] = ""  # one of these; nothing: the first that the profile allows
    file: str = ""  # a language (english, de), or a list (one word a line) or a model, seen from the folder you are in
    max_words: Annotated[int, within(2, 1_000_000)] = 2000  # the most frequent ones are kept; all of a file's are
    most_candidates: Annotated[int, within(2, 10_000_000)] = (
        100_000  # that `joint` has room for, at 144 bytes each; 40 buckets for each in `blind`
    )
    min_documents: Annotated[int, at_least(1)] = 5  # that a word is in at least
    max_share: Annotated[float, _SHARE] = 0.5  # of all documents: a word in more of them is left out, one in just so many stays
    told_at_the_end: bool = False  # whether the parties tell the coordinator the words of `blind` when the training has ended

    @property
    def is_hidden(self) -> bool:
        """Whether the coordinator is never told a word."""
        return self.source == BLIND and not self.told_at_the_end

    @property
    def language(self) -> str | None:
        """The code of the language whose frequent words are the public list; None where it is a file, or there is none."""
        return language_code(self.file)

    def public_words(self, tokeniser: Tokeniser) -> tuple[str, ...] | None:
        """Reads the words of the public list, alphabetically; None where the plan names none."""
        if not self.file:
            return None
        if (code := self.language) is not None:
            return frequent_words(code, self.max_words, tokeniser, self.max_share)
        if self.file.endswith(MODEL_ENDING):
            words = StoredModel.open(Path(self.file)).words
            fine = len(words) >= 2 and words == tuple(sorted(set(words)))
            require(fine, "[vocabulary]", "file", self.file, "must be a model with two words or more, in alphabetical order")
            return words
        try:
            lines = _text_of(Path(self.file)).split("\n")
        except FileNotFoundError:
            problem = "is neither a language with a list (english, german, de) nor a file, seen from the folder you are in"
            raise BadSetting("[vocabulary]", "file", self.file, problem) from None
        except (OSError, ValueError) as problem:
            raise BadSetting("[vocabulary]", "file", self.file, _unread(problem)) from problem
        words = tuple(sorted({line.strip() for line in lines} - {""}))  # an editor may end lines in two characters
        require(len(words) >= 2, "[vocabulary]", "file", self.file, "must hold at least two words, one a line, in UTF-8")
        return words


@dataclass(frozen=True)
class TrainingChoice:
    """When training ends: after so many rounds, or earlier when weights or held-out loss no longer move."""

    rounds: Annotated[int, within(1, 10_000_000)] = 1000  # at most; nothing: what the model says for a federation
    epochs: Annotated[float, _EPOCHS] = 0.0  # passes over the training documents, in at most `rounds` rounds
    documents: Annotated[int, within(0, 10**9)] = 0  # of all parties, about: a public number; 0: not said
    persons: Annotated[int, within(0, 10**9)] = 0  # whose documents these are, about, where a budget is each person's
    document_length: Annotated[float, within(0, 1_000_000)] = 0.0  # words of a document on the list, about; 0: not said
    stop: Annotated[str, one_of(*STOPS)] = "rounds"  # end by rounds, weights or held_out
    every: Annotated[int, at_least(1)] = 50  # rounds between two looks at weights or held-out words
    tolerance: Annotated[float, at_least(0)] = 1e-3  # a smaller change counts as none
    patience: Annotated[int, at_least(1)] = 3  # looks without a change before training ends
    held_out: Annotated[float, _PART] = 0.1  # share of the documents that is not trained on
    continue_from: str = ""  # the file of a model to go on from: its words are the words, its topics keep their numbers
    start: Annotated[str, one_of("", *STARTS)] = ""  # at public topics, at those of a first question (moments), or plain
    start_share: Annotated[float, _START_SHARE] = 0.0  # of the budget, in squares of epsilon, for the question of moments
    vectors: str = ""  # of a public start: glove, minilm, a file, or a sentence model's folder; nothing: what is installed
    vectors_digest: Annotated[str, _DIGEST] = ""  # SHA-256 of their files, which all roles must have
    earlier_weight: Annotated[float, _WEIGHT] = 1.0  # of each document that it learned from, beside a new one

    @property
    def units(self) -> int:
        """How many documents there are, or persons where the budget is theirs: as many rows a sum has. 0: nobody said it."""
        return self.persons or self.documents


def hides_documents(budget: Budget | None) -> bool:
    """Whether documents or persons have this budget; that of single words is another thing."""
    return budget is not None and budget.unit is not Unit.WORD


def usual_model(budget: Budget | None) -> str:
    """The model that is trained where a plan names none."""
    return MODEL_UNDER_BUDGET if hides_documents(budget) else DEFAULT_MODEL


@dataclass(frozen=True)
class OriginsChoice:
    """Why what the training starts from is public, where no origin stands in its own file. A budget asks for it.

    Each setting is a sentence: which documents made the thing, and that none of them is a party's. Every statement prints it.
    """

    continue_from: Annotated[str, _REASON] = ""  # why the model to go on from is public
    vocabulary: Annotated[str, _REASON] = ""  # why the list of words in a file is public
    stop_words: Annotated[str, _REASON] = ""  # why the list of stop words in a file is public
    vectors: Annotated[str, _REASON] = ""  # why the word vectors in a file or folder are public
    embeddings: Annotated[str, _REASON] = ""  # why a sentence model, or what made the documents' own embeddings, is public

    def given(self) -> dict[str, str]:
        """The reasons, by the settings that they are about."""
        return {name: reason for name, reason in vars(self).items() if reason}


@dataclass(frozen=True)
class ModelChoice(OwnTable):
    """The topic model and its settings."""

    name: str = DEFAULT_MODEL
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The model with all its settings, which stand beside its name or in a table of their own."""
        nested, name = table.get("settings", {}), table.get("name", DEFAULT_MODEL)
        require(isinstance(nested, Mapping), "[model]", "settings", nested, "must be a table [model.settings]")
        require(isinstance(name, str), "[model]", "name", name, "must be a text")
        flat = {setting: value for setting, value in table.items() if setting not in ("name", "settings")}
        made = make_model(name, {**nested, **flat})
        return cls(name, {one.name: getattr(made, one.name) for one in dataclasses.fields(made) if one.init})  # type: ignore[arg-type]


@dataclass(frozen=True)
class PrivacyChoice:
    """What a plan sets of a profile that has a privacy budget; 0 or nothing leaves it as the profile says.

    Where `epsilon` is given and `noise` is not, the noise is the least with which the budget lasts for all rounds.
    """

    unit: Annotated[str, one_of("", *UNITS)] = ""  # document, person where the corpus names persons, or word, by profile
    epsilon: Annotated[float, _NUMBER] = 0.0  # the budget
    delta: Annotated[float, _NUMBER] = 0.0  # the probability that the promise may fail
    noise: Annotated[float, _NUMBER] = 0.0  # noise multiplier: deviation of the noise over the bound on a row
    words: Annotated[float, _NUMBER] = 0.0  # noise multiplier of the selection of words
    rate: Annotated[float, _NUMBER] = 0.0  # with which each document takes part in a round
    radius: Annotated[float, _NUMBER] = 0.0  # of the clip

    def changed(self) -> dict[str, float]:
        """Returns the numbers of the profile that this plan replaces, by their names there."""
        named = {"noise": "noise_multiplier"}
        return {named.get(name, name): getattr(self, name) for name in NUMBERS if getattr(self, name)}


@dataclass(frozen=True)
class FederationChoice:
    """How the parties take part in the training."""

    cohort: Annotated[int, at_least(0)] = 0  # parties that a training round is asked of, drawn by the public seed; 0: all
    parties: Annotated[int, at_least(0)] = 0  # that take part, about: a public number; 0: not said

    @property
    def in_a_round(self) -> int:
        """How many parties answer in a round, about; 0: nobody said it."""
        return self.cohort or self.parties


@dataclass(frozen=True)
class CoordinatorChoice:
    """How a coordinator is operated that serves parties over a network. The parties agree on none of it.

    Paths are relative to the folder of the plan.
    """

    listen: Annotated[str, _ADDRESS] = "127.0.0.1:8470"  # for the parties; 0.0.0.0 is every address of this machine
    roster: Annotated[str, _PATH] = "roster.toml"  # the file of who takes part
    keys: str = ""  # the folder `keys` in the coordinator's home; nothing: where `securetm keys new coordinator` makes it
    out: Annotated[str, _PATH] = COORDINATOR_OUT  # the folder of the run; the same command goes on with it
    deadline: Annotated[float, above(0)] = 120.0  # seconds in which a party must answer one message
    survivors: Annotated[str | int, _SURVIVORS] = ALL  # fewest parties with which a round may end: all, or a number
    patience: Annotated[float, above(0)] = 3600.0  # seconds to wait for parties that the run needs, before it stops by name
    grace: Annotated[float, above(0)] = 120.0  # seconds to wait for parties that a run under way can do without
    courier_days: Annotated[float, at_least(0)] = 7.0  # days to wait for a letter of a party that the run can do without
    metrics: Annotated[int | str, _SCRAPED] = 0  # port of the metrics for Prometheus, on this machine, or address:port; 0: none
    status: Annotated[int, _PORT] = 0  # port of the status page, on this machine; 0: none


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run."""

    seed: Annotated[int, _SEED] = 0  # public, of batches and model noise
    profile: str = "masked"  # a name, or a file that ends in .toml
    corpus: CorpusChoice = CorpusChoice()
    tokeniser: TokeniserChoice = TokeniserChoice()
    embeddings: EmbeddingsChoice = EmbeddingsChoice()
    vocabulary: VocabularyChoice = VocabularyChoice()
    model: ModelChoice = ModelChoice()
    training: TrainingChoice = TrainingChoice()
    privacy: PrivacyChoice = PrivacyChoice()
    federation: FederationChoice = FederationChoice()
    origins: OriginsChoice = OriginsChoice()
    coordinator: CoordinatorChoice = CoordinatorChoice()

    def profile_in(self, file: ProfileFile) -> Profile:
        """Makes the profile in that file with the numbers that this plan sets."""
        return file.profile(self.privacy.changed(), UNITS[self.privacy.unit or "document"])

    @property
    def most_words(self) -> int:
        """The number of words of a public list, or the most that the parties find together."""
        listed = self.vocabulary.public_words(self.tokeniser.make())
        return len(listed) if listed and self.vocabulary.source == "file" else self.vocabulary.max_words

    @property
    def language(self) -> str | None:
        """The code of the language of the documents, as the public list says, or else the stop words; None: nothing says it."""
        return self.vocabulary.language or self.tokeniser.language

    def tables(self) -> dict[str, Any]:
        """Returns the resolved plan as plain tables for JSON."""
        return dataclasses.asdict(self)


def decode(tables: Mapping[str, Any], where: str) -> Plan:
    """The plan in tables as they stand in TOML or in the record of a run. All mistakes are told at once."""
    return from_table(Plan, tables, where)
