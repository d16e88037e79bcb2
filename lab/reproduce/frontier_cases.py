"""What the frontier of privacy and utility tries: each case is one model on one corpus under one form of noise, with one seed.

Which models there are is said in `contenders.py`. Nothing runs here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from securetm.errors import BadSetting

NO_NOISE, CENTRAL, DISTRIBUTED, LOCAL = "masked", "dp-central", "dp-distributed", "dp-local"
EPSILONS = (0.5, 1.0, 3.0, 8.0)
HELD_OUT, HALF = 0.1, 0.5
PARTIES, HELPERS = 5, 2  # of the federations; so many may help the coordinator under dp-distributed


@dataclass(frozen=True)
class FrontierCase:
    """One row. `judging` is the share of the documents that nobody trains on: they judge the topics."""

    corpus: str
    topics: int
    model: str
    profile: str
    epsilon: float | None
    seed: int
    judging: float = HELD_OUT

    def key(self) -> dict[str, Any]:
        """Its fields, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class FrontierBlock:
    """Cases that differ in model, form of noise, epsilon and seed only."""

    corpus: str
    topics: int
    models: Sequence[str]
    profiles: Sequence[str]
    seeds: Sequence[int]
    epsilons: Sequence[float] = EPSILONS
    judging: float = HELD_OUT

    def cases(self) -> Iterator[FrontierCase]:
        """Every combination; without noise there is no epsilon."""
        for model, profile, seed in product(self.models, self.profiles, self.seeds):
            for epsilon in (None,) if profile == NO_NOISE else self.epsilons:
                yield FrontierCase(self.corpus, self.topics, model, profile, epsilon, seed, self.judging)


def chosen(cases: Iterable[FrontierCase], only: Sequence[str]) -> list[FrontierCase]:
    """The cases that fit every `field=value` of `only`; several values of one field are alternatives."""
    wanted: dict[str, set[str]] = {}
    for one in only:
        field, _, value = one.partition("=")
        wanted.setdefault(field.strip(), set()).add(value.strip())
    found = [case for case in cases if all(_value(case, field, only) in values for field, values in wanted.items())]
    if not found:
        raise BadSetting("reproduce private-frontier", "--only", " ".join(only), "fits no case")
    return found


def _value(case: FrontierCase, field: str, only: Sequence[str]) -> str:
    fields: Mapping[str, Any] = case.key()
    if field not in fields:
        problem = f"must be FIELD=VALUE with one of the fields {', '.join(fields)}"
        raise BadSetting("reproduce private-frontier", "--only", " ".join(only), problem)
    value = fields[field]
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
