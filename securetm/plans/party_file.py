"""PARTY.toml: what one organisation brings to a federation, and what it allows there. Nobody else reads it.

What all parties agree on is in the plan (`schema.py`), who they are in the roster. No document is read here.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Annotated, Self

from securetm.contracts import Budget, Unit
from securetm.data_classes import dataclass, field
from securetm.data_homes import party_home
from securetm.engines import EngineChoice
from securetm.settings import NOT_IN_FILES, Limit, at_least, from_table, one_of, placed, read_toml, require, shaped

UNITS = tuple(unit.value for unit in (Unit.DOCUMENT, Unit.PERSON, Unit.SENTENCE, Unit.WORD))  # that a budget may protect
QUESTIONS = (  # that a plan may ask
    *("words", "joint", "frequencies", "buckets", "marks", "bucket_sums"),
    *("pairs", "train", "held_out", "coherence"),
)
_IDENTITY = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"
_IDENTITY_SHAPE = shaped(
    _IDENTITY, "of letters, digits, dots, dashes and underscores, at most 80, and begin with a letter or digit"
)
_DIGEST = shaped("[0-9a-f]{64}", "a digest of 64 digits from 0 to f, as `securetm join` prints it")
_FINGERPRINT = Limit(lambda one: _bare(one).isdecimal(), "must be a fingerprint as `securetm keys show` prints it")
_NUMBER = Limit(lambda one: 0 <= one < float("inf"), "must be a finite number that is not negative")
_DELTA = Limit(lambda one: 0 <= one < 1, "must be below 1, and not negative")
_NAME = Limit(lambda name: bool(name.strip()), "must be the party's name, as in the roster")


@dataclass(frozen=True)
class DataChoice:
    """The party's documents. Ledger, counters and kept answers belong to `identity`, wherever the documents lie."""

    source: Annotated[str, Limit(bool, "must name a file or a folder")]  # a file, or a folder of .txt
    identity: Annotated[str, _IDENTITY_SHAPE]  # your own name for this data set; keep it as long as the documents are the same
    text: str = ""  # the column of the text; nothing: it is called `text`
    label: str = ""  # the column of the label
    date: str = ""  # the column of the date
    person: str = ""  # the column of whose document it is
    embedding: str = ""  # the column of the embedding
    id: str = ""  # the column of the document's own id; nothing: a document is named by what it says

    def columns(self) -> dict[str, str | None]:
        """Returns the columns by role, for the reader; a role without a column has the usual one."""
        return {role: getattr(self, role) or None for role in ("text", "label", "date", "person", "embedding", "id")}


@dataclass(frozen=True)
class PolicyChoice:
    """What the party allows on its documents. An empty list or 0 allows what the party's own copy of the plan says.

    As soon as it says how much may be spent of which unit, a profile without a bound is allowed by its name only.
    """

    profiles: tuple[str, ...] = ()  # allowed, by name, or by digest (64 hex digits) so that no edited file passes
    models: tuple[str, ...] = ()  # allowed, by name
    modules: tuple[str, ...] = ()  # of the model torch-module, allowed to be imported here, as package.module:Class
    least_parties: Annotated[int, at_least(0)] = 0  # in any opened sum with these documents, whoever drops out
    least_documents: Annotated[int, at_least(0)] = 0  # in any opened sum with these documents, as the roster announces them
    unit: Annotated[str, one_of("", *UNITS)] = ""  # that a budget has to protect; nothing: as the plan says
    most_epsilon: Annotated[float, at_least(0)] = 0.0  # that one run may spend, of each such unit
    questions: tuple[Annotated[str, one_of(*QUESTIONS)], ...] = ()  # that may be asked of the documents
    inputs: tuple[Annotated[str, _DIGEST], ...] = ()  # that somebody's word makes public, by the digest of a refusal
    coordinators: tuple[Annotated[str, _FINGERPRINT], ...] = ()  # by their fingerprint, as in `securetm keys show`

    def __post_init__(self) -> None:
        """Refuses a limit of nobody's budget."""
        problem = f"must be given beside most_epsilon, which counts for each of them: {', '.join(UNITS)}"
        require(bool(self.unit) or not self.most_epsilon, "[policy]", "unit", self.unit, problem)

    def allows_profile(self, name: str, digest: bytes) -> bool:
        """Whether this profile is allowed, by its name or its digest."""
        return not self.profiles or name in self.profiles or digest.hex() in self.profiles

    def names_profile(self, name: str, digest: bytes) -> bool:
        """Whether this profile is in the list, so that the party knows of it."""
        return bool(self.profiles) and self.allows_profile(name, digest)

    def allows_model(self, name: str) -> bool:
        """Whether this model is allowed."""
        return not self.models or name in self.models

    def allows_module(self, module: str) -> bool:
        """Whether this class may be imported here."""
        return not self.modules or module in self.modules

    def allows_question(self, name: str) -> bool:
        """Whether this question may run on the documents."""
        return not self.questions or name in self.questions

    def allows_coordinator(self, fingerprint: str) -> bool:
        """Whether the owner of this identity may coordinate. Blanks and dashes in a fingerprint do not matter."""
        return not self.coordinators or _bare(fingerprint) in map(_bare, self.coordinators)


@dataclass(frozen=True)
class LedgerChoice:
    """The budget of the data set over all runs and federations. 0: as the first run's profile with a budget says."""

    epsilon: Annotated[float, _NUMBER] = 0.0  # that all runs together may spend of each document or person
    delta: Annotated[float, _DELTA] = 0.0  # the probability that this promise may fail

    def budget(self, of_the_run: Budget) -> Budget:
        """Returns the budget of the data set, given that of the run."""
        return dataclasses.replace(of_the_run, epsilon=self.epsilon or of_the_run.epsilon, delta=self.delta or of_the_run.delta)


@dataclass(frozen=True)
class PartyFile:
    """What one PARTY.toml says. Paths are relative to the folder that it lies in."""

    name: Annotated[str, _NAME]  # of the party, as in the roster
    data: DataChoice
    roster: str = "roster.toml"  # the file of who takes part
    plan: str = "plan.toml"  # the party's own copy of the plan
    home: str = ""  # the party's folder for ledgers, stores and results; nothing: $XDG_DATA_HOME/securetm/NAME
    policy: PolicyChoice = PolicyChoice()
    privacy: LedgerChoice = LedgerChoice()
    engine: EngineChoice = field(default_factory=EngineChoice)  # that computes answers
    path: Path = field(default=Path(), metadata=NOT_IN_FILES)  # of the file itself

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads and checks a whole PARTY.toml."""
        tables = read_toml(path)
        with placed(path):
            return dataclasses.replace(from_table(cls, tables, path.name), path=path)

    def place(self, written: str) -> Path:
        """Returns a path of this file, seen from where the file lies."""
        return self.path.parent / Path(written).expanduser()

    @property
    def home_folder(self) -> Path:
        """The party's home."""
        return Path(party_home(self.name, self.home, self.path.parent))


def _bare(fingerprint: str) -> str:
    return re.sub(r"[\s.-]", "", fingerprint)
