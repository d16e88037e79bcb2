"""`securetm keys` as tests call it, on the machines of a coordinator and two hospitals."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ...credentials.made import odd_certificate
from ..conftest import Said, securetm

FIRST = "--federation demo --address hub.example.org:7443"
COMMANDS = ("new", "request", "accept", "show", "rotate", "own", "issue", "revoke")
OF_ROSTERS = ("show", "check", "sign", "add", "remove", "builds")
ALL = (*COMMANDS, *(f"roster {name}" for name in OF_ROSTERS if name != "builds"))  # its example names no real digest


def keys(arguments: str) -> Said:
    return securetm("keys", *shlex.split(arguments))


def done(arguments: str) -> Any:
    said = keys(f"{arguments} --json")
    assert said.code == 0, said.err
    return said.json


def refused(arguments: str, code: int = 2) -> str:
    """The error and the hint of a command that fails."""
    said = keys(arguments)
    assert said.code == code, (said.out, said.err)
    assert "Traceback" not in said.err
    assert "securetm: hint: " in said.err
    return said.err


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The coordinator's machine with two requests, and hospital-a's home in the usual place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("SECURETM_PASSPHRASE", raising=False)
    done("new hospital-a")
    done("new hospital-b --home homes/hospital-b")
    return tmp_path


@pytest.fixture
def issued(place: Path) -> Any:
    """The first roster."""
    return done(f"issue hospital-a.request hospital-b.request {FIRST}")


@pytest.fixture
def accepted(issued: Any) -> Any:
    """It is accepted by both."""
    for home in ("", "--home homes/hospital-b"):
        done(f"accept roster.toml {home} --fingerprint '{issued['fingerprint']}'")
    return issued


def own_certificate(certificate: str, key: str, made: Any = None, **odd: Any) -> None:
    """A certificate of an authority of one's own, and its key."""
    private = made or ec.generate_private_key(ec.SECP256R1())
    Path(certificate).write_bytes(odd_certificate(private, organisation="Clinic", **odd).pem)
    Path(key).touch(0o600)
    Path(key).write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
