"""Tables of keys, rosters and what changes in them. Fingerprints stand in lines that can be read over the telephone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column

from securetm.credentials.roster import FederationRoster
from securetm.credentials.roster_changes import STAYS, RosterChange
from securetm.reports.terminal import results, screen, titled

_PER_LINE = 4  # groups of a fingerprint
_STYLES = {"came": "green", "left": "red", "revoked": "bold red", "identity changed": "bold red", "TLS key changed": "yellow"}


def show_fingerprints(found: Mapping[str, Any], json: bool) -> None:
    """Fingerprints of keys, certificates and rosters, with notes on what ends soon."""
    heads = (Column("what", overflow="fold"), Column("of", overflow="fold"), Column("fingerprint", no_wrap=True), "until")
    table = titled(escape(found["of"]), *heads, show_lines=True)
    for row in found["fingerprints"]:
        table.add_row(escape(row["what"]), escape(row["name"]), in_lines(row["fingerprint"]), row["until"])
    results(json).print(table)
    show_warnings(found["warnings"])


def in_lines(fingerprint: str) -> str:
    """A fingerprint in lines of four groups."""
    groups = fingerprint.split()
    return "\n".join(" ".join(groups[at : at + _PER_LINE]) for at in range(0, len(groups), _PER_LINE))


def show_changes(new: FederationRoster, old: FederationRoster | None, lines: Sequence[RosterChange], to: Console) -> None:
    """What a roster changes, and its fingerprint."""
    before = f"accepted here: {old.version}" if old else "none was accepted here before"
    heads = ("member", "change", Column("fingerprint of its identity", no_wrap=True), "certificate until")
    title = f"Roster {new.version} of federation {escape(new.federation)} ({before})"
    table = titled(title, *heads, caption=f"The coordinator listens on {escape(new.address)}.")
    for line in lines:
        shown = "" if line.what == STAYS else in_lines(line.identity)
        name = f"{line.name}\nholds {line.holds:,} or more" if line.holds else line.name
        table.add_row(escape(name), line.what, shown, line.until, style=_STYLES.get(line.what))
    to.print(table)
    to.print("[bold]Fingerprint of this roster[/bold], to compare with the other members by telephone:")
    to.print(in_lines(new.fingerprint))


def show_request(facts: Mapping[str, Any], json: bool) -> None:
    """Where keys and request are, and what to do next."""
    to = results(json)
    to.print(f"Keys of {facts['name']} are in {facts['home']}; back up this folder.", markup=False, soft_wrap=True)
    to.print("Fingerprint of the identity:")
    to.print(in_lines(facts["identity"]))
    to.print(f"Send {facts['request']} to the coordinator's operator; it holds no secret.", markup=False, soft_wrap=True)
    to.print("When the roster comes back: securetm keys accept roster.toml")


def show_warnings(sentences: Iterable[str]) -> None:
    """Certificates that end soon."""
    for sentence in sentences:
        screen().print(f"Note: {sentence}.", style="yellow", markup=False)
