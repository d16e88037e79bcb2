"""Processes that stay: a place that is away for a while is told once and tried again; a wrong clock stops nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from securetm.credentials.certificates import CertificateExpired, CertificateNotYetValid
from securetm.errors import SecuretmError
from securetm.federation.coordinator import serving
from securetm.federation.courier.coordinator_end import served_by_courier
from securetm.federation.courier.journal import Paused
from securetm.federation.courier.party_end import carrier_of
from securetm.federation.courier.places import LocalFolder
from securetm.federation.party import joining
from securetm.federation.party.joining import join
from securetm.federation.party.status import JoinStatus

from ..federation.joined import NAMES, WAIT
from .passing import ByCourier
from .test_faults import SHORT

pytestmark = pytest.mark.own_draws
EVERY = 0.05  # seconds between two looks


def until(condition: Callable[[], bool]) -> None:
    """Waits for what processes do, and no longer than a test may."""
    waited = threading.Event()
    for _ in range(int(WAIT / EVERY)):
        if condition():
            return
        waited.wait(EVERY)
    raise AssertionError(condition)


def test_a_folder_that_is_away_for_a_while_ends_no_process(keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT)
    lost: list[str] = []
    stop = threading.Event()

    def served() -> int:
        plan, files = run.files()
        with served_by_courier(plan, run.run, files, LocalFolder(run.letters), "securetm serve", every=EVERY) as carried:
            carried.status.tell = lambda _: lost.append("coordinator")
            return int(carried.run()["rounds"])

    def joined(name: str) -> int:
        status = JoinStatus(name, "trial", 1, lambda event, _: lost.append(name) if event == "lost" else None)
        prepared, place = run.prepared(name), LocalFolder(run.letters)
        ended = join(prepared, lambda paced: carrier_of(prepared, place, paced, status, every=EVERY), status, stop)
        return int(ended["rounds"])

    with ThreadPoolExecutor(1 + len(NAMES)) as threads:
        works = [threads.submit(served), *(threads.submit(joined, name) for name in NAMES)]
        try:
            until(lambda: len(list((run.run / "courier" / "in").glob("*"))) >= 8)
            aside = run.letters.rename(tmp_path / "unplugged")
            until(lambda: set(lost) >= {"coordinator", *NAMES})
            aside.rename(run.letters)
            assert [work.result(WAIT) for work in works] == [1] * len(works)
        finally:
            stop.set()
    assert len(lost) == len(set(lost))
    assert run.models() == {run.simulated()}


@pytest.mark.parametrize(("year", "refusal"), [(2070, CertificateExpired), (1990, CertificateNotYetValid)])
def test_letters_need_no_clock(
    year: int, refusal: type[SecuretmError], keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT)
    for place in (joining, serving):
        monkeypatch.setattr(place, "now_utc", lambda: datetime(year, 1, 1, tzinfo=UTC))
    with pytest.raises(refusal):
        run.organisations.prepared(NAMES[0])
    run.serve()
    assert run.party(NAMES[0]).took == run.serve().took == 1


def test_a_clock_that_was_put_back_keeps_no_wave_open(keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT + "[coordinator]\nsurvivors = 4\ncourier_days = 1\n")
    now = [2e9]
    _, *others = NAMES

    def serve(seconds: float) -> int:
        """One look of a process whose clock has gone on so many seconds."""
        now[0] += seconds
        plan, files = run.files()
        with served_by_courier(plan, run.run, files, LocalFolder(run.letters), "securetm post", once=True) as carried:
            carried.parties.clock = lambda: now[0]
            with pytest.raises(Paused):
                carried.run()
            return carried.parties.letters.number

    assert serve(0) == 1
    for name in others:
        run.party(name)
    assert serve(0) == serve(-1e9) == 1
    assert serve(86_000) == 1
    assert serve(500) == 2
