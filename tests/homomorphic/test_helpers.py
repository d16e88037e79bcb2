"""Large vectors go through helper processes and come out the same; helpers that die are a named error, and are replaced."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from securetm.aggregation.homomorphic import helper_processes as helpers
from securetm.aggregation.homomorphic.bfv import BfvCode
from securetm.aggregation.homomorphic.ckks import CkksCode
from securetm.aggregation.homomorphic.parameters import DEGREE, cheapest
from securetm.aggregation.homomorphic.seal_library import Code, RunningSum, decrypt, draw_ternary, encrypt
from securetm.entropy import OperatingSystem
from securetm.errors import Failed

from ..quick_part import quick


@pytest.fixture(autouse=True)
def one_helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small work is spread too, over this process and one more."""
    helpers.end_all()
    monkeypatch.setattr(helpers, "WORTH", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    yield
    helpers.end_all()


@pytest.mark.parametrize("code", quick([BfvCode(), CkksCode()], BfvCode()))
def test_helpers_change_nothing(code: Code) -> None:
    fit, rng, secret = cheapest(3, 1000), np.random.default_rng(0), draw_ternary(OperatingSystem())
    assert fit is not None
    rows = rng.integers(-1000, 1000, (5, DEGREE))
    running = RunningSum(code, fit)
    for _ in range(3):
        first, seeds = encrypt(code, fit, secret, rows, OperatingSystem())
        assert len(np.unique(seeds, axis=0)) == 5
        running.add(first, seeds)
    assert np.array_equal(decrypt(code, fit, secret, *running.polynomials()), 3 * rows)
    assert len(helpers._started) == 1


def test_a_helper_that_dies_is_named_and_replaced() -> None:
    code, fit, secret = BfvCode(), cheapest(3, 1000), draw_ternary(OperatingSystem())
    assert fit is not None
    rows = np.ones((4, DEGREE), dtype=np.int64)
    encrypt(code, fit, secret, rows, OperatingSystem())
    child = helpers._started[0]._child
    child.kill()
    child.wait()
    with pytest.raises(Failed, match="a helper process that encrypts or decrypts"):
        encrypt(code, fit, secret, rows, OperatingSystem())
    assert not helpers._started
    first, _ = encrypt(code, fit, secret, rows, OperatingSystem())
    assert len(first) == 4
