"""Two runs of the suite draw the same noise and the same masks, whatever ran before, and real randomness is still to be had."""

from __future__ import annotations

import pytest

from securetm.entropy import OperatingSystem
from tests.repeatable import MARK, OPTION, drawn_from

met: list[bytes] = []


@pytest.fixture(scope="module")
def shared() -> bytes:
    return OperatingSystem().bytes(16)


@pytest.fixture
def same(request: pytest.FixtureRequest) -> None:
    if request.config.getoption(OPTION):
        pytest.skip("draws are fresh in this run")


@pytest.mark.usefixtures("same")
def test_a_test_draws_the_same_in_every_run() -> None:
    assert OperatingSystem().bytes(8).hex() == "85c548761411dc20"
    assert OperatingSystem().bytes(8).hex() == "7f2c402eafa83112"


@pytest.mark.parametrize("which", [0, 1])
def test_each_test_has_a_stream_of_its_own(which: int) -> None:
    met.append(OperatingSystem().bytes(16))
    assert len(set(met)) == len(met)


@pytest.mark.usefixtures("same")
@pytest.mark.parametrize("asked_before", [0, 1000])
def test_what_is_shared_is_the_same_whoever_asks_first(asked_before: int, request: pytest.FixtureRequest) -> None:
    OperatingSystem().bytes(asked_before)
    assert request.getfixturevalue("shared").hex() == "603a026cc5a6d48644276ee725f7790c"


@pytest.mark.own_draws
def test_a_mark_leaves_the_real_thing() -> None:
    assert MARK == "own_draws"
    assert OperatingSystem.bytes.__name__ == "bytes"
    with drawn_from("a seed"):
        seeded = OperatingSystem().bytes(16)
        with drawn_from("another"):
            assert OperatingSystem().bytes(16) != seeded
        assert OperatingSystem().bytes(16) != seeded
    with drawn_from("a seed"):
        assert OperatingSystem().bytes(16) == seeded
    assert OperatingSystem.bytes.__name__ == "bytes"
