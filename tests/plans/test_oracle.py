"""Plans come to the settings, terms, noise and spends that they came to when the record was made."""

from __future__ import annotations

import pytest

from tests.plans.oracle import cases, committed, plain, resolved
from tests.quick_part import quick

FEW = [
    ("lda-vi", "dp-distributed", "long", "person"),
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
    assert plain(resolved(model, profile, length, unit)) == committed(f"{model} {profile} {length} {unit}")
