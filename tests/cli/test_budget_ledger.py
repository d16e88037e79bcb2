"""`securetm budget ledger`: what was spent run by run, what is no ledger, and how a party allows more."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.accounting.ledger import Ledger
from securetm.contracts import Budget, Unit

from .calculated import budget, found, write_ledger


def test_a_ledger_says_what_was_spent_run_by_run(tmp_path: Path) -> None:
    path = tmp_path / "north.ledger"
    write_ledger(path, "first", "second")
    with Ledger.open(path, "north", Budget(Unit.DOCUMENT, 3.0, 1e-5), "news") as ledger:
        ledger.witness(*ledger.head, {"south": b"signed", "west": b"signed"})
    before = path.read_bytes()
    result = found(f"ledger {path}")
    with Ledger.read(path) as ledger:
        assert result["epsilon"] == ledger.spent().epsilon
        assert result["ledger"]["head"] == ledger.head[1].hex()
    assert path.read_bytes() == before
    assert [run["run"] for run in result["runs"]] == ["first", "second"]
    assert result["ledger"]["budget"] == 3
    assert result["ledger"]["countersigned"] == 2
    assert (result["unit"], result["delta"], result["sampling"]) == ("document", 1e-5, "poisson")
    spent, limit = result["plots"][0]["lines"]
    assert spent["points"][-1] == [12, pytest.approx(result["epsilon"])]
    assert {y for _, y in limit["points"]} == {3}


def test_a_party_allows_more_by_an_entry_in_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "north.ledger"
    Ledger.open(path, "north", Budget(Unit.DOCUMENT, 3.0, 1e-5)).close()
    assert found(f"ledger {path} --allow 5")["ledger"]["budget"] == 5.0
    with Ledger.read(path) as ledger:
        assert [entry.content["kind"] for entry in ledger.entries()] == ["opened", "budget"]
    assert budget(f"ledger {path} --allow -1").code == 2
    assert budget(f"ledger {tmp_path / 'absent.ledger'} --allow 5").code in (2, 3)
    assert not (tmp_path / "absent.ledger").exists()
