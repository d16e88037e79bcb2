"""Fingerprints, requests and changed rosters, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from securetm.credentials.roster import STAYS, FederationRoster, RosterChange
from securetm.reports import document
from securetm.reports.document import Paragraph, Words
from securetm.reports.terminal import results, screen, show

_PER_LINE = 4  # groups of a fingerprint
_STYLES = {"came": "good", "left": "bad", "revoked": "danger", "identity changed": "danger", "TLS key changed": "hint"}


def show_fingerprints(found: Mapping[str, Any], json: bool) -> None:
    rows = tuple((row["what"], row["name"], in_lines(row["fingerprint"]), row["until"]) for row in found["fingerprints"])
    heads = ("what", "of", "fingerprint", "until")
    show([document.Table(heads, rows, title=found["of"], kind="lines", whole=(2,))], results(json))
    show_warnings(found["warnings"])


def in_lines(fingerprint: str) -> str:
    groups = fingerprint.split()
    return "\n".join(" ".join(groups[at : at + _PER_LINE]) for at in range(0, len(groups), _PER_LINE))


def show_changes(new: FederationRoster, old: FederationRoster | None, lines: Sequence[RosterChange], to: Console) -> None:
    """What a roster changes, and its fingerprint."""
    before = f"accepted here: {old.version}" if old else "none was accepted here before"
    title = f"Roster {new.version} of federation {new.federation} ({before})"
    heads = ("member", "change", "fingerprint of its identity", "certificate until")
    rows = tuple(
        tuple((Words(cell, _STYLES.get(line.what, "")),) for cell in cells)
        for line in lines
        for cells in [
            (
                f"{line.name}\nholds {line.holds:,} or more" if line.holds else line.name,
                line.what,
                "" if line.what == STAYS else in_lines(line.identity),
                line.until,
            )
        ]
    )
    table = document.Table(heads, rows, f"The coordinator listens on {new.address}.", title, whole=(2,))
    told = (Words("Fingerprint of this roster", "strong"), ", to compare with the other members by telephone:")
    show((table, Paragraph(told), Paragraph(in_lines(new.fingerprint))), to)


def show_request(facts: Mapping[str, Any], json: bool) -> None:
    """Where keys and request are, and what to do next."""
    to = results(json)
    to.print(f"Keys of {facts['name']} are in {facts['home']}; back up this folder.", markup=False, soft_wrap=True)
    to.print("Fingerprint of the identity:")
    to.print(in_lines(facts["identity"]))
    to.print(f"Send {facts['request']} to the coordinator's operator; it holds no secret.", markup=False, soft_wrap=True)
    to.print("When the roster comes back: securetm keys accept roster.toml")


def show_warnings(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        screen().print(f"Note: {sentence}.", style="yellow", markup=False)
