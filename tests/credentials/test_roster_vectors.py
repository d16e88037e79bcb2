"""The published vectors of rosters drive the implementation: the same digests, and every bad roster its refusal."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from securetm.credentials.keys import fingerprint
from securetm.credentials.roster import read_roster, roster_text
from securetm.errors import SecuretmError

from .make_vectors import path, text

VECTORS: dict[str, Any] = json.loads(path().read_text("utf-8"))


def test_the_file_is_what_the_code_makes() -> None:
    assert path().read_text("utf-8") == text(), "python -m tests.credentials.make_vectors"


def read(folder: Path, content: str) -> Any:
    (folder / "roster.toml").write_text(content, "utf-8")
    return read_roster(folder / "roster.toml")


@pytest.mark.parametrize("good", VECTORS["good"], ids=lambda one: one["name"])
def test_good_rosters(good: dict[str, str], tmp_path: Path) -> None:
    roster = read(tmp_path, good["toml"])
    assert (roster.digest.hex(), roster.fingerprint) == (good["digest"], good["fingerprint"])
    assert roster_text(roster) == good["toml"]
    assert roster.unsigned == ()


@pytest.mark.parametrize("bad", VECTORS["bad"], ids=lambda one: one["name"])
def test_bad_rosters(bad: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SecuretmError) as refused:
        read(tmp_path, VECTORS["good"][-1]["toml"].replace(bad["find"], bad["put"], 1))
    assert refused.type.__name__ == bad["refusal"]


@pytest.mark.parametrize("one", VECTORS["fingerprints"])
def test_fingerprints(one: dict[str, str]) -> None:
    assert fingerprint(bytes.fromhex(one["sha256"])) == one["fingerprint"]


def test_the_digest_is_that_of_the_specification(tmp_path: Path) -> None:
    """Made here by hand, as protocols/roster.md says it."""
    roster = read(tmp_path, VECTORS["good"][-1]["toml"])
    numbers = (roster.version, len(roster.parties), len(roster.revoked))
    fields = [b"vectors", *(one.to_bytes(8, "big") for one in numbers), b"hub.example.org:7443"]
    for name in ("coordinator", "east", "north", "south"):
        member = roster.member(name)
        fields += [name.encode(), member.identity, member.lasting, member.certificate.der]
    fields += [one.encode() for one in sorted(roster.revoked)]
    whole = (b"securetm credentials 2", b"roster", *fields)
    assert hashlib.sha256(b"".join(len(one).to_bytes(4, "big") + one for one in whole)).digest() == roster.digest
