"""Plans come to the settings, terms, noise and spends that they came to when the record was made."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.plans.oracle import cases, committed, plain, resolved
from tests.quick_part import quick

FEW = [
    ("lda-vi", "dp-distributed", "short", "document"),
    ("lda-vi", "dp-distributed", "long", "person"),
    ("lda-vi", "dp-distributed", "german", "document"),
    ("lda", "masked", "long", "document"),
    ("prodlda", "masked", "epochs", "document"),
    ("prodlda", "fortress", "long", "person"),
    ("nmf", "dp-local", "short", "document"),
    ("moments", "dp-central", "short", "document"),
    ("zeroshot-tm", "iftm", "long", "document"),
    ("fednmf", "bfv", "long", "document"),
]


@pytest.mark.parametrize(("model", "profile", "length", "unit"), quick(cases(), *FEW))
def test_a_plan_comes_to_what_it_came_to(model: str, profile: str, length: str, unit: str) -> None:
    assert with_room(plain(resolved(model, profile, length, unit))) == committed(f"{model} {profile} {length} {unit}")


NOISE_IS_FOUND_TO = 2e-4  # where an array lies in memory moves the last digit of a composed loss, and this much of the noise
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]\d+)?")


def with_room(found: Any) -> Any:
    """The same, whose broken numbers equal those that differ by no more than the search for the noise does."""
    if isinstance(found, dict):
        return {name: with_room(one) for name, one in found.items()}
    if isinstance(found, list):
        return [with_room(one) for one in found]
    if isinstance(found, float):
        return pytest.approx(found, rel=NOISE_IS_FOUND_TO)
    return Described(found) if isinstance(found, str) else found


class Described(str):
    """A text that equals another one with the same words and about the same numbers."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        numbers = [[float(one) for one in _NUMBER.findall(str(text))] for text in (self, other)]
        return _NUMBER.sub("#", str(self)) == _NUMBER.sub("#", str(other)) and numbers[0] == pytest.approx(
            numbers[1], rel=NOISE_IS_FOUND_TO
        )

    __hash__ = str.__hash__
