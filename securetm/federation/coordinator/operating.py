"""Opens what a coordinator needs to serve: its run folder, its standing, and the network. It closes them again.

Keys and roster come from whoever calls it, so that no passphrase passes here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from securetm.federation.budget.planned_spending import PlannedSpending
from securetm.federation.coordinator.coordinator_files import CoordinatorFiles
from securetm.federation.coordinator.event_log import EventLog
from securetm.federation.coordinator.served_folder import LOG, served_folder
from securetm.federation.coordinator.serving import Serving
from securetm.federation.coordinator.standing import Standing
from securetm.federation.document_minimum import check_delta_announced
from securetm.federation.folder import RunFolder
from securetm.federation.network.events import Agreed
from securetm.federation.network.hub import Hub
from securetm.federation.network.spool import SpoolRoom
from securetm.federation.remote_agreement import agreed_apart
from securetm.federation.soundness import check_survivors
from securetm.plans.schema import ALL, Plan

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
