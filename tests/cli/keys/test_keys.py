"""`securetm keys`: from new keys to an accepted roster and on; every wrong turn is a sentence; secrets stay where they are."""

from __future__ import annotations

import base64
import dataclasses
import logging
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from securetm.credentials.diagnosis import now_utc
from securetm.credentials.homes import KEYS
from securetm.credentials.issuing import AUTHORITY
from securetm.credentials.keys import CERTIFICATE, NEXT, Keys, Passphrase
from securetm.credentials.roster import read_roster
from securetm.errors import SecuretmError
from tests.quick_part import quick

from ..conftest import securetm
from .conftest import ALL, COMMANDS, FIRST, OF_ROSTERS, done, keys, own_certificate, refused
from .terminal import typed, typed_secretly

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
    assert "the keys of hospital-b were revoked" in refused("accept roster.toml --home homes/hospital-b")
    assert "did you mean hospital-a?" in refused("revoke hospital-z")


def test_a_damaged_accepted_roster_says_how_to_go_on(accepted: Any) -> None:
    roster = Path("homes/hospital-b/roster.toml")
    roster.write_bytes(roster.read_bytes()[:200])
    said = refused(f"accept roster.toml --home homes/hospital-b --fingerprint '{accepted['fingerprint']}'")
    assert "the roster that was accepted here cannot be read" in said
    assert f"delete {roster}" in " ".join(said.split())
    roster.unlink()
    done(f"accept roster.toml --home homes/hospital-b --fingerprint '{accepted['fingerprint']}'")


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
    assert (Path("homes/hospital-b") / KEYS / CERTIFICATE).read_bytes() == Path("own.pem").read_bytes()


# ---- wrong turns -----------------------------------------------------------------------------------------------------------


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
    assert keys("roster check roster.toml").out.startswith("3 certificates of roster 2 of federation demo have ended: ")


def test_a_copy_says_where_it_cannot_go_and_a_restored_home_how_its_request_is_written(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(command: str, code: int = 2) -> str:
        monkeypatch.setenv("SECURETM_PASSPHRASE", PHRASE)
        told = securetm(*shlex.split(command))
        assert told.code == code, told.err
        return " ".join(told.err.split())

    absent = said("backup homes/hospital-b absent/b.backup")
    assert "its folder is there, or choose another path" in absent
    assert "--resume" not in absent
    said("backup homes/hospital-b b.backup", 0)
    unwritten = said("restore b.backup back --request absent/b.request")
    assert "`securetm keys request --home back --request FILE` goes on" in unwritten
    assert done("request --home back --request again.request")["name"] == "hospital-b"
    monkeypatch.delenv("SECURETM_PASSPHRASE", raising=False)
    assert "a new passphrase has to be chosen" in " ".join(securetm("backup", "homes/hospital-b", "c.backup").err.split())


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
    assert "must be its owner's alone" in refused("new south --home homes/south --passphrase-file phrase")


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


# ---- secrets ---------------------------------------------------------------------------------------------------------------


PRIVATE = (KEYS, AUTHORITY, NEXT)  # folders in which private keys are


def spelt(secret: bytes) -> set[bytes]:
    """A secret as a text or file may hold it: raw, in hexadecimal, in base64 or as Python shows bytes."""
    return {secret, secret.hex().encode(), base64.b64encode(secret)[:40], repr(secret)[2:-1].encode()}


def secrets_of(folder: Path, phrase: Passphrase | None) -> Iterator[bytes]:
    """Every spelling of the keys in a folder."""
    opened = Keys.open(folder, phrase)
    body = b"".join(opened.tls_key_pem.splitlines()[1:-1])
    yield from spelt(opened.identity)
    yield from spelt(base64.b64decode(body))
    yield from (line for line in opened.tls_key_pem.splitlines()[1:-1] if len(line) > 30)


def test_no_output_log_or_file_holds_a_secret(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A whole life of keys: made, issued, accepted, rotated, signed, revoked; with wrong turns in between."""
    caplog.set_level(logging.DEBUG)
    Path("phrase").touch(0o600)
    Path("phrase").write_text(PHRASE)
    Path("wrong").touch(0o600)
    Path("wrong").write_text("five random words")
    own_certificate("own.pem", "own-key.pem")
    with_phrase = "--passphrase-file phrase"
    secrets: set[bytes] = set()
    said = ""
    for command in (
        f"new north --home homes/north {with_phrase}",
        f"issue hospital-a.request north.request {FIRST} {with_phrase}",
        "show roster.toml",
        "accept roster.toml --home homes/north --fingerprint FINGERPRINT",
        f"roster sign roster.toml --home homes/north {with_phrase}",
        "roster sign roster.toml --home homes/north --passphrase-file wrong",
        f"rotate --identity --home homes/north {with_phrase}",
        f"issue north.request {with_phrase}",
        "accept roster.toml --home homes/north --fingerprint FINGERPRINT",
        f"own own.pem own-key.pem --home homes/north {with_phrase}",
        f"revoke north {with_phrase}",
        "roster check roster.toml --home homes/north",
    ):
        if "FINGERPRINT" in command:
            shown = keys("show roster.toml --json").json["fingerprints"][-1]["fingerprint"]
            command = command.replace("FINGERPRINT", f"'{shown}'")
        for more in ("", " --json") if command.startswith(("show", "roster check")) else ("",):
            ended = keys(command + more)
            said += ended.out + ended.err
        for home in ("homes/north", "data/securetm/coordinator"):
            for folder in (Path(home) / KEYS, Path(home) / KEYS / NEXT):
                if (folder / "identity.pem").is_file():
                    secrets.update(secrets_of(folder, Passphrase(PHRASE)))
    assert len(secrets) > 20
    elsewhere = [path for path in place.rglob("*") if path.is_file() and not {*path.parts} & {*PRIVATE}]
    own = {"phrase", "wrong", "own-key.pem"}
    texts = [said.encode(), caplog.text.encode(), *(path.read_bytes() for path in elsewhere if path.name not in own)]
    assert len(texts) > 8
    for text in texts:
        assert not any(secret in text for secret in secrets)
        assert PHRASE.encode() not in text
        assert b"five random words" not in text
        assert b"PRIVATE KEY-----" not in text


def test_encrypted_keys_lie_nowhere_in_the_open(place: Path) -> None:
    """Not in the authority's folder and not among keys that wait, either."""
    Path("phrase").touch(0o600)
    Path("phrase").write_text(PHRASE)
    for command in ("new north --home north", "rotate --home north", f"issue hospital-a.request {FIRST}"):
        ended = keys(f"{command} --passphrase-file phrase")
        assert ended.code == 0, ended.err
    found = [*(place / "north").rglob("*.pem"), *(place / "data/securetm/coordinator").rglob("*.pem")]
    private = [path for path in found if b"PRIVATE KEY" in path.read_bytes()]
    assert len(private) == 7  # north's two and the two that wait, the coordinator's two, and the authority's
    assert all(b"BEGIN ENCRYPTED PRIVATE KEY" in path.read_bytes() for path in private)


def test_no_command_takes_a_passphrase_as_an_argument() -> None:
    """`--passphrase` is a flag, so that nothing that all processes can list holds one."""
    from typer.main import get_command

    from securetm.cli.application import application

    def commands(group: object) -> Iterator[object]:
        for one in getattr(group, "commands", {}).values():
            yield one
            yield from commands(one)

    options = [option for one in commands(get_command(application())) for option in one.params]  # type: ignore[attr-defined]
    named = [option for option in options if re.search(r"pass|secret|phrase\b", " ".join(option.opts))]
    assert {option.opts[0] for option in named} == {"--passphrase", "--passphrase-file"}
    assert all(option.is_flag for option in named if option.opts[0] == "--passphrase")


@pytest.mark.parametrize("rotated", ["--passphrase-file wrong", "--passphrase-file phrase --request none/north.request"])
def test_debug_shows_no_secret(place: Path, rotated: str) -> None:
    """The traceback of a wrong passphrase, and of a command that fails while it holds open keys."""
    for name, text in (("phrase", PHRASE), ("wrong", "five random words")):
        Path(name).touch(0o600)
        Path(name).write_text(text)
    assert keys("new north --home homes/north --passphrase-file phrase").code == 0
    secrets = {*secrets_of(Path("homes/north") / KEYS, Passphrase(PHRASE))}
    command = [sys.executable, "-m", "securetm.cli.main", "--debug", "keys", "rotate", "--home", "homes/north"]
    done = subprocess.run([*command, *shlex.split(rotated)], capture_output=True, check=False, timeout=120)
    assert done.returncode in (2, 3), done.stderr
    assert b"Traceback" in done.stderr
    for secret in {*secrets, PHRASE.encode(), b"five random words", b"PRIVATE KEY"}:
        assert secret not in done.stderr + done.stdout


def test_no_error_about_keys_has_a_field_for_a_secret() -> None:
    from securetm.errors import error_classes

    ours = [kind for kind in error_classes().values() if kind.__module__.startswith("securetm.credentials.")]
    assert len(ours) > 10
    fields = {one.name for kind in ours for one in dataclasses.fields(kind)}
    allowed = "path name names problem kind federation version found known what count until since now"
    assert fields <= {*allowed.split(), "digest", "trusted", "fingerprint", "signature", "role", "roster"}  # all public
    assert all(issubclass(kind, SecuretmError) for kind in ours)


DUMPS = """
import ctypes, os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
{call}
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
print(subprocess.run(['sh', '-c', 'ulimit -c'], capture_output=True, text=True).stdout.strip())
sys.stdout.flush()
os.abort()
"""


def aborted(call: str, cwd: Path) -> tuple[list[str], int]:
    """What a process says of its core dumps before it aborts, and how it ended."""
    process = subprocess.Popen([sys.executable, "-c", DUMPS.format(call=call)], cwd=cwd, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        out = process.stdout.read().splitlines()
    _, status = os.waitpid(process.pid, 0)
    process.returncode = status
    return out, status


def test_a_process_with_keys_dumps_no_core(tmp_path: Path) -> None:
    call = "from securetm.credentials.keys import keep_out_of_core_dumps; keep_out_of_core_dumps()"
    (limits, inherited), status = aborted(call, tmp_path)
    assert limits == "(0, 0) 0"  # no core file, and not dumpable: no other process of the user may trace it
    assert inherited == "0"
    assert os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", quick(["serve none.toml", "join none.toml", "keys show"], "join none.toml"))
def test_the_roles_close_it_before_they_open_keys(command: str, place: Path) -> None:
    script = (
        "import resource, sys\nfrom securetm.cli.main import main\n"
        f"sys.argv = ['securetm', *{shlex.split(command)!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nsys.stdout.write(repr(resource.getrlimit(resource.RLIMIT_CORE)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.endswith("(0, 0)"), done.stderr
