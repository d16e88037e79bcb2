"""Which addresses a process and its children listen on, as the Linux kernel tells it. Elsewhere it finds none."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_TABLES = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}  # the state of a socket that anybody may send to


def heard_elsewhere(process: int) -> tuple[str, ...]:
    """Addresses that this process or one of its children listens on and that other machines may reach."""
    heard = {address for one in family(process) for address in listened(one)}
    return tuple(sorted(address for address in heard if not is_loopback(address.rpartition(":")[0])))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        found = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or found
    return found.is_loopback


def family(process: int) -> tuple[int, ...]:
    parents: dict[int, int] = {}
    for place in _PROCESSES.glob("[0-9]*/stat"):
        if lines := _lines(place):
            parents[int(place.parent.name)] = int(lines[0].rpartition(")")[2].split()[1])  # a name may hold anything
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return tuple(found)


def named(process: int, programs: Sequence[str]) -> tuple[int, ...]:
    """Those of the family whose program is one of these."""
    ours = ((one, _lines(_PROCESSES / str(one) / "cmdline")) for one in family(process))
    return tuple(one for one, lines in ours if lines and Path(lines[0].split("\0")[0]).name in programs)


def listened(process: int) -> tuple[str, ...]:
    """The addresses, each with its port, that this process alone listens on."""
    own = set(_sockets(process))
    found = []
    for table, state in _TABLES.items():
        for line in _lines(_PROCESSES / str(process) / "net" / table)[1:]:
            fields = line.split()
            if fields[3] == state and fields[9] in own:
                found.append(_address(fields[1]))
    return tuple(found)


def _sockets(process: int) -> Iterator[str]:
    with suppress(OSError):  # it has ended
        for opened in (_PROCESSES / str(process) / "fd").iterdir():
            with suppress(OSError):
                target = os.readlink(opened)
                if target.startswith("socket:["):
                    yield target[len("socket:[") : -1]


def _lines(place: Path) -> list[str]:
    try:
        return place.read_text("utf-8", "replace").splitlines()
    except OSError:  # it has ended
        return []


def _address(field: str) -> str:
    """The kernel writes each word of four bytes in the order of this machine."""
    host, port = field.split(":")
    words = [bytes.fromhex(host[at : at + 8]) for at in range(0, len(host), 8)]
    content = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    return f"{ipaddress.ip_address(content)}:{int(port, 16)}"
