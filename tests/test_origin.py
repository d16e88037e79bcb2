"""An origin as data: what it refuses, that it comes back from its text, and that a product has those of its inputs."""

from __future__ import annotations

import json

import pytest

from securetm.contracts import Unit
from securetm.contracts.origin import Origin, OriginKind, PaidEntry, StartingInput, origin_of_product

FIRST = PaidEntry("first 1a", Unit.DOCUMENT, 1.0, 1e-5, ("north", "south"))
SECOND = PaidEntry("second 2b", Unit.DOCUMENT, 0.5, 1e-5, ("south", "west"), simulated=True)
LIST = StartingInput("vocabulary", "/srv/words.txt", Origin.public("the glossary of 2020"), declared=True)


@pytest.mark.parametrize(
    "origin",
    [Origin.public("why"), Origin.unbounded("masked"), Origin.paid([FIRST, SECOND], ["a list: why"])],
)
def test_an_origin_comes_back_from_its_text(origin: Origin) -> None:
    assert Origin.of_text(origin.as_text()) == origin


@pytest.mark.parametrize("text", ["", "3", "{}", "null", '{"kind": "public", "reason": "", "entries": [], "rests_on": []}'])
def test_a_text_that_is_no_origin_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Origin.of_text(text)


@pytest.mark.parametrize("change", [{"epsilon": -1.0}, {"epsilon": float("inf")}, {"delta": 1.0}, {"parties": []}, {"run": ""}])
def test_an_entry_that_no_run_spent_is_refused(change: dict[str, object]) -> None:
    facts = Origin.paid([FIRST]).facts()
    facts["entries"][0] |= change
    with pytest.raises(ValueError, match=r".*"):
        Origin.of_text(json.dumps(facts))


def test_what_a_run_writes_has_the_entries_and_the_reasons_of_its_inputs() -> None:
    first = origin_of_product(FIRST, [LIST], "")
    assert first.rests_on == ("words.txt: the glossary of 2020",)
    second = origin_of_product(SECOND, [StartingInput("continue_from", "model", first), StartingInput("words", "", first)], "")
    assert second.entries == (FIRST, SECOND)
    assert second.rests_on == first.rests_on


def test_a_run_without_a_budget_or_from_an_unbounded_input_has_an_unbounded_product() -> None:
    assert origin_of_product(None, [LIST], "trained under masked").kind is OriginKind.UNBOUNDED
    open_model = StartingInput("continue_from", "model", Origin.unbounded("trained under open"))
    assert origin_of_product(FIRST, [open_model], "").kind is OriginKind.UNBOUNDED
