"""Two hundred schedules over real processes: any role starts again at any moment, and the run ends with its model.

With all parties that is the model of the undisturbed run, bit for bit. One schedule is played again by
`pytest -m faults tests/faults/test_campaign.py -k seed_17`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from .campaign import CASES, ROUNDS, Campaign, Case, charges, models, result, rounds
from .processes import Site

pytestmark = pytest.mark.faults
SEEDS = 200


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, dict[str, bytes]]:
    """The models of runs without faults, made when one is needed."""
    del tmp_path_factory
    return {}


@pytest.fixture
def sites() -> Iterator[list[Site]]:
    """Sites whose processes are ended after the test."""
    made: list[Site] = []
    yield made
    for site in made:
        site.close()


def alone(case: Case, folder: Path, sites: list[Site]) -> dict[str, bytes]:
    """The models of that run without a fault."""
    sites.append(case.site(folder))
    sites[-1].start_all()
    assert set(sites[-1].finish().values()) == {0}, sites[-1].standing()
    return models(sites[-1])


@pytest.mark.parametrize("seed", range(SEEDS), ids=lambda seed: f"seed_{seed}")
def test_any_role_may_start_again_at_any_moment(
    seed: int, tmp_path: Path, sites: list[Site], undisturbed: dict[Case, dict[str, bytes]]
) -> None:
    case, rng = CASES[seed % len(CASES)], np.random.default_rng(seed)
    if case.repeats and case not in undisturbed:
        undisturbed[case] = alone(case, tmp_path / "alone", sites)
    site = case.site(tmp_path / "trial")
    sites.append(site)
    campaign = Campaign(site, rng)
    campaign.run(int(rng.integers(2, 9)))
    campaign.finish()
    print(case, campaign.befell, result(site)["rounds"])
    found = models(site)
    assert len(found) == 5 + (not case.parties_open)
    assert len(set(found.values())) == 1
    if case.repeats:
        assert found == undisturbed[case]
    opened = [(question, number) for _, question, number, _ in rounds(site)]
    assert len(opened) == len(set(opened))  # a number is opened once
    if case.survivors == "all":
        assert result(site)["rounds"] == ROUNDS
    for name, times in charges(site) if case.paid else ():
        assert times, name
        assert sum(times.values()) <= len(times) + campaign.kills.get(name, 0), (name, times)
