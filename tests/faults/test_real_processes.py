"""Six real processes behind a relay, of which one has a full disk: with room again, the model is that of an undisturbed run."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from .processes import COORDINATOR, Site, until
from .relay import CUT, DOWN, PASS, UP, Strike

pytestmark = pytest.mark.faults
ROUNDS = 40


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The model of a run without faults."""
    site = Site.of(tmp_path_factory.mktemp("site") / "trial", rounds=ROUNDS)
    try:
        site.start_all()
        assert set(site.finish().values()) == {0}, site.standing()
        return site.model
    finally:
        site.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site.of(tmp_path / "trial", rounds=ROUNDS, deadline=8)
    yield made
    made.close()


@pytest.mark.parametrize("role", [COORDINATOR, "scipy"])
def test_a_full_disk_is_named_and_nothing_is_lost(role: str, site: Site, undisturbed: bytes) -> None:
    """No file of that role may grow beyond a few pages. With room again, the run goes on."""
    site.start(*(name for name in (COORDINATOR, *site.trial.parties) if name != role))
    site.start(role, limits={resource.RLIMIT_FSIZE: 100_000})
    ended = until(site.ended, site.standing)
    assert {site.running[name].ended() for name in ended} <= {2, 3}
    assert any(
        "cannot be written" in site.running[name].said() or "refused: Failed" in site.running[name].said() for name in ended
    )
    for name in {*ended, role}:
        site.killed(name)
    assert set(site.finish().values()) == {0}, site.standing()
    assert site.model == undisturbed


BETWEEN = 20_000  # bytes of a party between two faults, at most: a round and a half, or half of a set-up


KINDS = ("cut", "party killed", "coordinator killed", "both killed", "frozen")


def befalls(site: Site, kind: str, party: str) -> None:
    """What a fault is, besides the bytes at which it strikes."""
    if kind == "party killed":
        site.killed(party)
    elif kind == "coordinator killed":
        site.killed(COORDINATOR)
    elif kind == "both killed":
        site.killed(party, COORDINATOR)
    elif kind == "frozen":
        site.frozen(party)


def until_struck(site: Site, kept: int, strike: Strike) -> None:
    """The strike happens, after so many kept rounds."""
    site.until_kept(kept)
    assert site.struck(strike), site.standing()


@pytest.mark.parametrize(("seed", "faults"), [(1, 12), (2, 12)])
def test_random_faults_end_with_the_same_model(seed: int, faults: int, site: Site, undisturbed: bytes) -> None:
    rng, befell = np.random.default_rng(seed), list[str]()
    site.start_all()
    while len(befell) < faults and not site.is_over():
        site.until_kept(min(site.kept() + 1, ROUNDS))
        kind, party = KINDS[int(rng.integers(len(KINDS)))], site.trial.parties[int(rng.integers(5))]
        direction, size = (UP, DOWN)[int(rng.integers(2))], int(rng.integers(1, BETWEEN))
        if site.struck(Strike(party, direction, size, CUT if kind == "cut" else PASS)):
            befalls(site, kind, party)
            befell.append(f"{kind} {party} {direction} {size}")
            print(befell[-1], site.kept(), flush=True)
    assert set(site.finish().values()) == {0}, site.standing()
    assert site.model == undisturbed
    assert len(befell) >= faults // 2, befell


def test_a_connection_cut_in_the_middle_of_a_vector(site: Site, undisturbed: bytes) -> None:
    """Half a reply enters no sum: the party sends it again on its next connection."""
    site.start_all()
    for kept, (party, direction) in enumerate(zip(site.trial.parties, (UP, DOWN, UP, DOWN, UP), strict=True), 1):
        until_struck(site, kept, Strike(party, direction, 1300 * kept))
    assert set(site.finish().values()) == {0}, site.standing()
    assert site.model == undisturbed
