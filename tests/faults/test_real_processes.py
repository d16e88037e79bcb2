"""Six real processes behind a relay, of which one has a full disk: with room again, the model is that of an undisturbed run."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import COORDINATOR, Site, until

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
