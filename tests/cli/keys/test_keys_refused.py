"""`securetm keys`: every wrong turn is a sentence, certificates that end are announced, and secrets are nowhere."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from securetm.credentials.diagnosis import now_utc
from securetm.credentials.homes import KEYS
from securetm.credentials.keys import Keys, Passphrase

from .conftest import done, keys, refused
from .terminal import typed_secretly

# ---- wrong turns -----------------------------------------------------------------------------------------------------

WRONG = {
    "new ../up": "must be 1 to 63 small letters",
    "new 'Hospital A'": "call it hospital-a",
    "new hospital-a": "there are keys in",
    "new hospital-b --home homes/hospital-b": "there are keys in",
    "request --home nowhere": "there are no keys in",
    "request": "it is not clear whose keys",
    "rotate --home nowhere": "there are no keys in",
    "own none.pem none.pem --home homes/hospital-b": "none.pem does not exist",
    "issue none.request": "none.request does not exist",
    "issue hospital-a.request --roster other.toml": "--federation is missing",
    "issue hospital-a.request --roster other.toml --federation x": "--address is missing",
    "issue hospital-a.request --federation other": "is another one than that of roster.toml, demo",
    "issue": "says so already",
    "issue hospital-a.request": "says so already",
    "issue roster.toml": "there is no setting of roster.toml called",
    "issue hospital-a.request --days 0": "--days",
    "issue --address nothing": "must be HOST:PORT",
    "revoke nobody": "there is no member called nobody",
    "revoke coordinator": "cannot leave",
    "accept none.toml": "none.toml does not exist",
    "accept hospital-a.request": "there is no setting of hospital-a.request called",
    "accept roster.toml --home data/securetm/coordinator/authority": "there are no keys in",
    "show none.toml": "none.toml does not exist",
    "show homes": "homes cannot be opened: Is a directory",
    "roster show none.toml": "none.toml does not exist",
    "roster check broken.toml": "is not valid TOML",
    "roster add hospital-c.request": "brings no certificate",
    "roster remove nobody": "there is no member called nobody",
    "roster sign roster.toml": "is not accepted here",
}


def test_a_wrong_turn_is_a_sentence_and_changes_nothing(issued: Any, place: Path) -> None:
    Path("broken.toml").write_text("[[member]")
    done("new hospital-c --home homes/hospital-c")
    done("new hospital-d")
    before = contents(place)
    for command, said in WRONG.items():
        assert said in refused(command), command
    assert contents(place) == before


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file below the folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_certificates_that_end_are_announced(accepted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    later = now_utc() + timedelta(days=350)
    monkeypatch.setattr("securetm.credentials.diagnosis.now_utc", lambda: later)
    monkeypatch.setattr("securetm.credentials.shown_keys.now_utc", lambda: later)
    monkeypatch.setattr("securetm.credentials.issuing.now_utc", lambda: later)
    assert len(done("show roster.toml")["warnings"]) == len(done("roster check roster.toml")["warnings"]) == 3
    assert "Note: the certificate of hospital-a ends on" in keys("show --home homes/hospital-b").err
    renewed = done("issue")
    assert {line["what"] for line in renewed["changes"]} == {"certificate renewed"}
    assert renewed["warnings"] == []
    later += timedelta(days=400)
    said = keys("roster check roster.toml --json")
    assert said.code == 1
    assert said.json["ended"] == ["coordinator", "hospital-a", "hospital-b"]


# ---- passphrases -----------------------------------------------------------------------------------------------------

PHRASE = "four random words"


def test_a_passphrase_from_a_file(place: Path) -> None:
    Path("phrase").touch(0o600)
    Path("phrase").write_text(PHRASE + "\n")
    done("new north --home homes/north --passphrase-file phrase")
    assert Keys.open(Path("homes/north") / KEYS, Passphrase(PHRASE)).identity
    done("rotate --home homes/north --passphrase-file phrase")
    done("show --home homes/north")
    Path("phrase").chmod(0o644)
    assert "is for its owner alone" in refused("new south --home homes/south --passphrase-file phrase")


def test_a_passphrase_from_the_environment_is_taken_out_of_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECURETM_PASSPHRASE", PHRASE)
    done("new north --home homes/north")
    assert "SECURETM_PASSPHRASE" not in os.environ
    assert Keys.open(Path("homes/north") / KEYS, Passphrase(PHRASE)).identity
    assert "is protected with a passphrase" in refused("rotate --home homes/north")
    monkeypatch.setenv("SECURETM_PASSPHRASE", "another one")
    assert "does not open" in refused("rotate --home homes/north")


def test_a_passphrase_from_the_terminal(place: Path) -> None:
    home = str(place / "homes/north")
    said = typed_secretly(["keys", "new", "north", "--home", home, "--passphrase"], PHRASE, PHRASE)
    assert said.code == 0, said.err
    assert PHRASE not in said.out + said.err  # it is not echoed
    assert typed_secretly(["keys", "rotate", "--home", home], PHRASE).code == 0
    different = typed_secretly(["keys", "new", "south", "--home", home + "2", "--passphrase"], PHRASE, "four other words")
    assert "was typed in two different ways" in different.err
