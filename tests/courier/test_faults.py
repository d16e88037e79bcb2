"""A run by courier comes to the same model whatever its carrier does to the letters, and whenever a member's process ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from securetm.federation.courier.passes import passes_of

from ..federation.joined import NAMES, PLAN
from ..quick_part import quick
from .mischief import Carrier, Killed, Struck
from .passing import MOST_PASSES, ByCourier
from .test_by_courier import check_passes, private

pytestmark = pytest.mark.own_draws
SHORT = PLAN.replace("rounds = 2", "rounds = 1")


def under_way(run: ByCourier) -> bool:
    return any(run.said.get(name) is None or run.said[name].ended is None for name in ("coordinator", *NAMES))


def disturbed(run: ByCourier, seed: int, tmp_path: Path, often: float = 0.6) -> Carrier:
    """Passes until all have the model, with a bad carrier between them and processes that end at any time."""
    rng = np.random.default_rng(seed)
    carrier = Carrier(run.letters, tmp_path / "elsewhere", rng, often)

    def struck(_: str) -> Struck:
        return Struck(run.letters, [int(rng.integers(1, 40))] if rng.random() < 0.15 else [])

    run.place_of = struck
    for _ in range(MOST_PASSES):
        for act in (run.serve, *(lambda name=name: run.party(name) for name in NAMES)):
            with suppress(Killed):
                act()
            carrier()
        if not under_way(run):
            return carrier
    raise AssertionError((carrier.befell, run.said))


@pytest.mark.slow
def test_a_bad_carrier_changes_no_model(keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT)
    carrier = disturbed(run, 1, tmp_path, often=0.35)
    assert run.models() == {run.simulated()}
    assert len(set(carrier.befell)) == 10


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(2, 20))
def test_no_schedule_of_faults_changes_the_model(seed: int, keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT)
    disturbed(run, seed, tmp_path)
    assert run.models() == {run.simulated()}


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(20, 30))
def test_under_a_budget_nothing_is_paid_twice(seed: int, keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, private(tmp_path, "dp-distributed", "moments", 1))
    disturbed(run, seed, tmp_path)
    assert len(run.models()) == 1
    spent = {name: run.organisations.prepared(name).spent() for name in NAMES}
    assert len({str(one and one["epsilon"]) for one in spent.values()}) == 1, spent


@pytest.mark.slow
@pytest.mark.parametrize("answers", quick([2, 3, 4], 4))  # of who is away: within the set-up, after it, within a round
def test_a_run_goes_on_without_a_party_in_no_more_passes_and_hands_it_the_model(
    answers: int, keys: Path, tmp_path: Path
) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT + "[coordinator]\nsurvivors = 4\ncourier_days = 0\n")
    away, *others = NAMES
    for number in range(MOST_PASSES):
        run.serve()
        for name in NAMES if number < answers else others:
            run.party(name)
        if all(run.said[name].ended is not None for name in others):
            break
    assert (run.run / "result.json").is_file()
    assert under_way(run)
    assert run.passes[away] == answers
    assert {run.passes[name] for name in others} == {passes_of(run.prepared(away).agreement)}
    for _ in range(MOST_PASSES):
        run.party(away)
        run.serve()
        if not under_way(run):
            break
    assert not under_way(run)
    assert len(run.models()) == 1


def test_a_letter_of_another_plan_is_not_read_and_is_told(keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT)
    plan = run.organisations.file(NAMES[0]).parent / "plan.toml"
    plan.write_text(plan.read_text("utf-8").replace("n_topics = 3", "n_topics = 4"), "utf-8")
    run.serve()
    assert run.party(NAMES[0]).troubles == {"coordinator": "another plan than here"}
    assert run.party(NAMES[1]).took == 1


def test_the_model_is_there_before_all_say_that_they_have_it(keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, SHORT)
    silent, *others = NAMES
    while not (run.run / "result.json").is_file():
        run.serve()
        for name in NAMES:
            run.party(name)
    for letter in run.letters.iterdir():
        letter.unlink()
    for name in others:
        run.party(name)
    assert len(run.models()) == 1
    assert run.serve().awaited == run.serve().awaited == (silent,)
    assert run.said["coordinator"].trained
    assert run.party(silent).took == 0
    assert run.serve().ended == run.serve().ended is not None
    assert run.models() == {run.simulated()}
    check_passes(run, 12)
