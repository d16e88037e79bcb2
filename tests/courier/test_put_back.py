"""Folders that are put back from old copies, and sessions that are lost: a new session begins, and the model is the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ..federation.joined import NAMES
from .passing import MOST_PASSES, ByCourier
from .test_faults import SHORT, under_way

pytestmark = [pytest.mark.own_draws, pytest.mark.faults]
EARLY, LATE = (1, 3), (4, 8)  # turns: both in the set-up; after it, and after the question about words


def disturbed(run: ByCourier, at: dict[int, Callable[[], None]]) -> int:
    """Turns of everybody until all have the model, with something done before some. Returns how many there were."""
    for turn in range(MOST_PASSES):
        at.get(turn, lambda: None)()
        run.serve()
        for name in NAMES:
            run.party(name)
        if not under_way(run):
            return turn
    raise AssertionError(run.said)


def copied(what: Path, to: Path) -> Callable[[], None]:
    return lambda: shutil.copytree(what, to, symlinks=True) and None


def put_back(what: Path, copy: Path) -> Callable[[], None]:
    def work() -> None:
        shutil.rmtree(what)
        shutil.copytree(copy, what, symlinks=True)

    return work


@pytest.mark.parametrize(("member", "turns"), [("coordinator", LATE), (NAMES[1], EARLY)])
def test_a_folder_that_is_put_back(member: str, turns: tuple[int, int], keys: Path, tmp_path: Path) -> None:
    """A party that lost a round that counted is refused, as over the network: then the run stops by name."""
    run = ByCourier.of(keys, tmp_path, SHORT)
    what = run.run if member == "coordinator" else run.organisations.home(member)
    first, last = turns
    assert disturbed(run, {first: copied(what, tmp_path / "copy"), last: put_back(what, tmp_path / "copy")}) > 12
    assert run.models() == {run.simulated()}


def test_a_session_that_does_not_come_to_where_it_was(keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT)

    def another_version() -> None:
        journal = run.run / "courier" / "journal"
        content = bytearray(journal.read_bytes())
        content[200] ^= 1
        journal.write_bytes(content)

    disturbed(run, {LATE[1]: another_version})
    assert run.models() == {run.simulated()}
