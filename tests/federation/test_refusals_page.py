"""The page that says what each refusal depends on, held against the code: no refusal of a party is missing from its table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import securetm
from securetm.errors import Refused, error_classes
from securetm.resources import data_folder

FACTS = {"message", "session", "keys", "ledger", "disk"}
COORDINATORS = {"coordinator.py"}  # what no party runs, beside classes that say so in their name
PAGE = (data_folder("protocols") / "refusals.md").read_text("utf-8")
TABLE = {name: facts.split(", ") for name, facts in re.findall(r"^\| `(\w+)` \| .* \| ([\w, ]+) \|$", PAGE, re.MULTILINE)}
ALL = {name for name, kind in error_classes().items() if issubclass(kind, Refused)} - {Refused.__name__}
OURS = [
    path
    for room in ("federation", "sessions", "aggregation", "models", "mechanisms", "accounting", "corpus")
    for path in sorted((Path(securetm.__file__).parent / room).rglob("*.py"))
]


def named_in(path: Path) -> Iterator[str]:
    """Every refusal that this file speaks of in code."""
    whole = ast.parse(path.read_text("utf-8")).body
    parties = (one for one in whole if not (isinstance(one, ast.ClassDef) and "Coordinator" in one.name))
    for node in (node for one in parties for node in ast.walk(one)):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in ALL:
            yield name


@pytest.mark.slow
def test_every_refusal_that_a_party_can_send_is_in_the_table() -> None:
    sent = {name for path in OURS if path.name not in COORDINATORS for name in named_in(path)}
    assert sent
    assert sorted(sent - set(TABLE)) == []


def test_every_other_refusal_is_said_to_be_the_coordinators() -> None:
    (said,) = re.findall(r"^Refusals of the coordinator.*: (.*)\.$", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", said)) == sorted(ALL - set(TABLE))


def test_the_table_names_refusals_that_there_are_and_public_facts_only() -> None:
    assert sorted(set(TABLE) - ALL) == []
    assert {fact for facts in TABLE.values() for fact in facts} <= FACTS
