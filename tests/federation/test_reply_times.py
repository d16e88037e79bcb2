"""When replies leave where a privacy budget is spent: by clocks that the test moves, so no machine is too slow for it.

The runs are real: the coordinator's own code asks, and each party has a ledger. Only the parties' clocks are not.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.party.reply_times import FINEST, PacedParty, SystemClock, on_grid
from securetm.federation.simulation.simulation import InProcess, make_party, train
from securetm.federation.wire import wire
from securetm.stages import Unwatched

from .clocked import MEASURED, OTHERWISE, PER_DOCUMENT, Hands, Overheard
from .conftest import small_plan
from .private import private_plan

ROUNDS = 12


def overheard(run: RunFolder, **how: Any) -> list[Overheard]:
    """Trains the run with paced parties, and returns what the network saw of each."""
    parties = {name: Overheard(make_party(run, name), **how) for name in run.members}
    train(run, Unwatched(), parties=InProcess(parties))  # type: ignore[arg-type]
    return list(parties.values())


@pytest.fixture(scope="module")
def paced(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, list[Overheard]]:
    """A run under a budget, and what the network saw of it."""
    folder = tmp_path_factory.mktemp("paced")
    run = begin(folder / "run", private_plan(folder, "dp-distributed", training__rounds=ROUNDS), five)
    return run, overheard(run)


@pytest.fixture
def budgeted(five: Mapping[str, Corpus], tmp_path: Path) -> RunFolder:
    return begin(tmp_path / "run", private_plan(tmp_path, "dp-distributed", training__rounds=ROUNDS), five)


def test_times_of_the_grid_are_powers_of_two() -> None:
    assert [on_grid(seconds) for seconds in (0.0, FINEST, FINEST * 1.01, 0.3, 1.0, 1.01)] == [FINEST, FINEST, 0.125, 0.5, 1, 2]


def test_answers_leave_after_the_same_time_whatever_the_coins_chose(paced: tuple[RunFolder, list[Overheard]]) -> None:
    for one in paced[1]:
        whole, sampled = one.read[:MEASURED], one.read[MEASURED:]
        assert whole[0] == whole[1] > max(sampled)  # measured with all documents
        assert len(set(sampled)) > 1  # the coins chose other numbers of them
        interval = one.paced.interval
        assert interval is not None
        assert interval == on_grid(interval) >= 2 * PER_DOCUMENT * whole[0]
        assert len(one.after["train"]) == ROUNDS
        assert all(interval <= after < interval + OTHERWISE for after in one.after["train"])
        assert one.paced.overruns == 0


@pytest.mark.slow
def test_composing_losses_is_in_no_answer_of_the_training(budgeted: RunFolder) -> None:
    """It would make the interval of the whole run as long as the slowest composition, which a loaded machine stretches."""
    for one in overheard(budgeted, composing=10_000.0):
        assert one.paced.interval == on_grid(one.paced.interval or 0.0) < 10_000
        assert one.paced.overruns == 0


@pytest.mark.slow
def test_without_an_interval_the_time_is_the_size_of_the_sample(budgeted: RunFolder) -> None:
    for one in overheard(budgeted, waiting=False):
        assert [round(after / PER_DOCUMENT) for after in one.after["train"]] == one.read[MEASURED:]


def test_the_list_of_words_is_accepted_at_a_time_of_the_grid(paced: tuple[RunFolder, list[Overheard]]) -> None:
    for one in paced[1]:
        (after,) = one.after["adopt"]  # it holds the measuring, which depends on how many documents there are
        assert on_grid(after - OTHERWISE) <= after < on_grid(after - OTHERWISE) + OTHERWISE


@pytest.mark.slow
def test_an_answer_that_takes_longer_doubles_the_interval(budgeted: RunFolder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parties = overheard(budgeted, slow=MEASURED + 3)
    late = [one for one in parties if one.paced.overruns]
    assert late  # the fourth answer, where its sample was not tiny
    assert caplog.text.count("took longer than the interval") == len(late)
    for one in late:
        after, interval = one.after["train"], one.paced.interval
        assert interval is not None
        assert one.paced.overruns == 1
        assert all(abs(early - after[0]) < OTHERWISE for early in after[:3])
        assert all(interval <= later < interval + OTHERWISE for later in after[3:])
        assert round(interval / after[0]) in {2**doublings for doublings in range(1, 10)}


@pytest.mark.slow
def test_a_refused_question_sets_no_interval(budgeted: RunFolder) -> None:
    """Otherwise a coordinator that asks too early makes the interval so short that each answer shows how long it took."""
    parties = {name: Overheard(make_party(budgeted, name)) for name in budgeted.members}
    session = bytes(32)
    for one in parties.values():
        agreement = one.party.agreement
        invite = wire.Invite(agreement.digest, agreement.profile.digest, one.party.members, 0)
        early = wire.Ask("train", 0, 1, one.party.members, bytes(32), {}, False)
        for body in (invite, early):
            one.handle(wire.pack_request(session, body))
        assert one.paced.interval is None
        assert len(one.after.pop("train")) == 1
    train(budgeted, Unwatched(), parties=InProcess(parties))  # type: ignore[arg-type]
    for one in parties.values():
        assert one.paced.overruns == 0
        assert one.paced.interval is not None
        assert all(one.paced.interval <= after < one.paced.interval + OTHERWISE for after in one.after["train"])


def test_a_restarted_party_keeps_its_interval(paced: tuple[RunFolder, list[Overheard]]) -> None:
    run, before = paced
    for name, interval in {one.party.name: one.paced.interval for one in before}.items():
        again = PacedParty(make_party(run, name), Hands())
        assert again.interval == interval is not None
        again.close()


def test_nothing_waits_without_a_budget(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    run = begin(tmp_path / "run", small_plan(profile="masked", model__batch=64, training__rounds=3), five)
    for one in overheard(run):
        assert one.paced.interval is None
        assert max(one.after["adopt"]) < OTHERWISE
        assert [round(after / PER_DOCUMENT) for after in one.after["train"]] == one.read  # no answer was measured


def test_a_stopped_clock_waits_for_nothing() -> None:
    clock = SystemClock()
    clock.stopped.set()
    begun = clock.now()
    clock.wait(3600.0)
    assert clock.now() >= begun
