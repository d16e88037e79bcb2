"""What a party's operator sees while `join` works, on this machine only: a log, metrics for Prometheus, a status page."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.data_classes import dataclass
from securetm.foreign_text import printable
from securetm.reports.files import StandardOutput

if TYPE_CHECKING:
    from securetm.federation.party.joining import Joining
    from securetm.federation.party.status import JoinStatus


@dataclass(frozen=True)
class Monitoring:
    """Options of `join`, none of which tells anybody else."""

    log: Annotated[bool, typer.Option("--log", help="Print a log in lines of JSON on stderr, instead of a panel.")] = False
    metrics: Annotated[str, typer.Option(metavar="[ADDRESS:]PORT", help="Where Prometheus finds metrics; on this machine.")] = (
        ""
    )
    status: Annotated[int, typer.Option(min=0, max=65_535, help="Port of a status page on this machine; 0: none.")] = 0


_TOLD = {  # each event in words
    "connected": "connected to the coordinator",
    "lost": "connection lost: {reason}",
    "not_connected": "not connected: {reason}",
    "answered": "round {round}: answered {question} number {number}, {bytes:,} bytes",
    "refused": "refused what the coordinator asked, which is told {name} and no more: {reason} ({hint})",
    "failed": "failed here, and the coordinator is told nothing: {name}: {reason} ({hint})",
}
_ROUND_EVERY = 10.0  # seconds between two plain lines about answers


class Lines:
    """Tells each event in a line of words on standard error, or of JSON on standard output, from any thread."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._json, self._last_round = as_json, 0.0

    def tell(self, event: str, facts: Mapping[str, Any]) -> None:
        """Prints one event."""
        if self._json:
            out = StandardOutput()
            out.write(json.dumps({"event": event, **facts}, ensure_ascii=True) + "\n")
            out.flush()
        elif not self._too_soon(event):
            sys.stderr.write(printable(_TOLD[event].format_map(facts)) + "\n")

    def _too_soon(self, event: str) -> bool:
        """Whether a line about an answer follows the last one too soon: thousands of lines help nobody."""
        if event != "answered":
            return False
        now = time.monotonic()
        if self._last_round and now - self._last_round < _ROUND_EVERY:
            return True
        self._last_round = now
        return False


def log(event: str, facts: Mapping[str, Any]) -> None:
    """Writes one line. What may tell of documents is in none: `LOGGED` says what is."""
    from securetm.federation.party.status import log_line

    sys.stderr.write(log_line(event, facts) + "\n")
    sys.stderr.flush()


@contextmanager
def monitored(joining: Joining, status: JoinStatus, chosen: Monitoring) -> Iterator[None]:
    """Serves metrics and the status page until the block ends."""
    if not (chosen.metrics or chosen.status):
        yield
        return
    from securetm.federation.coordinator.pages import LocalPages, PartyMetrics, metrics_page
    from securetm.reports.federation import party_status_page, status_pages

    facts = facts_of(joining, status)
    host, _, port = chosen.metrics.rpartition(":")
    with ExitStack() as opened:
        if chosen.metrics:
            from securetm.settings import require

            require(port.isascii() and port.isdigit(), "", "--metrics", chosen.metrics, "must be PORT or ADDRESS:PORT")
            pages = {"/metrics": metrics_page(PartyMetrics(facts))}
            opened.enter_context(LocalPages(pages, int(port), host or "127.0.0.1"))
        if chosen.status:
            opened.enter_context(LocalPages(status_pages(facts, party_status_page), chosen.status))
        yield


def facts_of(joining: Joining, status: JoinStatus) -> Callable[[], dict[str, Any]]:
    """How the run stands, with what may stop it: the end of the certificate, and the room on the disk."""
    from securetm.credentials.diagnosis import now_utc

    until, home = joining.roster.member(joining.file.name).certificate.until, joining.home.path
    return lambda: {
        **status.facts(),
        "certificate_seconds": (until - now_utc()).total_seconds(),
        "disk_free_bytes": shutil.disk_usage(home).free,
    }
