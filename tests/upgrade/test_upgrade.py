"""This version goes on with what the version before wrote: roster, home, ledger, run."""

from __future__ import annotations

import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from securetm.accounting.ledger import Ledger
from securetm.credentials.homes import KEYS, accepted_roster, check_accepted
from securetm.credentials.keys import Keys
from securetm.credentials.roster import read_roster
from securetm.federation.party.joining import prepare
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

from ..federation.joined import NAMES, Organisations, trained

BEFORE = Path(__file__).with_name("version-3.tar.xz")
THEN = datetime(2026, 12, 1, tzinfo=UTC)  # their certificates end a year later


@pytest.fixture
def federation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The federation of the version before, at that time."""
    with tarfile.open(BEFORE) as packed:
        packed.extractall(tmp_path / "all", filter="tar")
    monkeypatch.setattr("securetm.federation.party.joining.now_utc", lambda: THEN)
    monkeypatch.chdir(tmp_path / "all")  # the list of words lies here
    return tmp_path / "all"


def home(federation: Path, name: str = "numpy") -> Path:
    return federation / "parties" / name / "home"


def spent(federation: Path, name: str = "numpy") -> dict[str, int]:
    """How many answers each run has paid for."""
    (path,) = home(federation, name).glob("ledgers/*/*.ledger")
    with Ledger.read(path) as ledger:
        return {account.run: sum(account.answers.values()) for account in ledger.runs()}


def test_keys_roster_and_ledger_are_read(federation: Path) -> None:
    for name in NAMES:
        roster, keys = accepted_roster(home(federation, name)), Keys.open(home(federation, name) / KEYS)
        assert roster is not None
        assert roster.member(name).identity == keys.public_identity
        check_accepted(home(federation, name), read_roster(federation / "parties" / name / "roster.toml"))
        assert list(spent(federation, name).values()) == [2]


def test_the_run_is_shown(federation: Path) -> None:
    own = FinishedRun.open(next(home(federation).glob("data/notes/runs/*")))
    shared = FinishedRun.open(federation / "coordinator" / "run")
    assert own.topics(3) == shared.topics(3)


def test_the_party_is_ready_to_join(federation: Path) -> None:
    joining = prepare(federation / "parties" / "numpy" / "PARTY.toml", lambda _: None, Unwatched())
    assert set(joining.runs()) == {joining.run_name}  # what the ledger calls that run is the same


@pytest.mark.slow
def test_the_next_run_is_paid_for_by_the_same_ledgers(federation: Path, tmp_path: Path) -> None:
    plan = (federation / "parties" / "numpy" / "plan.toml").read_text("utf-8").replace("seed = 0", "seed = 1")
    for name in NAMES:
        (federation / "parties" / name / "plan.toml").write_text(plan, "utf-8")
    _, joined = trained(Organisations(federation, plan), tmp_path / "coordinator")
    assert joined.problems == {}
    assert list(spent(federation).values()) == [2, 2]
