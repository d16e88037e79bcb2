"""A run by letters learns what a run in one process learns, in the passes that are stated. Each pass opens everything anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.federation.courier.passes import passes_of

from ..federation.joined import NAMES, PLAN
from ..federation.private import PUBLIC
from .passing import ByCourier

pytestmark = pytest.mark.own_draws  # every pass opens everything anew
PRIVATE = """
profile = "{profile}"
[model]
name = "{model}"
n_topics = 3
[vocabulary]
source = "file"
file = "{words}"
[origins]
vocabulary = "made up"
[training]
rounds = {rounds}
held_out = 0.2
[privacy]
unit = "document"
"""


def private(folder: Path, profile: str, model: str, rounds: int) -> str:
    (folder / "words.txt").write_text("\n".join(PUBLIC), "utf-8")
    return PRIVATE.format(profile=profile, model=model, rounds=rounds, words=folder / "words.txt")


def check_passes(run: ByCourier, passes: int) -> None:
    """Everybody made as many passes as is stated before a run starts."""
    assert passes_of(run.organisations.prepared("numpy").agreement) == passes
    assert {run.passes[name] for name in NAMES} == {passes}


@pytest.mark.slow
def test_noised_moments_take_six_passes(keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, private(tmp_path, "dp-distributed", "moments", 1))
    run.to_the_end()
    assert len(run.models()) == 1
    check_passes(run, 6)
    assert all(spent["epsilon"] > 0 for name in NAMES if (spent := run.organisations.prepared(name).spent()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "model", "rounds", "passes"),
    [
        ("dp-distributed", "lda-vi", 2, 8),
        ("dp-distributed", "nmf", 2, 8),
        ("dp-central", "lda-vi", 2, 8),
        ("dp-local", "moments", 1, 5),
    ],
)
def test_private_runs_take_the_passes_that_are_stated(
    profile: str, model: str, rounds: int, passes: int, keys: Path, tmp_path: Path
) -> None:
    run = ByCourier.of(keys, tmp_path, private(tmp_path, profile, model, rounds))
    run.to_the_end()
    assert len(run.models()) == 1
    check_passes(run, passes)


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "passes"), [("open", 8), ("masked_strict", 19)])
def test_runs_without_a_budget_take_the_passes_that_are_stated(profile: str, passes: int, keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, PLAN.replace('"masked"', f'"{profile}"'))
    run.to_the_end()
    assert run.models() == {run.simulated()}
    check_passes(run, passes)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["bfv", "ckks"])
def test_sums_that_only_the_parties_open_travel_by_letters(profile: str, keys: Path, tmp_path: Path) -> None:
    """Every party has the same model; under `bfv`, whose sums are exact, that of a simulation. The coordinator has none."""
    (tmp_path / "words.txt").write_text("\n".join(PUBLIC), "utf-8")
    listed = PLAN.replace("[vocabulary]", f'[vocabulary]\nsource = "file"\nfile = "{tmp_path}/words.txt"')
    run = ByCourier.of(keys, tmp_path, listed.replace('"masked"', f'"{profile}"'))
    assert run.to_the_end()["rounds"] == 2
    models = run.models()
    assert len(models) == 1
    assert profile != "bfv" or models == run.simulated_at_parties()
    assert max(run.passes[name] for name in NAMES) == passes_of(run.organisations.prepared("numpy").agreement)


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "told", "models"), [("masked", "false", 2), ("masked", "true", 1), ("bfv", "false", 1)])
def test_words_that_the_coordinator_never_sees_travel_by_letters(
    profile: str, told: str, models: int, keys: Path, tmp_path: Path
) -> None:
    """Every member's model has the same topics; the coordinator's has numbers in the place of words, unless it is told them."""
    words = f'[vocabulary]\nsource = "blind"\ntold_at_the_end = {told}'
    run = ByCourier.of(keys, tmp_path, PLAN.replace('"masked"', f'"{profile}"').replace("[vocabulary]", words))
    assert run.to_the_end()["rounds"] == 2
    assert len(run.models()) == models
    stated = passes_of(run.organisations.prepared("numpy").agreement)
    assert max(run.passes[name] for name in NAMES) == stated  # one party draws the key of encrypted sums, in a pass of its own
