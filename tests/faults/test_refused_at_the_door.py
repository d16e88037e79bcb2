"""Real processes that should not come together: each says by name what is wrong, and the others wait undisturbed."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from securetm.credentials.homes import accept
from securetm.credentials.issuing import with_revoked
from securetm.credentials.roster import FederationRoster, read_roster, write_roster
from securetm.trial import files as trial_files

from .processes import COORDINATOR, Running, Site, start, until

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A coordinator that waits for its parties."""
    site = Site.of(tmp_path_factory.mktemp("site") / "trial", rounds=2, patience=600)
    site.start(COORDINATOR)
    until(lambda: site.log("started"), site.standing)
    yield site
    site.close()


@pytest.fixture
def party(waiting: Site, tmp_path: Path) -> Path:
    """The whole folder of a party, which the test may change."""
    name = waiting.trial.parties[0]
    return Path(shutil.copytree(waiting.trial.party(name), tmp_path / name))


def joined(party: Path) -> Running:
    return start(("join", str(party / "PARTY.toml"), "--json"), party)


def another_plan(party: Path) -> None:
    plan = party / "plan.toml"
    plan.write_text(plan.read_text("utf-8").replace("rounds = 2", "rounds = 3"), "utf-8")


def another_profile(party: Path) -> None:
    plan = party / "plan.toml"
    plan.write_text(plan.read_text("utf-8").replace('"masked"', '"masked_strict"'), "utf-8")


def revoking(path: Path, member: int) -> FederationRoster:
    """Writes the next roster there, in which that member is revoked."""
    roster = read_roster(path)
    later = replace(with_revoked(roster, roster.members[member]), version=roster.version + 1)
    write_roster(path, later)
    return later


def another_roster(party: Path) -> None:
    """A later one, in which another member's key is revoked, and which only this party has accepted."""
    later = revoking(party / "roster.toml", -1)
    accept(party / "home", later)


def not_accepted(party: Path) -> None:
    """A later roster that somebody put there, and that this party has not accepted."""
    revoking(party / "roster.toml", -1)


def open_to_others(party: Path) -> None:
    (party / "home" / "keys").chmod(0o755)


def stolen_name(party: Path) -> None:
    """This party's keys under another party's name."""
    file = party / "PARTY.toml"
    file.write_text(file.read_text("utf-8").replace('"numpy"', '"scipy"'), "utf-8")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (another_plan, "hold different plans"),
        (another_profile, "hold different plans"),
        (another_roster, "hold different rosters"),
        (not_accepted, "accept"),
        (open_to_others, "others"),
        (stolen_name, "scipy"),
    ],
)
def test_a_party_with_something_wrong_ends_with_its_name(
    change: Callable[[Path], None], sentence: str, party: Path, waiting: Site
) -> None:
    change(party)
    running = joined(party)
    assert running.ended() in (2, 3)
    assert sentence in " ".join(running.said().split())
    assert waiting.running[COORDINATOR].process.exitcode is None


def test_one_party_twice(party: Path, waiting: Site) -> None:
    """From the same home the second process ends; from a copy of it, it waits until the first one has gone."""
    name = waiting.trial.parties[0]
    waiting.start(name)
    until(lambda: waiting.log("connected"), waiting.standing)
    second = joined(waiting.trial.party(name))
    assert second.ended() == 2
    copy = joined(party)
    until(lambda: "AlreadyConnected" in copy.said() or "connected already" in copy.said(), copy.said)
    copy.signal(signal.SIGTERM)
    assert copy.ended() != 0
    assert len(waiting.log("connected")) == 1
    waiting.running[name].killed()


def test_a_revoked_party_is_not_let_in(tmp_path: Path) -> None:
    """The coordinator has the roster that revokes it; the party has not heard of that."""
    site = Site.of(tmp_path / "trial", rounds=2, patience=600)
    try:
        here, gone = site.trial.coordinator, site.trial.parties[0]
        accept(here / "home", revoking(here / "roster.toml", 0))
        site.start(COORDINATOR, gone)
        assert site.running[gone].ended() in (2, 3), site.standing()
        assert not site.log("connected")
    finally:
        site.close()


@pytest.mark.parametrize(("days", "sentence"), [(-4000, "ended"), (3, "from")])
def test_wrong_clocks_are_named(days: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates that have ended, or that begin in the future: both ends say so before they connect."""
    monkeypatch.setattr(trial_files, "now_utc", lambda: datetime.now(UTC) + timedelta(days=days))
    site = Site.of(tmp_path / "trial", rounds=2)
    try:
        site.start(COORDINATOR, site.trial.parties[0])
        for running in site.running.values():
            assert running.ended() == 2
            assert "certificate" in running.said()
    finally:
        site.close()
