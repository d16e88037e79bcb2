"""All parties of a simulated run in one process, each behind a socket of its own, for Flower's engine to carry messages to.

`python -m securetm.federation.flower.simulated_parties RUN KEY` holds them until its standard input ends. A real party has a
process and a machine of its own.
"""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from securetm.entropy import OperatingSystem
from securetm.federation.flower.flower_errors import PartyNotReached
from securetm.federation.flower.party_socket import Door, opened, serve
from securetm.federation.flower.sealed_channel import PartyEnd, SealedParty
from securetm.federation.folder import RunFolder, reopen
from securetm.federation.party.party import Party
from securetm.federation.simulation.simulation import make_party
from securetm.private_files import private_folder
from securetm.sessions.identities import IDENTITY

READY = b"ready\n"


def sockets(folder: RunFolder) -> Path:
    """Where the sockets of a run's parties lie."""
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


def main(run: str, coordinator: str) -> None:
    """Holds all parties of that run until standard input ends."""
    folder = reopen(Path(run))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 16 * len(folder.members) + 256)), hard))
    private_folder(sockets(folder))
    with ExitStack() as open_now:
        doors = {}
        for place, name in enumerate(folder.members):
            party = make_party(folder, name)
            open_now.callback(party.close)
            listening = open_now.enter_context(opened(sockets(folder) / f"{place}.sock"))
            doors[listening] = _door(party, folder, bytes.fromhex(coordinator))
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        serve(doors, until=sys.stdin.buffer)


def _door(party: Party, folder: RunFolder, coordinator: bytes) -> Door:
    digest = roster_digest(folder.keys, coordinator)
    end = PartyEnd(party.name, party.store.get(IDENTITY) or b"", coordinator, digest, OperatingSystem())
    sealed = SealedParty(end, party.handle, lambda: party.most_bytes)
    return Door(sealed.handle, sealed.most_bytes)


if __name__ == "__main__":
    main(*sys.argv[1:])
