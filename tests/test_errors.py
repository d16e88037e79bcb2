"""Every failure is a sentence that holds only facts it has, and counts one thing as one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from string import Formatter

import pytest

from securetm.accounting.ledger.ledger_file import LedgerRolledBack
from securetm.errors import NoSuchPath, error_classes, named_in


def test_a_sentence_names_only_what_it_has() -> None:
    for name, kind in error_classes().items():
        has = {one.name for one in fields(kind)} if is_dataclass(kind) else set()
        for text in (kind.__doc__ or "", kind.hint):
            named = {fact.partition(".")[0] for _, fact, _, _ in Formatter().parse(text) if fact is not None}
            assert named <= has, name


def test_one_is_one_and_none_are_several() -> None:
    said = [str(LedgerRolledBack("north.ledger", have, 3)) for have in (0, 1, 2)]
    assert ["holds 0 entries" in said[0], "holds 1 entry," in said[1], "holds 2 entries" in said[2]] == [True] * 3


def test_a_file_is_suggested_only_if_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").touch()
    (tmp_path / "plan.toml").symlink_to("plan.toml")
    assert "did you mean" in NoSuchPath(str(tmp_path / "note.jsonl")).advice()
    assert "did you mean" not in NoSuchPath(str(tmp_path / "plan.toml")).advice()


def test_a_file_that_another_names_is_sought_beside_that_one(tmp_path: Path) -> None:
    party, roster = tmp_path / "PARTY.toml", tmp_path / "roster.toml"
    with pytest.raises(NoSuchPath) as absent, named_in(party, roster):
        raise NoSuchPath(str(roster))
    assert f"in {party}, which names it; a path there is relative to the folder of that file" in absent.value.advice()
    with pytest.raises(NoSuchPath) as other, named_in(party, roster):
        raise NoSuchPath("words.txt")
    assert "relative to the folder you are in" in other.value.advice()
