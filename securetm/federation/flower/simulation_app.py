"""A Flower ServerApp that trains a federation on one machine through Flower's engine. No party is separate from the others.

A federation of separate organisations has `server_app.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from logging import getLogger
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.rounds import PartiesMissing
from securetm.federation.flower.flower_errors import BadFlowerSetting
from securetm.federation.flower.nodes import LOOKS, BoundNodes, FlowerParties, Greeter, NodeMail
from securetm.federation.flower.simulated_parties import held, roster_digest
from securetm.federation.folder import RUN, RunFolder, begin, reopen
from securetm.federation.network.events import NetworkEvents
from securetm.federation.simulation.simulation import execute
from securetm.federation.sources import corpora_of
from securetm.federation.store import CoordinatorStore
from securetm.plans.recommend import read_plan
from securetm.sessions.identities import IDENTITY, public_identity
from securetm.stages import Unwatched

PATIENCE = 600.0  # seconds for all nodes to come, and for one wave
app = ServerApp()
_log = getLogger("flwr")


@app.main()  # type: ignore[untyped-decorator]
def main(grid: Grid, context: Context) -> None:
    """Begins or continues the run in the folder that `out` names, and takes it to its end."""
    result = conduct(grid, context.run_config)
    _log.info("securetm: %d rounds, kept in %s", result["rounds"], result["directory"])


def conduct(grid: Grid, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Runs the federation of the plan that `plan` names; its parties answer on sockets in the run's folder."""
    out = Path(str(settings.get("out") or ""))
    if not out.is_absolute():
        raise BadFlowerSetting("out", "must be an absolute path: Flower runs the app in a folder of its own")
    folder = reopen(out) if (out / RUN).is_file() else _begun(out, str(settings.get("plan") or ""))
    identity, public = _identity(folder)
    mail, bound = NodeMail(grid), BoundNodes(NetworkEvents())
    greeter = Greeter(mail, bound, folder.keys, identity, roster_digest(folder.keys, public), OperatingSystem())
    with held(folder, public), greeter.beside():
        _await(folder, bound)
        parties = FlowerParties(mail, bound, folder.members, PATIENCE)
        return execute(folder, Unwatched(), parties=parties, comparison=False)


def _await(folder: RunFolder, bound: BoundNodes) -> None:
    """Waits until all parties are there: a simulation goes on without none."""
    end = time.monotonic() + PATIENCE
    while missing := set(folder.members) - bound.present:
        if time.monotonic() >= end:
            raise PartiesMissing(", ".join(sorted(missing)))
        time.sleep(LOOKS)


def _begun(out: Path, plan: str) -> RunFolder:
    if plan and not Path(plan).is_absolute():
        raise BadFlowerSetting("plan", "must be an absolute path, or nothing for the default plan")
    read = read_plan(Path(plan) if plan else None, {})
    return begin(out, read, corpora_of(read, Unwatched()))


def _identity(folder: RunFolder) -> tuple[bytes, bytes]:
    """The coordinator's identity of this run: the secret and the public key."""
    store = CoordinatorStore(folder.coordinator)
    try:
        public = public_identity(store, OperatingSystem())
        return store.get(IDENTITY) or b"", public
    finally:
        store.close()
