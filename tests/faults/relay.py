"""A relay between parties and their coordinator that cuts, stalls and counts bytes. It reads none, and tests nothing."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

UP, DOWN = "up", "down"  # from a party, to a party
CUT, SILENT, PASS = "both ends lose the connection", "it stays open, and nothing passes", "everything passes"
_CHUNK = 4096


@dataclass
class Strike:
    """What happens when so many more bytes of one party have passed in one direction."""

    party: str
    direction: str
    bytes: int
    then: str = CUT
    struck: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class Relay:
    """Carries the connections of all parties to one address. Whose a connection is, follows from the process that holds it."""

    to: int  # the port of the coordinator
    party_of: Callable[[int], str]  # of the process with this number
    passed: Counter[tuple[str, str]] = field(default_factory=Counter)  # bytes, by party and direction
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
                allowed, strike = self._allowed(party, direction, len(content))
                other.sendall(content[:allowed])
                self.passed[party, direction] += allowed
                if strike is None:
                    continue
                if strike.then == CUT:
                    self.cut(party)
                strike.struck.set()
                if strike.then == SILENT:
                    return  # the rest is read by nobody
        for end in (one, other):
            _reset(end)

    def _allowed(self, party: str, direction: str, size: int) -> tuple[int, Strike | None]:
        """Returns how many of these bytes pass, and the strike that ends the connection there."""
        with self._lock:
            strike = self.strike
            if strike is None or (strike.party, strike.direction) != (party, direction):
                return size, None
            if size < strike.bytes:
                strike.bytes -= size
                return size, None
            self.strike = None
            return size if strike.then == PASS else strike.bytes, strike


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
