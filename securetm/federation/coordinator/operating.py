"""Opens what a coordinator needs to serve: its keys and roster, its run folder, its standing, and the network.

Whoever calls it asks for a passphrase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from securetm.credentials.acceptance import KEYS, check_accepted
from securetm.credentials.authority import AUTHORITY, authority_pem
from securetm.credentials.diagnosis import check_own, now_utc
from securetm.credentials.key_files import Keys, Passphrase
from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import FederationRoster
from securetm.credentials.roster_file import read_roster
from securetm.data_homes import data_home
from securetm.federation.budget.prices import PlannedSpending
from securetm.federation.coordinator.serving import LOG, Serving, served_folder
from securetm.federation.coordinator.standing import EventLog, Standing
from securetm.federation.document_minimum import check_delta_announced
from securetm.federation.folder import RunFolder
from securetm.federation.network.events import Agreed
from securetm.federation.network.hub import Hub
from securetm.federation.network.spool import SpoolRoom
from securetm.federation.soundness import agreed_apart, check_survivors
from securetm.plans.schema import ALL, CoordinatorChoice, Plan
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


_SPOOL = "spool"  # in the run's folder: replies that are not whole yet


@contextmanager
def operated(
    plan: Plan,
    out: Path,
    files: CoordinatorFiles,
    command: str,
    *,
    with_content: bool = False,
    beside: TextIO | None = None,
) -> Iterator[Serving]:
    """Listens for the parties of this roster, until its block ends. The parties are told whether the run has ended."""
    choice, roster, agreement = plan.coordinator, files.roster, agreed_apart(plan, files.roster.members)
    check_delta_announced(roster.holds, agreement.profile, roster.members)
    if choice.survivors != ALL:
        check_survivors(agreement, len(roster.members), int(choice.survivors))
    folder = served_folder(out, agreement, roster.federation, roster.keys, with_content=with_content)
    folder = replace(folder, holds=dict(roster.holds))
    standing = standing_of(folder, beside)
    agreed = Agreed(agreement.digest, agreement.profile.digest)
    hub = Hub(
        files.keys, roster, agreed, SpoolRoom(folder.path / _SPOOL), choice.listen, standing, files.authorities, folder.path
    )
    ended = False
    port = hub.start()
    try:
        standing.address = f"{choice.listen.rpartition(':')[0]}:{port}"
        parties = hub.parties(choice.deadline)
        serving = Serving(folder, parties, standing, choice, command, parties.arrivals)
        standing.log.write("started", run=standing.run, address=standing.address, round=standing.done)
        yield serving
        ended = True
    finally:
        hub.close(finished=ended)


def standing_of(folder: RunFolder, beside: TextIO | None = None) -> Standing:
    """The standing of a run that is served, with its log; `beside` gets the log's lines too."""
    agreement = folder.agreement
    log, spending = EventLog(folder.path / LOG, beside), PlannedSpending(agreement, len(folder.members))
    name, model = folder.path.resolve().name, agreement.plan.model.name
    return Standing(name, model, agreement.profile.name, folder.members, log, spending.after)
