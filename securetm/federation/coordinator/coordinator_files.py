"""What a coordinator reads before it serves: its keys, the roster that was accepted here, and the authority in the same home.

It checks that they fit each other today. It opens no socket, and asks nobody for a passphrase itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from securetm.credentials.acceptance import KEYS, check_accepted
from securetm.credentials.authority import AUTHORITY, authority_pem
from securetm.credentials.diagnosis import check_own, now_utc
from securetm.credentials.key_files import Keys, Passphrase
from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import FederationRoster
from securetm.credentials.roster_file import read_roster
from securetm.data_homes import data_home
from securetm.plans.schema import CoordinatorChoice
from securetm.settings import require


@dataclass(frozen=True)
class CoordinatorFiles:
    """A coordinator's own files."""

    keys: Keys
    roster: FederationRoster
    authorities: tuple[bytes, ...]  # certificates in PEM: one, or none

    @classmethod
    def read(
        cls, choice: CoordinatorChoice, beside: Path, passphrase_of: Callable[[Path], Passphrase | None]
    ) -> CoordinatorFiles:
        """Reads the files that [coordinator] of the plan in that folder names."""
        folder = beside / choice.keys if choice.keys else data_home() / COORDINATOR / KEYS
        problem = f"must be the folder `{KEYS}` of the coordinator's home"
        require(folder.name == KEYS, "[coordinator]", "keys", choice.keys, problem)
        roster = read_roster(beside / choice.roster)
        check_accepted(folder.parent, roster)
        keys = Keys.open(folder, passphrase_of(folder))
        check_own(COORDINATOR, keys, roster, now_utc())
        return cls(keys, roster, (authority_pem(folder.parent),) if (folder.parent / AUTHORITY).is_dir() else ())
