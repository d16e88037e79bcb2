"""A Flower ServerApp that trains a federation on one machine through Flower's engine. No party is separate from the others.

A federation of separate organisations has `server_app.py`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from logging import getLogger
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.rounds import PartiesMissing
from securetm.federation.flower.flower_message import BadFlowerSetting
from securetm.federation.flower.nodes import LOOKS, FlowerParties
from securetm.federation.flower.party_socket import Door, PartyNotReached, opened, serve
from securetm.federation.flower.sealed_channel import PartyEnd
from securetm.federation.folder import RUN, RunFolder, begin, reopen
from securetm.federation.network.door import allow_files
from securetm.federation.network.events import NetworkEvents
from securetm.federation.simulation.simulation import execute, make_party
from securetm.federation.sources import corpora_of
from securetm.federation.store import CoordinatorStore
from securetm.plans.recommend import whole_plan
from securetm.private_files import private_folder
from securetm.sessions.identities import IDENTITY, public_identity
from securetm.stages import Unwatched

READY = b"ready\n"


def sockets(folder: RunFolder) -> Path:
    return folder.path / "sockets"


def roster_digest(keys: Mapping[str, bytes], coordinator: bytes) -> bytes:
    """The digest of a simulated run's roster: names and keys, in order."""
    parts = (part for name, key in keys.items() for part in (name.encode(), key))
    return hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in (coordinator, *parts))).digest()


@contextmanager
def held(folder: RunFolder, coordinator: bytes) -> Iterator[None]:
    """Starts the process that holds the parties, and ends it."""
    command = [sys.executable, "-m", __name__, str(folder.path), coordinator.hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.stdout.readline() != READY:
                raise PartyNotReached(str(sockets(folder)), "its process ended; its last message is above")
            yield
        finally:
            process.stdin.close()


def hold_parties(run: str, coordinator: str) -> None:
    folder, public = reopen(Path(run)), bytes.fromhex(coordinator)
    allow_files(16 * len(folder.members) + 256)
    private_folder(sockets(folder))
    with ExitStack() as open_now:
        doors = {}
        for place, name in enumerate(folder.members):
            party = make_party(folder, name)
            open_now.callback(party.close)
            listening = open_now.enter_context(opened(sockets(folder) / f"{place}.sock"))
            end = PartyEnd(name, party.store.get(IDENTITY) or b"", public, roster_digest(folder.keys, public))
            doors[listening] = Door.sealed(end, party.handle, lambda party=party: party.most_bytes)  # type: ignore[misc]
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        serve(doors, until=sys.stdin.buffer)


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
    digest, events = roster_digest(folder.keys, public), NetworkEvents()
    parties = FlowerParties(grid, folder.members, folder.keys, identity, digest, PATIENCE, events)
    with held(folder, public), parties.introduced():
        end = time.monotonic() + PATIENCE  # for all parties: a simulation goes on without none
        while missing := set(parties.members) - parties.present():
            if time.monotonic() >= end:
                raise PartiesMissing(", ".join(sorted(missing)))
            time.sleep(LOOKS)
        return execute(folder, Unwatched(), parties=parties, comparison=False)


def _begun(out: Path, plan: str) -> RunFolder:
    if plan and not Path(plan).is_absolute():
        raise BadFlowerSetting("plan", "must be an absolute path, or nothing for the default plan")
    read = whole_plan(Path(plan) if plan else None, {})
    return begin(out, read, corpora_of(read, Unwatched()))


def _identity(folder: RunFolder) -> tuple[bytes, bytes]:
    with closing(CoordinatorStore(folder.coordinator)) as store:
        public = public_identity(store, OperatingSystem())
        return store.get(IDENTITY) or b"", public


if __name__ == "__main__":
    hold_parties(*sys.argv[1:])
