"""`securetm keys`: from new keys to an accepted roster, a member more, a member less, rotation and own certificates."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from securetm.credentials.homes import KEYS
from securetm.credentials.keys import Keys
from securetm.credentials.roster import read_roster

from ..conftest import securetm
from .conftest import ALL, COMMANDS, FIRST, OF_ROSTERS, done, keys, own_certificate, refused
from .terminal import typed

# ---- help and examples -----------------------------------------------------------------------------------------------


def test_keys_alone_is_its_help_and_names_every_command() -> None:
    alone = keys("")
    assert alone == keys("--help")
    assert re.findall(r"^  ([a-z]+)  ", alone.out, re.MULTILINE) == [*COMMANDS, "roster"]
    assert re.findall(r"^  ([a-z]+)  ", keys("roster").out, re.MULTILINE) == list(OF_ROSTERS)


@pytest.mark.parametrize("command", ALL)
def test_every_example_does_what_it_says(command: str, place: Path) -> None:
    """In a folder with what the examples speak of."""
    paragraphs = [" ".join(part.split()) for part in keys(f"{command} --help").out.strip().split("\n\n")]
    assert re.match(r"[A-Z].*[^.]\.$", paragraphs[1]), paragraphs[1]
    assert paragraphs[-1].startswith(f"Example: securetm keys {command} ")
    example = shlex.split(paragraphs[-1])[2:]
    prepare_example(command)
    said = typed(example, "y\n") if command == "accept" else securetm(*example)
    assert said.code == 0, said.err
    assert "error" not in said.err


def prepare_example(command: str) -> None:
    """Makes what the example of this command needs."""
    if command == "new":
        os.environ["XDG_DATA_HOME"] = str(Path("elsewhere").resolve())  # restored by the fixture
        return
    Path("homes/hospital-a").symlink_to(Path("data/securetm/hospital-a").resolve())
    own_certificate("own.pem", "own-key.pem")
    requests = "hospital-b.request" if command == "issue" else "hospital-a.request hospital-b.request"
    roster = done(f"issue {requests} {FIRST}")
    if command == "roster sign":
        done(f"accept roster.toml --home homes/hospital-a --fingerprint '{roster['fingerprint']}'")
    if command == "roster add":
        done("new hospital-c --home homes/hospital-c")
        done("own own.pem own-key.pem --home homes/hospital-c")


# ---- joining ---------------------------------------------------------------------------------------------------------


def test_three_commands_to_an_accepted_roster(issued: Any, place: Path) -> None:
    assert (issued["federation"], issued["version"], issued["address"]) == ("demo", 1, "hub.example.org:7443")
    assert issued["members"] == issued["unsigned"] == ["hospital-a", "hospital-b"]
    assert [(line["name"], line["what"]) for line in issued["changes"]] == [
        ("coordinator", "came"),
        ("hospital-a", "came"),
        ("hospital-b", "came"),
    ]
    result = done(f"accept roster.toml --fingerprint {issued['fingerprint'].replace(' ', '')}")
    assert result["accepted"]
    assert result["home"] == str(place / "data/securetm/hospital-a")
    assert (place / "data/securetm/hospital-a/roster.toml").is_file()


def test_the_operator_answers_in_the_terminal(issued: Any, place: Path) -> None:
    lines = issued["fingerprint"].split()
    for answer, code in (("n\n", 2), ("\n", 2), ("y\n", 0)):
        said = typed(["keys", "accept", "roster.toml"], answer)
        assert said.code == code, said.err
        assert " ".join(lines[:4]) in said.out
        assert "Do the others see the same fingerprint" in said.err
        assert (place / "data/securetm/hospital-a/roster.toml").exists() == (code == 0)
    assert typed(["keys", "accept", "roster.toml"], "").code == 0  # it is accepted already, so that nothing is asked


def test_a_wrong_fingerprint_accepts_nothing(issued: Any, place: Path) -> None:
    for typed_in in ("1" * 60, issued["fingerprint"][:-1], "abc"):
        assert "is not that of this roster" in refused(f"accept roster.toml --fingerprint '{typed_in}'")
    assert "was not accepted" in refused("accept roster.toml")
    assert not (place / "data/securetm/hospital-a/roster.toml").exists()


def test_a_member_leaves_and_another_is_revoked(accepted: Any) -> None:
    gone = done("roster remove hospital-b")
    assert [line["what"] for line in gone["changes"]] == ["stays", "stays", "left"]
    assert done("issue hospital-b.request")["members"] == ["hospital-a", "hospital-b"]
    revoked = done("revoke hospital-b")
    assert [line["what"] for line in revoked["changes"]] == ["stays", "stays", "revoked"]
    assert len(revoked["revoked"]) == 3  # its identity, its TLS key and its certificate
    assert "has revoked" in refused("issue hospital-b.request")


@pytest.mark.parametrize("more", ["", "--identity"])
def test_keys_are_rotated(accepted: Any, more: str) -> None:
    home = Path("homes/hospital-b")
    before = Keys.open(home / KEYS)
    done(f"rotate {more} --home {home}")
    assert "wait for a roster already" in refused(f"rotate --home {home}")
    shown = done(f"show --home {home}")
    assert any("waiting for a roster" in row["what"] for row in shown["fingerprints"])
    new = done("issue hospital-b.request")
    assert new["changes"][2]["what"] == ("identity changed" if more else "TLS key changed")
    done(f"accept roster.toml --home {home} --fingerprint '{new['fingerprint']}'")
    after = Keys.open(home / KEYS)
    assert (before.identity == after.identity) is not bool(more)
    assert before.tls_key_pem != after.tls_key_pem
    assert not any("waiting" in row["what"] for row in done(f"show --home {home}")["fingerprints"])


# ---- own certificates ------------------------------------------------------------------------------------------------


def test_an_own_certificate(accepted: Any) -> None:
    own_certificate("own.pem", "own-key.pem", names=("b.example.org",))
    done("own own.pem own-key.pem --home homes/hospital-b")
    new = done("issue hospital-b.request")
    assert new["changes"][2]["what"] == "TLS key changed"
    assert read_roster(Path("roster.toml")).member("hospital-b").certificate.names == ("b.example.org",)
    done(f"accept roster.toml --home homes/hospital-b --fingerprint '{new['fingerprint']}'")
    assert Keys.open(Path("homes/hospital-b") / KEYS).certificate_pem == Path("own.pem").read_bytes()
