"""Hostile bytes against both roles: neither crashes, hangs or grows, and honest ends are served meanwhile.

The short form tries each attempt once with fixed draws. The long form (`make test-faults`) draws for a minute.
"""

from __future__ import annotations

import random
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from securetm.credentials.roster import write_roster

from .at_work import ROSTER, AtWork, at_work
from .hostile import Insider, Stranger
from .lying import lies
from .meeting import Meeting

pytestmark = pytest.mark.own_draws

CEILING = 192 << 20  # bytes by which a hub or a dialer may grow under attack (protocols/network.md)
MINUTE = 60.0


@pytest.fixture
def site(meeting: Meeting) -> Meeting:
    """A meeting whose roster is in a file, for other processes."""
    write_roster(meeting.home / ROSTER, meeting.roster)
    return meeting


@pytest.fixture
def hub(site: Meeting) -> Iterator[AtWork]:
    """A hub in a process of its own, and the honest party `south` in another."""
    with at_work("hub", site.home) as running, at_work("party", site.home, "south"):
        running.hear("listening")
        running.hear("right")
        yield running


def still_right(hub: AtWork) -> None:
    """The honest party is asked and answers, after everything that the hub has said so far."""
    hub.heard()
    hub.hear("right")


def grown(process: AtWork, begun: int) -> int:
    """By how much its memory grew at most."""
    more = process.memory(most=True) - begun
    print(f"it began with {begun / 2**20:.0f} MiB, and grew by {more / 2**20:.0f} MiB at most")
    return more


def test_a_member_that_sends_anything(hub: AtWork, site: Meeting) -> None:
    begun = hub.memory()
    for attempt in Insider(site, "north", random.Random(1)).attempts().values():
        attempt()
    still_right(hub)
    assert grown(hub, begun) < CEILING


def test_strangers_on_the_network(hub: AtWork, site: Meeting) -> None:
    begun, stranger = hub.memory(), Stranger(site, random.Random(2))
    for attempt in stranger.attempts().values():
        attempt()
    still_right(hub)
    stranger.release()
    assert grown(hub, begun) < CEILING


@pytest.mark.faults
def test_a_minute_of_everything(hub: AtWork, site: Meeting) -> None:
    """Several members and strangers at once, for a minute, with draws of their own."""
    begun, seed = hub.memory(), random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    tried: list[str] = []

    def attack(attempts: Callable[[random.Random], dict[str, Callable[[], None]]], number: int) -> None:
        rng, ends = random.Random(f"{seed} {number}"), time.monotonic() + MINUTE
        while time.monotonic() < ends:
            name, attempt = rng.choice(list(attempts(rng).items()))
            attempt()
            tried.append(name)

    strangers = [Stranger(site, random.Random(number)) for number in range(2)]
    with ThreadPoolExecutor(4) as attackers:
        done = [attackers.submit(attack, lambda rng, name=name: Insider(site, name, rng).attempts(), number)
                for number, name in enumerate(("north", "east"))]  # fmt: skip
        done += [
            attackers.submit(attack, lambda rng, one=one: one.attempts(), 10 + number) for number, one in enumerate(strangers)
        ]
        for one in done:
            one.result()
    for one in strangers:
        one.release()
    still_right(hub)
    print(f"{len(tried)} attempts")
    assert len(tried) > 100
    assert grown(hub, begun) < CEILING


@pytest.mark.faults
def test_ten_thousand_connections(hub: AtWork, site: Meeting) -> None:
    """They are opened and held, as far as the hub lets them; honest ends that are connected are served, and new ones soon."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    begun, stranger = hub.memory(), Stranger(site, random.Random(3))
    for number in range(10_000):
        with suppress(OSError):
            stranger.hold(b"\x16\x03\x01\x02\x00\x01" if number % 2 else b"")
    still_right(hub)
    stranger.release()
    with at_work("party", site.home, "west"):
        hub.hear("connected", "west")
    assert grown(hub, begun) < CEILING


@pytest.mark.parametrize("rounds", [1, pytest.param(40, marks=pytest.mark.faults)])
def test_a_coordinator_that_lies(site: Meeting, rounds: int) -> None:
    """A server with the coordinator's own keys sends anything; afterwards the party joins the true coordinator."""
    with at_work("party", site.home, "south") as party:
        party.hear("refused")  # nobody listens yet
        begun, rng = party.memory(), random.Random(4)
        for _ in range(rounds):
            for lie in lies(site, rng):
                lie()
        with at_work("hub", site.home) as true:
            true.hear("right")
        assert grown(party, begun) < CEILING
