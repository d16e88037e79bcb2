"""A relay between parties and their coordinator that counts bytes and cuts connections. It reads none, and tests nothing."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

UP, DOWN = "up", "down"  # from a party, to a party
_CHUNK = 4096


@dataclass
class Strike:
    """When so many more bytes of one party have passed in one direction."""

    party: str
    direction: str
    bytes: int
    struck: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class Relay:
    """Carries the connections of all parties to one address. Whose a connection is, follows from the process that holds it."""

    to: int  # the port of the coordinator
    party_of: Callable[[int], str]  # of the process with this number
    strike: Strike | None = None

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: dict[str, list[socket.socket]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where parties connect."""
        return int(self._listener.getsockname()[1])

    def arm(self, strike: Strike) -> Strike:
        """Waits for the strike's bytes."""
        with self._lock:
            self.strike = strike
        return strike

    def cut(self, party: str) -> None:
        """Ends that party's connections without a farewell."""
        with self._lock:
            gone = self._open.pop(party, [])
        for end in gone:
            _reset(end)

    def close(self) -> None:
        """Ends everything."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for party in list(self._open):
            self.cut(party)

    def _accept(self) -> None:
        while True:
            try:
                near, (_, port) = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near, port), daemon=True).start()

    def _serve(self, near: socket.socket, port: int) -> None:
        party = self.party_of(_holder(port))
        try:
            far = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            _reset(near)
            return
        with self._lock:
            self._open.setdefault(party, []).extend((near, far))
        for ends, direction in (((near, far), UP), ((far, near), DOWN)):
            threading.Thread(target=self._pump, args=(*ends, party, direction), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, party: str, direction: str) -> None:
        with suppress(OSError):
            while content := one.recv(_CHUNK):
                other.sendall(content)
                self._passed(party, direction, len(content))
        for end in (one, other):
            _reset(end)

    def _passed(self, party: str, direction: str, size: int) -> None:
        with self._lock:
            strike = self.strike
            if strike is not None and (strike.party, strike.direction) == (party, direction):
                strike.bytes -= size
                if strike.bytes <= 0:
                    self.strike = None
                    strike.struck.set()


def _reset(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        end.close()


def _holder(port: int) -> int:
    """Returns the process that holds the local end of a connection at this port; 0 if it is gone."""
    local = f":{port:04X}"
    tables = (Path("/proc/net") / kind for kind in ("tcp", "tcp6"))
    rows = (line.split() for table in tables for line in table.read_text().splitlines()[1:])
    inodes = {row[9] for row in rows if row[1].endswith(local)}
    wanted = {f"socket:[{inode}]" for inode in inodes if inode != "0"}
    for process in filter(str.isdecimal, os.listdir("/proc")):
        if int(process) == os.getpid():
            continue
        with suppress(OSError):
            for opened in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{process}/fd/{opened}") in wanted:
                        return int(process)
    return 0
