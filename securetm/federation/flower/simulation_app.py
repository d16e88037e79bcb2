"""A Flower ServerApp that trains a federation on one machine through Flower's engine. No party is separate from the others.

A federation of separate organisations has `server_app.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import getLogger
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from securetm.entropy import OperatingSystem
from securetm.federation.file_digests import RUN
from securetm.federation.flower.flower_errors import BadFlowerSetting
from securetm.federation.flower.flower_parties import FlowerParties
from securetm.federation.flower.simulated_parties import held, roster_digest
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.simulation import execute
from securetm.federation.sources import corpora_of
from securetm.federation.store import CoordinatorStore
from securetm.plan_reading import read_plan
from securetm.sessions.identities import IDENTITY, public_identity
from securetm.stages import Unwatched

PATIENCE = 600.0  # seconds until all nodes answered
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
    with held(folder, public):
        entropy = OperatingSystem()
        parties = FlowerParties(grid, folder.keys, identity, roster_digest(folder.keys, public), entropy)
        parties.await_all(PATIENCE)
        return execute(folder, Unwatched(), parties=parties, comparison=False)


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
