"""The record of an audit: the store, the terminal, the page and the summary read the same object.

A finding has four parts: the attempt, its run, the outcome, and texts about the attack. In files all fields of a finding
stand on one level, under the names that `securetm audit --json` prints.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import fields, replace

REFUTED, NOT_REFUTED, NOT_TESTED = "refuted", "not refuted", "not tested"
VERDICTS = (REFUTED, NOT_REFUTED, NOT_TESTED)
BROKEN, OPEN, HELD = "broken", "open", "held"  # of a claim; of what nobody promised; not refuted
STANDINGS = (BROKEN, OPEN, HELD, NOT_TESTED)  # the worst first


def standing_of(verdict: str, *, claimed: bool) -> str:
    """What a verdict is called on something that a profile claims, or does not."""
    if verdict == REFUTED:
        return BROKEN if claimed else OPEN
    return HELD if verdict == NOT_REFUTED else NOT_TESTED


def _fits(holds: bool, field: str, problem: str) -> None:
    """Refuses a field that contradicts the others of its record."""
    if not holds:
        raise ValueError(f"`{field}` {problem}")


class Example(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that an attack rebuilt, beside the original."""

    original: str
    recovered: str
    exact: bool


HIDDEN = "□"  # stands for a word of the original that did not leak


def leaked(example: Example) -> Example | None:
    """The example without the words that did not leak; None if none did. An exact one is shown as it is."""
    if example.exact:
        return example
    named, colon, listed = example.original.rpartition(": ")
    found = set(example.recovered.rpartition(": ")[2].split(", "))
    words = [word if word in found else HIDDEN for word in listed.split(", ")]
    if all(word == HIDDEN for word in words):
        return None
    return Example(f"{named}{colon}{', '.join(words)}", example.recovered, exact=False)


class Curve(Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a plot: true against false positives (`roc`), or shown against claimed epsilon (`epsilon`)."""

    kind: str
    label: str
    across: tuple[float, ...]
    up: tuple[float, ...]

    def __post_init__(self) -> None:
        _fits(len(self.across) == len(self.up), "up", f"is {len(self.up)}; it must be the number of points of `across`")
        most = 1.0 if self.kind == "roc" else math.inf
        for name, line in (("across", self.across), ("up", self.up)):
            for value in line:
                _fits(0 <= value <= most, name, f"is {value}; it cannot lie on this curve")


EVERY_PARTY = "every party"  # in place of the party that refused, if all gave the same answer

Day = Annotated[str, Meta(pattern=r"^(\d{4}-\d\d-\d\d)?$")]  # as 2026-01-31, or nothing


class RefusalRecord(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run below a profile's minimum, or a protocol violation by the coordinator, and the parties' answer."""

    profile: str
    attempt: str  # in words: how many documents of how many parties
    documents: Annotated[int, Meta(ge=0)]  # in the sum that was asked for; 0 for a protocol violation
    minimum: Annotated[int, Meta(ge=0)]  # that the profile demands; 0 for a protocol violation
    refused: bool
    by: str  # who refused; empty if nobody did
    reason: str  # the error that the others were told; if nobody refused, why the profile allows it
    kept: Day = ""  # the day on which it was found, if it was kept and not tried again

    def __post_init__(self) -> None:
        _fits(not self.refused or bool(self.by), "by", "is missing")
        _fits(not self.refused or bool(self.reason), "reason", "is missing")

    @property
    def broken(self) -> bool:
        """Whether the profile promises a refusal, and nobody refused."""
        return not self.refused and (self.minimum > 0 or not self.reason)


STANDING = "standing"  # of a finding in files: it follows from the verdict and from what is claimed
COMPUTED = frozenset({STANDING, "bears_on", "anonymity", "refuted_claims"})  # in files; computed again, never believed
DOCUMENT = "document"  # the unit of a share of all documents, also those that took no part in the training

Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Verdict = Annotated[str, Meta(pattern=f"^({'|'.join(VERDICTS)})$")]


class Measured(Struct, frozen=True, forbid_unknown_fields=True):
    """A measure with its interval; a share has hits and tries."""

    measure: str
    unit: str
    value: float | None
    low: float
    high: float
    ceiling: float  # the low end that an ideal attacker would have reached with as many tries
    hits: Count | None = None
    of: Count | None = None
    by_chance: float | None = None  # what the same attack reached on random numbers

    def __post_init__(self) -> None:
        _fits(self.low <= self.high, "low", f"is {self.low}; it lies above the other end, {self.high}")
        inside = self.value is None or self.low <= self.value <= self.high
        _fits(inside, "value", f"is {self.value}; it does not lie within its interval")
        _fits((self.hits is None) == (self.of is None), "of", f"is {self.of}; it must be given together with `hits`")
        fewer = self.hits is None or self.of is None or self.hits <= self.of
        _fits(fewer, "hits", f"is {self.hits}; it must be from 0 to {self.of}")


class Attempt(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was tried: which attack, on which claim, against whom, and how hard."""

    attack: str
    threat_model: str
    adversary: str
    claim: str
    refuted_from: Amount
    confidence: Annotated[float, Meta(ge=0.5, lt=1)]
    baseline: bool
    effort: str = ""  # as the plan asks for it
    helpers: Count = 0  # parties that gave the adversary all they hold
    liars: Count = 0  # malicious parties, which sent what the attack made
    canaries: Count = 0  # artificial documents that were drawn for each party
    without: Count = 0  # parties that took no part in the second run, with which the first is compared
    tests: Annotated[int, Meta(ge=1)] = 1  # of a claimed epsilon in this audit; the confidence is corrected for all
    bound: Mapping[str, str] = {}  # hashes of all that this result depends on, by name


class AttackedRun(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """In which run it was tried, and what that run claims."""

    profile: str
    model: str
    name: str = field(default="", name="run")
    setting: str = ""  # in words: parties, documents per answer, rounds
    epsilon: Amount | None = None  # what the run claims; None without differential privacy
    delta: Annotated[float, Meta(ge=0, le=1)] | None = None
    epsilon_unit: str = ""  # what the epsilon protects: document, person, word
    kept: Day = ""  # the day on which it was found, if it was kept and not made again
    cores: Count = 0
    python: str = ""


class AttackOutcome(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What came out: the figures, the control, and the verdict."""

    measured: Measured
    verdict: Verdict
    why: str
    seconds: Amount
    chance: Measured | None = None  # the same attack on random numbers
    beside: tuple[Measured, ...] = ()
    examples: tuple[Example, ...] = ()
    curves: tuple[Curve, ...] = ()
    spent: str = ""  # what of the effort the run had room for


class About(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Texts of the profile, the threat model and the attack about the attempt."""

    title: str
    claimed: bool  # whether the profile makes this claim at all
    accepted: str = ""  # why the threat model accepts that it does not hold; empty if it does not accept this
    sees: tuple[str, ...] = ()
    citation: str = ""
    cost: str = ""
    given: str = ""
    limits: tuple[str, ...] = ()
    remark: str = ""


class Finding(Struct, frozen=True, forbid_unknown_fields=True):
    """One attack on one claim of one profile."""

    attempt: Attempt
    run: AttackedRun
    outcome: AttackOutcome
    about: About

    @property
    def is_claim(self) -> bool:
        """Whether it tried a claim that the profile makes."""
        return self.about.claimed and not self.attempt.baseline

    @property
    def standing(self) -> str:
        """What it is called: `broken` and `open` tell a refuted claim from a leak that nobody promised to close."""
        return standing_of(self.outcome.verdict, claimed=self.is_claim)

    @property
    def leaked(self) -> tuple[Example, ...]:
        """What its examples show: never a document, or a word of one, that did not leak."""
        return tuple(one for one in map(leaked, self.outcome.examples) if one is not None)

    def judged(self, verdict: str, why: str) -> Finding:
        return replace(self, outcome=replace(self.outcome, verdict=verdict, why=why))


class Audit(Struct, frozen=True, forbid_unknown_fields=True):
    """All findings of one plan, and what was left untried."""

    plan: str
    title: str
    run: str
    findings: tuple[Finding, ...]
    not_tried: tuple[str, ...]
    seconds: Amount
    version: str
    reproduce: tuple[str, ...]
    refusals: tuple[RefusalRecord, ...] = ()
    made: Day = ""

    @property
    def refuted_claims(self) -> tuple[Finding, ...]:
        """Claims that a profile makes and an attack refuted."""
        return tuple(one for one in self.findings if one.outcome.verdict == REFUTED and one.is_claim)

    @property
    def broken_promises(self) -> tuple[RefusalRecord, ...]:
        """Attempts that parties should have refused and did not."""
        return tuple(one for one in self.refusals if one.broken)


# ---- one level in files --------------------------------------------------------------------------------------------

Record = TypeVar("Record")
Whole = TypeVar("Whole", bound=Struct)
_PARTS: Mapping[str, type[Struct]] = {one.name: one.type for one in fields(Finding)}
_FIELDS = {name: frozenset(one.encode_name for one in fields(part)) for name, part in _PARTS.items()}
_FIGURE = frozenset(one.encode_name for one in fields(Measured))
_ENDLESS = frozenset({"high", "ceiling", "across", "up"})
_OPTIONAL = frozenset(one.encode_name for part in _PARTS.values() for one in fields(part) if not one.required)
SINGULAR = {"findings": "finding", "refusals": "refusal", "curves": "curve", "examples": "example"}


def plain(record: Any) -> Any:
    """A record as JSON holds it. An infinite end is null there."""
    return msgspec.json.decode(msgspec.json.encode(record))


def flat(finding: Finding) -> dict[str, Any]:
    """A finding as files hold it, all fields on one level."""
    parts: Mapping[str, Mapping[str, Any]] = plain(finding)
    whole = {name: value for part in parts.values() for name, value in part.items()}
    figure = whole.pop("measured")
    return {**whole, **figure}


def without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    """A flat finding without optional fields that are empty."""
    return {name: value for name, value in table.items() if value or name not in _OPTIONAL}


def with_findings(content: Any, kind: type[Whole], computed: Collection[str] = ()) -> Whole:
    """Plain content as a record with a list of findings; a `ValueError` names the place of what does not fit.

    Fields that are `computed` from others are passed over.
    """
    if not isinstance(content, dict):
        raise ValueError("the file must be a table")
    results = content.get("findings", [])
    if not isinstance(results, list):
        raise ValueError("`findings` in the file must be a list")
    findings = tuple(_finding_in(one, f"finding {n}", computed) for n, one in enumerate(results, start=1))
    rest = {name: () if name == "findings" else value for name, value in content.items() if name not in computed}
    return replace(decoded(rest, kind, "the file"), findings=findings)


def _finding_in(table: Any, where: str, computed: Collection[str]) -> Finding:
    if not isinstance(table, dict):
        raise ValueError(f"{where} must be a table")
    rest = _with_ends({name: value for name, value in table.items() if name not in computed})
    figure = {name: rest.pop(name) for name in _FIGURE if name in rest}
    parts = {part: {name: rest.pop(name) for name in names if name in rest} for part, names in _FIELDS.items()}
    for name in rest:
        raise ValueError(f"there is no field called {name!r} in {where}")
    return decoded({**parts, "outcome": {**parts["outcome"], "measured": figure}}, Finding, where)


def _with_ends(content: Any, name: str = "") -> Any:
    """Turns null into infinity where it is the end of an interval or a point of a curve: JSON has no infinity."""
    if isinstance(content, dict):
        return {each: _with_ends(value, each) for each, value in content.items()}
    if isinstance(content, list):
        return [_with_ends(value, name) for value in content]
    return math.inf if content is None and name in _ENDLESS else content


def decoded(content: Any, kind: type[Record], where: str) -> Record:
    """Plain content as a record of this kind; a `ValueError` names the place of what does not fit."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as problem:
        said, _, way = str(problem).partition(" - at ")
        steps = [step for step in way.strip("`").split(".")[1:] if step not in (*_PARTS, "measured")]
        place = f"`{'.'.join(steps)}` in {where}" if steps else where
        raise ValueError(f"{place}: {said[:1].lower()}{said[1:]}") from problem
