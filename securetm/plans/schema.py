"""The plan of a run: what all parties agree on and, for a simulation, where the documents come from. It runs nothing.

Each section checks its own settings. `reading.py` reads a plan, completes it and checks it as a whole.
"""

from __future__ import annotations

import dataclasses
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from securetm.contracts import Budget, Origin, Profile, Unit
from securetm.corpus.length_limits import LONGEST
from securetm.corpus.public_words import frequent_words, language_code
from securetm.corpus.sentence_models import USUAL
from securetm.corpus.text_embeddings import MAX_TOKENS, TextEmbedder
from securetm.corpus.tokeniser import Tokeniser
from securetm.data_homes import COORDINATOR_OUT
from securetm.errors import BadSetting
from securetm.models.start_share import MOST_START
from securetm.models.stored_model import words_of_model
from securetm.plans.profiles import VOCABULARIES, ProfileFile
from securetm.settings import require, require_at_least

STOPS = ("rounds", "weights", "held_out")
PLAIN, PUBLIC, MOMENTS = STARTS = ("plain", "public", "moments")
NO_VECTORS = "none"  # in place of vectors: a start by moments then reads none, wherever some are installed
DEFAULT_MODEL, MODEL_UNDER_BUDGET = "lda", "lda-vi"  # where a plan names none; with a budget of documents or persons
MOST_ROUNDS_OF_EPOCHS = 10_000  # that parties answer where a plan gives epochs, and no number of rounds
PUBLIC_LIST = "name a language, or a public list of words, one a line (--vocabulary english, --vocabulary FILE)"
USUAL_LANGUAGE = "english"  # of the public list, where a profile takes no other list and the plan names none
WITH_PRIVATE = "+private"  # behind a public list: words that the parties find together are added to it
PARTITIONS = ("column", "equal", "dirichlet")
ALL = "all"
MODEL_ENDING = ".safetensors"
_PORTS = 1 << 16
_SHA256 = re.compile("[0-9a-f]{64}")


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
    partition: str = "equal"  # who holds what: column, equal or dirichlet
    parties: int = 5  # where documents are dealt out
    alpha: float = 1.0  # of dirichlet: the smaller, the more the parties differ in their labels

    def __post_init__(self) -> None:
        """Refuses settings that deal out nothing."""
        require(self.partition in PARTITIONS, "[corpus]", "partition", self.partition, known=tuple(PARTITIONS))
        require_at_least(self, "[corpus]", parties=1)
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
    longest: int = LONGEST  # words of the longest document; a longer one is refused when it is read

    def listed(self) -> str | tuple[str, ...]:
        """Reads the stop words if they are in a file, else returns the name of the list."""
        if self.stop_words in ("english", "none"):
            return self.stop_words
        try:
            return tuple(sorted(set(Path(self.stop_words).read_text("utf-8").split())))
        except (OSError, UnicodeDecodeError) as problem:
            raise BadSetting("[tokeniser]", "stop_words", self.stop_words, _unread(problem)) from problem

    def make(self) -> Tokeniser:
        """Makes the tokeniser of this plan."""
        listed = self.stop_words if self.stop_words in ("english", "none") else Path(self.stop_words)
        settings = {name: getattr(self, name) for name in ("lower", "min_length", "max_length", "numbers", "ngrams", "longest")}
        return Tokeniser(stop_words=cast(Any, listed), pattern=self.pattern or None, **settings)


@dataclass(frozen=True)
class EmbeddingsChoice:
    """How each party turns its texts into embeddings, where the model reads them and the documents bring none."""

    model: str = USUAL  # a sentence-transformers model, by name or folder; nothing: documents bring embeddings
    digest: str = ""  # SHA-256 of its weights, which all parties must have; nothing: of those that are found here
    max_tokens: int = MAX_TOKENS  # of a text that are read; 0: as many as the model can
    batch: int = 1  # texts embedded at once; above 1 an embedding depends on others in its last bits, which no budget allows

    def __post_init__(self) -> None:
        """Refuses what no model can do."""
        hexadecimal = not self.digest or bool(_SHA256.fullmatch(self.digest))
        require(hexadecimal, "[embeddings]", "digest", self.digest, "must be 64 digits from 0 to f, as sha256sum prints them")
        require_at_least(self, "[embeddings]", max_tokens=0)
        require(1 <= self.batch <= 4096, "[embeddings]", "batch", self.batch, "must be from 1 to 4096")

    def embedder(self) -> TextEmbedder:
        """Makes what embeds texts as this plan says."""
        return TextEmbedder(self.model, self.digest, self.max_tokens, self.batch)


@dataclass(frozen=True)
class VocabularyChoice:
    """How the parties come to one list of words.

    `union`: every party sends its words. `joint`: the union is found through a sum, so nobody learns whose words they are.
    `file`: a public list. Without a source, the first that the profile allows. `joint` with a public list beside it: the words
    of that list, and those that the sum adds.
    """

    source: str = ""  # union, joint or file; nothing: the first that the profile allows
    file: str = ""  # a language (english, de), a public list, one word a line, or the file of a model, whose words are taken
    max_words: int = 2000  # the most frequent ones are kept, of a language too; a file's words all are
    most_candidates: int = 100_000  # words of all parties together that `joint` has room for, at 144 bytes from every party
    min_documents: int = 5  # that a word is in at least
    max_share: float = 0.5  # of all documents that a word is in at most

    def __post_init__(self) -> None:
        """Refuses settings that allow no list."""
        known = self.source in ("", *VOCABULARIES)
        require(known, "[vocabulary]", "source", self.source, known=tuple(VOCABULARIES))
        room = 2 <= self.most_candidates <= 10_000_000
        require(room, "[vocabulary]", "most_candidates", self.most_candidates, "must be from 2 to 10,000,000")
        require(self.source != "file" or bool(self.file), "[vocabulary]", "file", None, PUBLIC_LIST)
        require(2 <= self.max_words <= 1_000_000, "[vocabulary]", "max_words", self.max_words, "must be from 2 to 1,000,000")
        require_at_least(self, "[vocabulary]", min_documents=1)
        require(0 < self.max_share <= 1, "[vocabulary]", "max_share", self.max_share, "must be above 0 and at most 1")

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
            return self._words_of_model()
        try:
            lines = _text_of(Path(self.file)).split("\n")
        except FileNotFoundError:
            problem = "is neither a language of which there is a list (english, german, de) nor a file"
            raise BadSetting("[vocabulary]", "file", self.file, problem) from None
        except (OSError, ValueError) as problem:
            raise BadSetting("[vocabulary]", "file", self.file, _unread(problem)) from problem
        words = tuple(sorted({line.strip() for line in lines} - {""}))  # an editor may end lines in two characters
        require(len(words) >= 2, "[vocabulary]", "file", self.file, "must hold at least two words, one a line, in UTF-8")
        return words

    def _words_of_model(self) -> tuple[str, ...]:
        """Reads the words of a model, which must be in alphabetical order as every list of a federation is."""
        words = words_of_model(Path(self.file))
        fine = len(words) >= 2 and words == tuple(sorted(set(words)))
        require(fine, "[vocabulary]", "file", self.file, "must be a model with two words or more, in alphabetical order")
        return words


@dataclass(frozen=True)
class TrainingChoice:
    """When training ends: after so many rounds, or earlier when weights or held-out loss no longer move."""

    rounds: int = 1000  # at most; nothing: what the model says for a federation
    epochs: float = 0.0  # passes over the training documents; rounds then follow from their number, up to `rounds`
    documents: int = 0  # of all parties, about: a public number, from which rounds follow under a budget; 0: not said
    persons: int = 0  # whose documents these are, about: a public number, where the budget is each person's; 0: not said
    document_length: float = 0.0  # words of a document on the list, about: a public number; the start may follow from it
    stop: str = "rounds"  # end by rounds, weights or held_out
    every: int = 50  # rounds between two looks at weights or held-out words
    tolerance: float = 1e-3  # a smaller change counts as none
    patience: int = 3  # looks without a change before training ends
    held_out: float = 0.1  # share of the documents that is not trained on
    continue_from: str = ""  # the file of a model to go on from: its words are the words, its topics keep their numbers
    start: str = ""  # public: at topics of word vectors; moments: of a first question; plain; nothing: public under a budget
    start_share: float = 0.0  # of the budget, in squares of epsilon nearly, for the question of moments; 0: by the rule
    vectors: str = ""  # of a public start: glove, minilm, a file, or a sentence model's folder; nothing: what is installed
    vectors_digest: str = ""  # SHA-256 of their files, which all roles must have; nothing: of those that are found here
    earlier_weight: float = 1.0  # of each document that it learned from, beside a new one, where topics are counts of words

    def __post_init__(self) -> None:
        """Refuses a training that would never begin or never end."""
        require(1 <= self.rounds <= 10_000_000, "[training]", "rounds", self.rounds, "must be from 1 to 10,000,000")
        problem = "must be from 0 to 1,000,000; 0 trains for so many rounds instead"
        require(0 <= self.epochs <= 1_000_000, "[training]", "epochs", self.epochs, problem)
        problem = "must be from 0 to 1,000,000,000; 0 does not say it"
        require(0 <= self.documents <= 10**9, "[training]", "documents", self.documents, problem)
        problem = "must be from 0, which does not say it, to the number of documents"
        require(0 <= self.persons <= (self.documents or 10**9), "[training]", "persons", self.persons, problem)
        length, problem = self.document_length, "must be from 0 to 1,000,000; 0 does not say it"
        require(0 <= length <= 1e6, "[training]", "document_length", length, problem)
        require(self.stop in STOPS, "[training]", "stop", self.stop, known=tuple(STOPS))
        require_at_least(self, "[training]", every=1, patience=1, tolerance=0)
        require(0 < self.held_out < 1, "[training]", "held_out", self.held_out, "must lie between 0 and 1")
        self._check_start()
        weight = self.earlier_weight
        require(0 <= weight <= 1e6, "[training]", "earlier_weight", weight, "must be from 0 to 1,000,000")
        problem = "means nothing without continue_from, the model to go on from"
        require(bool(self.continue_from) or weight == 1, "[training]", "earlier_weight", weight, problem)

    @property
    def units(self) -> int:
        """How many documents there are, or persons where the budget is theirs: as many rows a sum has. 0: nobody said it."""
        return self.persons or self.documents

    def _check_start(self) -> None:
        """Refuses a start that is not known, and vectors for a start that reads none."""
        require(self.start in ("", *STARTS), "[training]", "start", self.start, known=STARTS)
        hexadecimal = not self.vectors_digest or bool(_SHA256.fullmatch(self.vectors_digest))
        problem = "must be 64 digits from 0 to f, as sha256sum prints them"
        require(hexadecimal, "[training]", "vectors_digest", self.vectors_digest, problem)
        problem = f"means nothing beside start = {self.start}: only a public start reads vectors, and one by moments"
        require(not self.vectors or self.start != PLAIN, "[training]", "vectors", self.vectors, problem)
        problem = "is for a start by moments, which can do without vectors (--start moments)"
        require(self.vectors != NO_VECTORS or self.start == MOMENTS, "[training]", "vectors", self.vectors, problem)
        problem = f"cannot be {self.start or PUBLIC} beside continue_from: the topics are those of the earlier model"
        asked = self.start in (PUBLIC, MOMENTS) or bool(self.vectors)
        require(not (asked and self.continue_from), "[training]", "start", self.start, problem)
        share = self.start_share
        require(0 <= share <= MOST_START, "[training]", "start_share", share, f"must be from 0 (by the rule) to {MOST_START:g}")
        problem = "means nothing without start = moments, which asks a question of its own"
        require(not share or self.start == MOMENTS, "[training]", "start_share", share, problem)


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

    continue_from: str = ""  # why the model to go on from is public
    vocabulary: str = ""  # why the list of words in a file is public
    stop_words: str = ""  # why the list of stop words in a file is public
    vectors: str = ""  # why the word vectors in a file or folder are public
    embeddings: str = ""  # why the sentence model in a folder is public, or what made the embeddings that documents bring

    def __post_init__(self) -> None:
        """Refuses a reason that cannot be printed."""
        for name, reason in self.given().items():
            try:
                Origin.public(reason)
            except ValueError as problem:
                raise BadSetting("[origins]", name, reason, f"is no reason: {problem}") from problem

    def given(self) -> dict[str, str]:
        """The reasons, by the settings that they are about."""
        return {name: reason for name, reason in vars(self).items() if reason}


@dataclass(frozen=True)
class ModelChoice:
    """The topic model and its settings."""

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
        """Refuses numbers that no profile can have."""
        require(self.unit in ("", *UNITS), "[privacy]", "unit", self.unit, known=tuple(UNITS))
        for name in NUMBERS:
            value = getattr(self, name)
            require(0 <= value < float("inf"), "[privacy]", name, value, "must be a finite number that is not negative")

    def changed(self) -> dict[str, float]:
        """Returns the numbers of the profile that this plan replaces, by their names there."""
        named = {"noise": "noise_multiplier"}
        return {named.get(name, name): getattr(self, name) for name in NUMBERS if getattr(self, name)}


def _is_port(port: int | str) -> bool:
    return isinstance(port, int) and 0 <= port < _PORTS


def _is_address(text: str) -> bool:
    address, _, port = text.rpartition(":")
    return bool(address) and port.isdecimal() and int(port) < _PORTS


@dataclass(frozen=True)
class FederationChoice:
    """How the parties take part in the training."""

    cohort: int = 0  # parties that a training round is asked of, drawn by the public seed; 0: all
    parties: int = 0  # that take part, about: a public number, from which rounds follow under a budget; 0: not said

    def __post_init__(self) -> None:
        """Refuses a negative number."""
        require_at_least(self, "[federation]", cohort=0, parties=0)

    @property
    def in_a_round(self) -> int:
        """How many parties answer in a round, about; 0: nobody said it."""
        return self.cohort or self.parties


@dataclass(frozen=True)
class CoordinatorChoice:
    """How a coordinator is operated that serves parties over a network. The parties agree on none of it.

    Paths are relative to the folder of the plan.
    """

    listen: str = "127.0.0.1:8470"  # address and port for the parties; 0.0.0.0 is every address of this machine
    roster: str = "roster.toml"  # the file of who takes part
    keys: str = ""  # the folder `keys` in the coordinator's home; nothing: where `securetm keys new coordinator` makes it
    out: str = COORDINATOR_OUT  # the folder of the run; the same command goes on with it
    deadline: float = 120.0  # seconds in which a party must answer one message
    survivors: str | int = ALL  # fewest parties with which a round may end: all, or a number
    patience: float = 3600.0  # seconds to wait for parties that the run needs, before it stops by name
    grace: float = 120.0  # seconds to wait for parties that a run under way can do without, before it goes on without them
    metrics: int | str = 0  # port of the metrics for Prometheus, on this machine, or address:port; 0: none
    status: int = 0  # port of the status page, on this machine; 0: none

    def __post_init__(self) -> None:
        """Refuses settings with which nobody could be served."""
        problem = "must be an address and a port, such as 0.0.0.0:8470"
        require(_is_address(self.listen), "[coordinator]", "listen", self.listen, problem)
        scraped = _is_port(self.metrics) or _is_address(str(self.metrics))
        require(scraped, "[coordinator]", "metrics", self.metrics, "must be a port, an address and a port, or 0 for none")
        require(_is_port(self.status), "[coordinator]", "status", self.status, "must be a port, or 0 for none")
        for name in ("deadline", "patience", "grace"):
            require(getattr(self, name) > 0, "[coordinator]", name, getattr(self, name), "must be above 0")
        number = isinstance(self.survivors, int) and self.survivors >= 1
        require(number or self.survivors == ALL, "[coordinator]", "survivors", self.survivors, "must be all, or at least 1")
        for name in ("roster", "out"):
            require(bool(getattr(self, name)), "[coordinator]", name, "", "must name a path")


NUMBERS = ("epsilon", "delta", "noise", "words", "rate", "radius")
UNITS = {"document": Unit.DOCUMENT, "person": Unit.PERSON, "word": Unit.WORD}


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run."""

    seed: int = 0  # public, of batches and model noise
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

    def tables(self) -> dict[str, Any]:
        """Returns the resolved plan as plain tables for JSON."""
        return dataclasses.asdict(self)
