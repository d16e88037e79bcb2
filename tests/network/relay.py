"""A relay between parties and their coordinator: it passes every byte on and remembers it, as a machine on the way could."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

_PART = 1 << 16


class Relay:
    """Listens at one port of this machine, and passes what comes to another one and back."""

    def __init__(self, to_port: int, port: int = 0) -> None:
        self._to = ("127.0.0.1", to_port)
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listening.getsockname()[1])
        self.passed: dict[str, bytearray] = {"to the coordinator": bytearray(), "to the parties": bytearray()}
        self._lock, self._open, self._threads = threading.Lock(), list[socket.socket](), list[threading.Thread]()

    def __enter__(self) -> Self:
        self._begin(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            still = list(self._open)
        for one in still:
            _close(one)
        for thread in self._threads:
            thread.join(60)

    def _begin(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                party, _ = self._listening.accept()
            except OSError:
                return
            try:
                coordinator = socket.create_connection(self._to)
            except OSError:  # it does not listen yet: the party dials again
                party.close()
                continue
            with self._lock:
                self._open += [party, coordinator]
            self._begin(self._pass, party, coordinator, "to the coordinator")
            self._begin(self._pass, coordinator, party, "to the parties")

    def _pass(self, source: socket.socket, sink: socket.socket, way: str) -> None:
        with suppress(OSError):
            while part := source.recv(_PART):
                with self._lock:
                    self.passed[way] += part
                sink.sendall(part)
        _close(sink)
        _close(source)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
