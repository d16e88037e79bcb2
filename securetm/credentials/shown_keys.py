"""The public facts of keys, requests, certificates and rosters, as commands show them. No private key is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from securetm.credentials.certificates import Certificate, check_form, day_and_time
from securetm.credentials.diagnosis import ending_soon, now_utc
from securetm.credentials.homes import KEYS, accepted_roster, found_home, waiting_request
from securetm.credentials.key_requests import KeyRequest, parsed_request, request_in
from securetm.credentials.keys import fingerprint_of
from securetm.credentials.roster import LONGEST_ROSTER, FederationRoster, Member, parsed_roster
from securetm.credentials.strict_toml import bytes_of, parsed_limited

Facts = dict[str, Any]


def shown_home(named: Path | None) -> Facts:
    home = found_home(named)
    present, waiting, roster = request_in(home / KEYS), waiting_request(home), accepted_roster(home)
    rows = _of_request(present)
    if waiting.signature != present.signature:
        rows += [{**row, "what": f"{row['what']}, waiting for a roster"} for row in _of_request(waiting)]
    if roster:
        rows += [_certificate_row(roster.member(present.name)), _roster_row(roster)]
    return _facts(str(home), rows, ending_soon(roster, now_utc()) if roster else ())


def shown_file(path: Path) -> Facts:
    """A roster, a request or a certificate: each is recognised by what is in it."""
    content = bytes_of(path, LONGEST_ROSTER)
    if b"-----BEGIN CERTIFICATE-----" in content[:200]:
        certificate = Certificate.from_pem(content, path.name)
        check_form(certificate, path.name)
        row = _row("certificate", ", ".join(certificate.names)[:200], certificate.fingerprint, certificate)
        return _facts(str(path), [row])
    tables = parsed_limited(str(path), content)
    if "signing_request" in tables:
        return _facts(str(path), _of_request(parsed_request(path, tables)))
    roster = parsed_roster(path, tables)
    rows = [{**_certificate_row(one), "what": "identity", "fingerprint": one.fingerprint} for one in roster.everybody]
    return _facts(str(path), [*rows, _roster_row(roster)], ending_soon(roster, now_utc()))


def _of_request(request: KeyRequest) -> list[Facts]:
    rows = [_row("identity", request.name, fingerprint_of(request.identity))]
    if request.certificate:
        rows.append(_row("own certificate", request.name, request.certificate.fingerprint, request.certificate))
    return [*rows, _row("TLS key", request.name, fingerprint_of(request.tls_public_key))]


def _certificate_row(member: Member) -> Facts:
    return _row("certificate", member.name, member.certificate.fingerprint, member.certificate)


def _roster_row(roster: FederationRoster) -> Facts:
    signed = f", signed by {len(roster.members) - len(roster.unsigned)} of {len(roster.members)}"
    return _row(f"roster {roster.version}{signed}", roster.federation, roster.fingerprint)


def _row(what: str, name: str, fingerprint: str, certificate: Certificate | None = None) -> Facts:
    until = day_and_time(certificate.until) if certificate else ""
    return {"what": what, "name": name, "fingerprint": fingerprint, "until": until}


def _facts(of: str, rows: list[Facts], warnings: tuple[str, ...] = ()) -> Facts:
    return {"of": of, "fingerprints": rows, "warnings": list(warnings)}
