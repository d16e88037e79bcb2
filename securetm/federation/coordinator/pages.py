"""A small read-only web server for an operator, and the page of metrics for Prometheus.

It gives every connection little time and few bytes, and takes few at once, so that slow or many clients stop nothing. No figure
of one party depends on documents: how long a party took is not among them.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from operator import itemgetter
from typing import Any, ClassVar, Self

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from securetm.data_classes import dataclass, field
from securetm.errors import Mistake
from securetm.federation.coordinator.status import AWAY

Page = tuple[str, bytes]  # its type, and what is in it
MOST_CLIENTS = 8  # at once; others are sent away
SECONDS = 5.0  # for the request, and again for the answer
_MOST_BYTES = 8192  # of a request
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_GUARDS = (
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options: nosniff",
    "Referrer-Policy: no-referrer",
    "Cache-Control: no-store",
    "Cross-Origin-Resource-Policy: same-origin",
    "Connection: close",
)


@dataclass
class LocalPages:
    """Serves pages by their path, at one address, in threads of its own."""

    pages: Mapping[str, Callable[[], Page]]
    port: int
    host: str = "127.0.0.1"
    _free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_CLIENTS))

    def __enter__(self) -> Self:
        try:
            self._listening = socket.create_server((self.host, self.port), backlog=MOST_CLIENTS)
        except OSError as problem:
            raise Mistake(
                "nothing can listen at {address}: {problem}",
                hint=(
                    "end the program that uses the port (`ss -ltnp` shows it), or choose another one: a party with --metrics or"
                    " --status, the coordinator with `metrics` or `status` in [coordinator]"
                ),
                address=f"{self.host}:{self.port}",
                problem=problem.strerror or type(problem).__name__,
            ) from problem
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, name=f"securetm pages {self.port}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the socket was closed
            while True:
                client, _ = self._listening.accept()
                if self._free.acquire(blocking=False):
                    threading.Thread(target=self._serve, args=(client,), daemon=True).start()
                else:
                    client.close()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError):
                head = _request(client)
                client.settimeout(SECONDS)
                client.sendall(self._answer(head))
        finally:
            self._free.release()

    def _answer(self, head: bytes) -> bytes:
        first, *fields = head.decode("latin-1").split("\r\n")
        method, path, *rest = [*first.split(" "), "", ""]
        if len(rest) != 3 or not rest[0].startswith("HTTP/1."):
            return _packed(HTTPStatus.BAD_REQUEST)
        if method not in ("GET", "HEAD"):
            return _packed(HTTPStatus.METHOD_NOT_ALLOWED)
        if self.host == "127.0.0.1" and not _asks_for_this_machine(fields):
            return _packed(HTTPStatus.MISDIRECTED_REQUEST)  # a page of another site that made its name lead here
        page = self.pages.get(path.partition("?")[0])
        if page is None:
            return _packed(HTTPStatus.NOT_FOUND)
        kind, content = page()
        return _packed(HTTPStatus.OK, kind, content, head=method == "HEAD")


def _request(client: socket.socket) -> bytes:
    """Reads up to the end of the fields, in little time in all, however slowly bytes come."""
    end, read = time.monotonic() + SECONDS, b""
    while b"\r\n\r\n" not in read:
        client.settimeout(max(end - time.monotonic(), 0.001))
        more = client.recv(_MOST_BYTES)
        read += more
        if not more or len(read) > _MOST_BYTES or time.monotonic() > end:
            raise TimeoutError
    return read.partition(b"\r\n\r\n")[0]


def _asks_for_this_machine(fields: list[str]) -> bool:
    hosts = [value.strip() for name, _, value in (field.partition(":") for field in fields) if name.lower() == "host"]
    return len(hosts) == 1 and any(hosts[0] == name or hosts[0].startswith(f"{name}:") for name in _LOCAL)


def _packed(status: HTTPStatus, kind: str = "text/plain; charset=utf-8", content: bytes = b"", *, head: bool = False) -> bytes:
    content = content or f"{status.phrase}\n".encode()
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {kind}", f"Content-Length: {len(content)}", *_GUARDS]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    return "\r\n".join((*lines, "", "")).encode() + (b"" if head else content)


Told = Callable[[], Mapping[str, Any]]  # the facts of a served run (RunStatus.facts), or of a party (JoinStatus.facts)
Counted = tuple[str, str, str, Mapping[str, int]]
_GAUGES: tuple[tuple[str, str, Callable[[Mapping[str, Any]], float | None]], ...] = (
    ("rounds", "Rounds of training that led to the present model.", itemgetter("done")),
    ("rounds_planned", "Most rounds of the plan.", itemgetter("of")),
    ("sessions", "Sessions that this process began.", itemgetter("session")),
    ("parties", "Parties of the roster.", lambda facts: len(facts["parties"])),
    ("parties_connected", "Parties that are connected.", lambda f: sum(p["state"] != AWAY for p in f["parties"].values())),
    ("survivors", "Parties over which the last answer was opened.", lambda facts: len(facts["survivors"])),
    ("seconds_per_round", "Mean over the last rounds.", itemgetter("seconds_per_round")),
    ("epsilon", "Spent of each unit's budget by the plan, at most.", lambda f: f["epsilon"] and float(f["epsilon"]["epsilon"])),
)


@dataclass(eq=False)
class RunMetrics(Collector):
    facts: Told
    prefix: ClassVar[str] = "securetm_"
    gauges: ClassVar = _GAUGES

    def collect(self) -> Iterator[Metric]:
        facts = self.facts()
        for name, what, value_in in self.gauges:
            if (value := value_in(facts)) is not None:
                yield GaugeMetricFamily(self.prefix + name, what, value)
        for name, what, label, counts in self.counted(facts):
            family = CounterMetricFamily(self.prefix + name, what, labels=[label] if label else [])
            for one, times in sorted(counts.items()):
                family.add_metric([one] if label else [], times)
            yield family

    def counted(self, facts: Mapping[str, Any]) -> tuple[Counted, ...]:
        """What only grows: its name, what it is, the label by which it is counted, and the counts."""
        return (
            ("waves", "Waves of messages to the parties.", "", {"": facts["waves"]}),
            ("bytes", "Bytes of messages that passed.", "direction", {"up": facts["bytes_up"], "down": facts["bytes_down"]}),
            ("refusals", "Refusals by their name.", "name", facts["refusals"]),
        )


def metrics_page(metrics: Collector) -> Callable[[], Page]:
    """Returns a page with these metrics as they are when it is asked for."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    return lambda: (CONTENT_TYPE_LATEST, generate_latest(registry))


# ---- of a party: its own operator's figures, which the coordinator does not see

_OF_A_PARTY: tuple[tuple[str, str, Callable[[Mapping[str, Any]], float | None]], ...] = (
    ("connected", "Whether the coordinator is connected.", lambda facts: float(facts["connected"])),
    ("rounds", "Rounds of training that were answered.", itemgetter("round")),
    ("rounds_planned", "Most rounds of the plan.", itemgetter("rounds")),
    ("epsilon", "Spent of the budget of each unit by this run, at most.", lambda f: f["spent"] and f["spent"].get("epsilon")),
    ("epsilon_of_run", "What this run may spend of it.", lambda f: f["spent"] and f["spent"].get("of_run")),
    ("epsilon_budget", "The budget of each unit, over all runs.", lambda f: f["spent"] and f["spent"].get("budget")),
    ("epsilon_left", "What all runs together left of it.", lambda f: f["spent"] and f["spent"].get("left")),
    ("certificate_seconds", "Until the own certificate ends.", itemgetter("certificate_seconds")),
    ("disk_free_bytes", "Room on the disk of the home.", itemgetter("disk_free_bytes")),
)


@dataclass(eq=False)
class PartyMetrics(RunMetrics):
    prefix: ClassVar[str] = "securetm_party_"
    gauges: ClassVar = _OF_A_PARTY

    def counted(self, facts: Mapping[str, Any]) -> tuple[Counted, ...]:
        return (
            ("answers", "Answers by the question.", "question", facts["answers"]),
            ("refusals", "Refusals and failures by their name.", "name", facts["refusals"]),
            ("bytes", "Bytes of messages that passed.", "direction", {"up": facts["bytes_up"], "down": facts["bytes_down"]}),
        )
