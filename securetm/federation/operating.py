"""Opens what a coordinator needs to serve: its run folder, its standing, and the network. It closes them again.

Keys and roster come from whoever calls it, so that no passphrase passes here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from securetm.credentials.key_files import Keys
from securetm.credentials.roster import FederationRoster
from securetm.federation.event_log import EventLog
from securetm.federation.network.ends import Agreed
from securetm.federation.network.hub import Hub
from securetm.federation.network.spool import SpoolRoom
from securetm.federation.planned_spending import PlannedSpending
from securetm.federation.remote_agreement import agreed_apart
from securetm.federation.served_folder import LOG, served_folder
from securetm.federation.serving import Serving
from securetm.federation.standing import Standing
from securetm.plans import Plan

_SPOOL = "spool"  # in the run's folder: replies that are not whole yet


@contextmanager
def operated(
    plan: Plan,
    out: Path,
    keys: Keys,
    roster: FederationRoster,
    command: str,
    *,
    authorities: tuple[bytes, ...] = (),
    with_content: bool = False,
    beside: TextIO | None = None,
) -> Iterator[Serving]:
    """Listens for the parties of this roster, until its block ends. The parties are told whether the run has ended."""
    choice, agreement = plan.coordinator, agreed_apart(plan, roster.members)
    folder = served_folder(out, agreement, roster.keys, with_content=with_content)
    log, spending = EventLog(folder.path / LOG, beside), PlannedSpending(agreement, len(roster.members))
    name = folder.path.resolve().name
    standing = Standing(name, plan.model.name, agreement.profile.name, roster.members, log, spending.after)
    agreed = Agreed(agreement.digest, agreement.profile.digest)
    hub = Hub(keys, roster, agreed, SpoolRoom(folder.path / _SPOOL), choice.listen, standing, authorities)
    ended = False
    port = hub.start()
    try:
        standing.address = f"{choice.listen.rpartition(':')[0]}:{port}"
        serving = Serving(folder, hub.parties(choice.deadline), standing, choice, command)
        log.write("started", run=name, address=standing.address, round=standing.done)
        yield serving
        ended = True
    finally:
        hub.close(finished=ended)
