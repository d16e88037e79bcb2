"""What `securetm budget ledger` says of a ledger whose end is gone, and of one that peers have just signed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.accounting.ledger import Ledger
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin, check_all
from securetm.federation.simulation.simulation import execute, make_party
from securetm.stages import Unwatched

from ..accounting.ledger.test_tampering import behind_its_back
from ..cli.conftest import securetm
from .private import private_plan


@pytest.fixture(scope="module")
def finished(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """An ordinary run of two rounds."""
    place = tmp_path_factory.mktemp("ledgers")
    folder = begin(place / "run", private_plan(place, "dp-local", training__rounds=2), five)
    execute(folder, Unwatched())
    return folder


def test_after_an_ordinary_run_everybody_has_signed_where_the_ledgers_stand(finished: RunFolder) -> None:
    for name in finished.members:
        with Ledger.read(finished.ledger(name)) as ledger:
            assert (name, ledger.head[0], ledger.witnessed()) == (name, 5, len(finished.members) - 1)
    assert "Peers who countersigned the present head: 4." in " ".join(said(finished.ledger("north")).split())


def said(ledger: Path) -> str:
    told = securetm("budget", "ledger", str(ledger))
    return told.out + told.err


def test_a_folder_shows_the_ledgers_in_it(finished: RunFolder, tmp_path: Path) -> None:
    whole = securetm("budget", "ledger", str(finished.path), "--json").json["ledgers"]
    assert [one["ledger"]["party"] for one in whole] == list(finished.members)
    assert whole[0]["ledger"]["compared_with"] == ["02-south", "03-west", "04-east", "05-centre", "the run's own record"]
    assert len(securetm("budget", "ledger", str(finished.ledgers), "--json").json["ledgers"]) == 5
    refused = securetm("budget", "ledger", str(finished.path), "--allow", "9")
    assert (refused.code, refused.out) == (2, "")
    make_party(finished, "north").close()
    check_all(finished.path)  # nothing of it changed what the run keeps, its ledgers among it
    empty = securetm("budget", "ledger", str(tmp_path))
    assert empty.code == 2
    assert "--ledgers" in empty.err


def test_a_ledger_whose_end_is_cut_off_is_not_called_whole(finished: RunFolder) -> None:
    """Those who cut it off cut the signatures in it off, too; the other parties' files and the run's record still know."""
    path = finished.ledger("north")
    assert "whole" not in said(path)
    behind_its_back(path, "DELETE FROM entries WHERE number = 5", "DELETE FROM witnesses")
    told = said(path)
    assert "holds 4 entries, and not the history of 5 entries that" in " ".join(told.split())
    for memory in path.parent.glob("*.others"):
        memory.unlink()
    assert "history of 5 entries that the run's own record saw" in " ".join(said(path).split())
    (finished.path / "result.json").unlink()
    alone = " ".join(said(path).split())
    assert "no file beside it records an earlier head" in alone
    assert "whole" not in alone
