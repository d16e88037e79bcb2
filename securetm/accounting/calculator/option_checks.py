"""Checks the numbers given to the budget calculator: the range of each option, and what to give instead. No budgets."""

from __future__ import annotations

import math

from securetm.data_classes import dataclass
from securetm.errors import BadSetting

MOST_STEPS = 10**8
_BY_WORD = "give one of both: --epsilon-per-word 8 is --scale 0.125, since one occurrence moves one count by one"
_DELTA = "delta is the probability that the promise fails: choose it well below 1 / documents, 1e-6 for example"
_LEAST_DELTA = 1e-300  # the smallest that floating-point arithmetic can compute with


@dataclass(frozen=True)
class Range:
    """The numbers that an option may have; `above` excludes the least one."""

    least: float
    most: float
    instead: str = ""
    above: bool = False
    things: str = ""

    def holds(self, value: float) -> bool:
        """Whether the number is in it; NaN is in no range."""
        return self.least <= value <= self.most and math.isfinite(value) and not (self.above and value == self.least)

    def rule(self) -> str:
        """What follows "it" in a refusal: the range in words."""
        least, things = f"{'above' if self.above else 'at least'} {self.least:,g}", f" {self.things}" if self.things else ""
        return f"must be {least} and " + ("finite" if math.isinf(self.most) else f"at most {self.most:,.0f}{things}")


def _count(most: float, things: str) -> Range:
    return Range(1, most, things=things)


RANGES = {
    "--documents": _count(10**12, "documents"),
    "--batch": _count(10**12, "documents"),
    "--tokens": _count(10**9, "tokens"),
    "--words": _count(10**9, "words"),
    "--vocabulary-size": _count(10**6, "words"),
    "--releases": _count(10**6, "releases"),
    "--rounds": _count(10**8, "rounds"),
    "--documents-per-person": _count(10**9, "documents"),
    "--persons": _count(10**12, "persons"),
    "--document-length": Range(0, 1e6, "give how many words a document has, about; 0: nobody says it", things="words"),
    "--years": _count(100, "years"),
    "--runs-per-year": _count(366, "runs"),
    "--audits-per-year": Range(0, 366, "give how many audits there are in a year", things="audits"),
    "--runs-per-audit": Range(0, 1000, "give how many trainings one audit makes on the documents", things="runs"),
    "--retire-after": Range(0, 100, "give after how many years documents are used no more; 0: never", things="years"),
    "--missing": Range(0, 100_000, "give how many parties may be missing from a sum", things="parties"),
    "--colluding": Range(0, 100_000, "give how many parties may help the adversary", things="parties"),
    "--dimension": _count(10**10, "coordinates"),
    "--parties": _count(100_000, "parties"),
    "--threshold": _count(100_000, "parties"),
    "--noise": Range(0.01, 1e6, "--noise is the deviation of the noise over the clipping bound, 1 for example"),
    "--epochs": Range(0, math.inf, "give how often the documents are gone through, 10 for example", above=True),
    "--epsilon": Range(0, 100, "give the epsilon that may be spent of each document or person, 3 for example", above=True),
    "--epsilon-per-word": Range(1e-6, 1e6, _BY_WORD),
    "--scale": Range(1e-6, 1e6, _BY_WORD),
    "--rate": Range(0, 1, "--rate is the probability that a document takes part in a round; at 1 all of them do", above=True),
    "--l2": Range(0, 2.0**52, "--l2 bounds one document's row in steps of the integer grid; 65536 is usual", above=True),
}


def check(option: str, value: float | None, most: float = math.inf) -> None:
    """Refuses a number outside the range of its option; one that was not given is not checked."""
    allowed = RANGES[option]
    if value is None or (allowed.holds(value) and value <= most):
        return
    raise refused(option, value, f"must be at most {most:,.0f}" if allowed.holds(value) else allowed.rule(), allowed.instead)


def refused(option: str, value: object, problem: str, instead: str = "", known: tuple[str, ...] = ()) -> BadSetting:
    written = f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else value
    return BadSetting(
        "", option, None if written is None else str(written), problem, known, instead or f"give another value with {option}"
    )


def check_choice(option: str, value: str, known: tuple[str, ...]) -> None:
    """One of the known words; nothing is said of an empty one, which means that the option was not given."""
    if value not in known:
        said = tuple(word for word in known if word)
        raise refused(option, value, "", f"known: {', '.join(said)}", said)


def check_delta(delta: float, pure: bool = False) -> None:
    """A probability below one; zero only where noise allows a pure epsilon."""
    if delta == 0 and not pure:
        raise refused("--delta", delta, "must be above 0, because this noise has no finite epsilon at delta 0", _DELTA)
    if not (delta == 0 or _LEAST_DELTA <= delta < 1):
        raise refused("--delta", delta, f"must be at least {_LEAST_DELTA:g} and below 1", _DELTA)


def remaining(parties: int, threshold: int | None, missing: int | None) -> int:
    """How many parties must remain in a sum, by either of the two options that say it; all of them by default."""
    check("--missing", missing)
    if threshold is not None and missing is not None:
        instead = f"give one of both: --missing {missing} of {parties} parties is --threshold {parties - missing}"
        raise refused("--missing", missing, "cannot be given beside --threshold", instead)
    if missing is not None and missing >= parties:
        problem = f"must be below {parties:,}, the number of parties, because somebody must remain in a sum"
        raise refused("--missing", missing, problem, "give fewer, or more --parties")
    return parties - (missing or 0) if threshold is None else threshold


def check_parties(parties: int, threshold: int, colluding: int) -> None:
    """Some honest party must remain to add noise."""
    check("--parties", parties)
    check("--threshold", threshold)
    if threshold > parties:
        problem = f"must be at most {parties}, the number of parties"
        raise refused("--threshold", threshold, problem, "give how many parties must remain in a sum")
    if colluding < 0:
        raise refused("--colluding", colluding, "must not be negative", "give how many parties may help the adversary")
    if colluding >= threshold:
        problem = f"leaves no honest party among the {threshold} that must remain"
        raise refused("--colluding", colluding, problem, "raise --threshold above --colluding")
