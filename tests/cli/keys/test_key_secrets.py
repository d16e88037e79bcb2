"""Secrets stay where they are kept: in no output, log, traceback, file beside the keys, process argument or core dump."""

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
from pathlib import Path

import pytest

from securetm.credentials.homes import KEYS
from securetm.credentials.issuing import AUTHORITY
from securetm.credentials.keys import NEXT, Keys, Passphrase
from securetm.errors import SecuretmError

from ...quick_part import quick
from .conftest import FIRST, keys, own_certificate

PHRASE = "four random words"
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
