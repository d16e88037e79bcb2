"""This version goes on with what the version before wrote: roster, home, ledger, run."""

from __future__ import annotations

import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.credentials.homes import KEYS, accept, accepted_roster, announced, check_accepted
from securetm.credentials.issuing import RosterOperator
from securetm.credentials.keys import Keys
from securetm.credentials.roster import FormerRoster, read_roster, write_roster
from securetm.federation.party.joining import prepare
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

from ..federation.joined import NAMES

BEFORE = Path(__file__).with_name("version-3.tar.xz")
THEN = datetime(2026, 12, 1, tzinfo=UTC)  # their certificates end a year later


@pytest.fixture
def federation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The federation of the version before, at that time."""
    with tarfile.open(BEFORE) as packed:
        packed.extractall(tmp_path / "all", filter="tar")
    for module in ("federation.party.joining", "credentials.issuing"):
        monkeypatch.setattr(f"securetm.{module}.now_utc", lambda: THEN)
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


def renew(federation: Path) -> None:
    """What the operator and every party do once: requests with lasting keys, and the roster of this protocol."""
    path = federation / "coordinator" / "roster.toml"
    operator = RosterOperator(federation / "coordinator" / "home", path, None)
    old, requests = operator.read(), [announced(home(federation, name), None, None) for name in NAMES]
    new = operator.publish(old, operator.enrol(old, requests, None, 365))
    for name in NAMES:
        write_roster(federation / "parties" / name / "roster.toml", new)
        accept(home(federation, name), new)


def test_no_run_begins_before_the_roster_is_renewed(federation: Path) -> None:
    with pytest.raises(FormerRoster):
        prepare(federation / "parties" / "numpy" / "PARTY.toml", lambda _: None, Unwatched())


def test_the_party_is_ready_to_join(federation: Path) -> None:
    renew(federation)
    joining = prepare(federation / "parties" / "numpy" / "PARTY.toml", lambda _: None, Unwatched())
    assert set(joining.runs()) == set(spent(federation))  # found by what the documents say


def test_the_ledger_goes_on(federation: Path) -> None:
    (path,) = home(federation).glob("ledgers/*/*.ledger")
    with Ledger.reopen(path) as ledger:
        ledger.record("the next run", Spend(GaussianDpEvent(100.0)), {"profile": "dp-local"})
    assert list(spent(federation).values()) == [2, 1]
