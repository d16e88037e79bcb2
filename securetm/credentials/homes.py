"""Finds the home that a command means: the one that was named, or the only one that can be meant."""

from __future__ import annotations

from pathlib import Path

from securetm.credentials.acceptance import KEYS, fits, waiting_request
from securetm.credentials.key_errors import KeysMissing, NoHome
from securetm.credentials.key_files import REQUEST
from securetm.credentials.key_requests import request_in
from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import FederationRoster
from securetm.data_homes import data_home

_MOST_NAMED = 5


def homes() -> tuple[Path, ...]:
    """The homes with keys in the usual folder."""
    return tuple(path.parents[1] for path in sorted(data_home().glob(f"*/{KEYS}/{REQUEST}")))


def found_home(named: Path | None) -> Path:
    """The home that was named, or the only one there is."""
    if named is not None:
        if not (named / KEYS / REQUEST).is_file():
            raise KeysMissing(str(named / KEYS))
        return named
    return _only(homes())


def home_in(named: Path | None, roster: FederationRoster) -> Path:
    """The home that was named, or the only one whose party stands in this roster with its keys."""
    known = homes() if named is None else ()
    fitting = tuple(home for home in known if home.name != COORDINATOR and _is_in(home, roster))
    return fitting[0] if len(fitting) == 1 else found_home(named) if named or not fitting else _only(fitting)


def _is_in(home: Path, roster: FederationRoster) -> bool:
    requests = (request_in(home / KEYS), waiting_request(home))
    return any(one.name == member.name and fits(member, one) for member in roster.parties for one in requests)


def _only(found: tuple[Path, ...]) -> Path:
    if not found:
        raise KeysMissing(str(data_home()))
    if len(found) > 1:
        named = ", ".join(home.name for home in found[:_MOST_NAMED])
        raise NoHome(f"{data_home()} holds {len(found)} of them ({named}{', …' if len(found) > _MOST_NAMED else ''})")
    return found[0]
