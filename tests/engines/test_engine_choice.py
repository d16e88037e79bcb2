"""`[engine]` makes an engine by name, and tells its mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from securetm.engines import EngineChoice
from securetm.errors import BadSetting, NotFound


def test_without_a_choice_answers_are_made_in_this_process() -> None:
    assert EngineChoice().make().workers == 1


@pytest.mark.parametrize(
    ("table", "kind", "said"),
    [
        ({"kind": "in-proces"}, NotFound, "no engine called 'in-proces'"),
        ({"kind": "in-process", "worker": 2}, NotFound, "setting of \\[engine\\]"),
        ({}, BadSetting, "`kind` in \\[engine\\] is missing"),
        ({"kind": 3}, BadSetting, "`kind` in \\[engine\\] is 3"),
        (3, BadSetting, "must be a table \\[engine\\]"),
    ],
)
def test_mistakes_are_named(table: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        EngineChoice.of(table)
