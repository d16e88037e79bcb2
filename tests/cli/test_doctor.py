"""`securetm doctor`: each thing that is wrong is found by name, and what is fine is said to be fine."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.credentials.homes import KEYS, accept, accepted_roster
from securetm.credentials.keys import Keys
from securetm.federation.budget.ledgers import LedgersOfDocuments
from securetm.federation.network.events import Agreed, NetworkEvents
from securetm.federation.network.hub import Hub
from securetm.federation.store import COMMON, SqliteStore, reading
from securetm.stages import Unwatched
from securetm.trial.files import TrialFolder, make_trial
from securetm.version import build_digest

from ..network.meeting import free_port
from .conftest import securetm

NAME = "numpy"
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy", "no_proxy", "no_grpc_proxy")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TrialFolder:
    return make_trial(tmp_path_factory.mktemp("made") / "trial", "masked", 5, Unwatched())


@pytest.fixture
def home(made: TrialFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of this test's own, whose coordinator is at a port that nobody uses."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    shutil.copytree(made.path, tmp_path / "trial")
    place = tmp_path / "trial" / "parties" / NAME / "home"
    roster = accepted_roster(place)
    assert roster is not None
    accept(place, replace(roster, address=f"127.0.0.1:{free_port()}", version=2, signatures={}))
    return place


@contextmanager
def coordinator(home: Path) -> Iterator[list[str]]:
    """The coordinator of this home's roster, and who was refused there."""
    own, roster, refused = home.parents[2] / "coordinator" / "home", accepted_roster(home), list[str]()
    assert roster is not None

    class Watched(NetworkEvents):
        def refused(self, party: str, reason: str) -> None:
            refused.append(f"{party}: {reason}")

    place = home.parent / "spool", roster.address
    hub = Hub(Keys.open(own / KEYS), roster, Agreed(bytes(32), bytes(32)), *place, Watched(), (), 1 << 20)
    hub.start()
    try:
        yield refused
    finally:
        hub.close()


def found(home: Path, *more: str, code: int) -> dict[str, dict[str, Any]]:
    said = securetm("doctor", str(home), "--json", *more)
    assert said.code == code, said.err
    assert said.json["bad"] == [one["what"] for one in said.json["findings"] if one["verdict"] == "bad"]
    assert all(one["to_do"] for one in said.json["findings"] if one["verdict"] != "good")
    return {one["what"]: one for one in said.json["findings"]}


def test_a_member_that_can_take_part(home: Path) -> None:
    with coordinator(home) as refused:
        said = found(home, code=0)
    assert [what for what, one in said.items() if one["verdict"] != "good"] in ([], ["clock"])
    assert list(said) == [
        "versions", "permissions", "clock", "disk", "entropy", "roster", "build", "keys", "ledgers", "stores", "proxy",
        "reachability",
    ]  # fmt: skip
    assert refused == []  # the coordinator's log has no line of it


def test_nobody_answers_there(home: Path) -> None:
    said = found(home, code=1)
    assert [what for what, one in said.items() if one["verdict"] == "bad"] == ["reachability"]
    assert "whether `securetm serve` runs" in said["reachability"]["to_do"]
    shown = securetm("doctor", str(home))
    assert (shown.code, "nothing answers" in " ".join(shown.out.split())) == (1, True)


def test_another_coordinator_answers_there(home: Path, made: TrialFolder) -> None:
    """It shows a certificate that the roster does not have."""
    others = make_trial(home.parents[3] / "others", "masked", 5, Unwatched())
    theirs, ours = others.path / "parties" / NAME / "home", accepted_roster(home)
    stranger = accepted_roster(theirs)
    assert ours is not None
    assert stranger is not None
    accept(theirs, replace(stranger, address=ours.address, version=2, signatures={}))
    with coordinator(theirs):
        assert found(home, code=1)["reachability"]["verdict"] == "bad"


def test_files_that_others_may_read(home: Path) -> None:
    (home / KEYS / "identity.pem").chmod(0o640)
    said = found(home, code=1)
    assert said["permissions"]["verdict"] == said["keys"]["verdict"] == "bad"
    assert "chmod" in said["permissions"]["to_do"]


def test_a_ledger_and_a_store_that_were_changed(home: Path) -> None:
    budget = Budget(Unit.DOCUMENT, 1.0, 1e-6)
    path = (
        LedgersOfDocuments(home / "ledgers").home(
            {NAME: Corpus.from_strings(["some words of a note"])}, {NAME: "notes"}, budget
        )
        / "notes.ledger"
    )
    assert found(home, code=1)["ledgers"]["verdict"] == "good"
    with sqlite3.connect(path) as opened:
        opened.execute("DROP TRIGGER entries_stay_as_they_are")
        opened.execute("UPDATE entries SET content = replace(content, '1e-06', '1e-05')")
    (home / "others.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(100))
    (home / "others.sqlite").chmod(0o600)
    said = found(home, code=1)
    assert said["ledgers"]["verdict"] == said["stores"]["verdict"] == "bad"


def test_nothing_is_changed(home: Path) -> None:
    with closing(SqliteStore(home / "others.sqlite", COMMON)) as store:
        store.put("a", b"value")
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    assert found(home, code=1)["stores"]["verdict"] == "good"
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_a_store_is_read_where_its_writer_was_killed(home: Path) -> None:
    """Its last values are in the write-ahead log alone."""
    path, killed = home / "others.sqlite", home.parent / "killed"
    with closing(SqliteStore(path, COMMON)) as store:
        store.put("a", b"value")
        killed.mkdir()
        for name in (path.name, f"{path.name}-wal"):
            shutil.copy(home / name, killed / name)
    with reading(killed / path.name) as opened:
        assert opened.execute("SELECT value FROM store").fetchall() == [(b"value",)]
    assert sorted(one.name for one in killed.iterdir()) == [path.name, f"{path.name}-wal"]


def test_a_clock_that_is_behind_and_a_certificate_that_has_ended(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time() + 3_600
    os.utime(home / KEYS / "identity.pem", (later, later))
    assert "59 minutes" in found(home, code=1)["clock"]["found"] or "60 minutes" in found(home, code=1)["clock"]["found"]
    from securetm.credentials.diagnosis import now_utc

    gone = now_utc().replace(year=now_utc().year + 3)
    monkeypatch.setattr("securetm.federation.doctor.now_utc", lambda: gone)
    said = found(home, code=1)
    assert said["roster"]["verdict"] == said["keys"]["verdict"] == "bad"


def test_proxies_as_grpc_takes_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy.example.org:3128")
    shown = found(home, code=1)["proxy"]
    assert (shown["verdict"], "proxy.example.org:3128" in shown["found"]) == ("good", True)
    assert "secret" not in json.dumps(shown)
    monkeypatch.setenv("no_proxy", "example.com,127.0.0.1")
    assert "direct" in found(home, code=1)["proxy"]["found"]
    monkeypatch.setenv("grpc_proxy", "https://proxy.example.org")
    monkeypatch.delenv("no_proxy")
    assert found(home, code=1)["proxy"]["verdict"] == "bad"


def test_a_build_that_the_roster_does_not_list(home: Path) -> None:
    roster = accepted_roster(home)
    assert roster is not None
    verdicts = []
    for number, more in enumerate(({"builds": frozenset({build_digest()})}, {}, {"refuses_others": True})):
        pinned = {"builds": frozenset({"0" * 64}), **more}
        accept(home, replace(roster, version=3 + number, signatures={}, **pinned))
        verdicts.append(found(home, code=1)["build"]["verdict"])
    assert verdicts == ["good", "unknown", "bad"]


def test_where_letters_lie_is_looked_at_in_place_of_a_connection(home: Path, tmp_path: Path) -> None:
    letters = tmp_path / "letters"
    absent = found(home, "--courier", str(letters), code=1)
    assert (absent["courier"]["verdict"], "reachability" in absent) == ("bad", False)
    letters.mkdir()
    (letters / "of-others").touch()
    assert found(home, "--courier", str(letters), code=0)["courier"]["found"].startswith("1 file there")
    assert [path.name for path in letters.iterdir()] == ["of-others"]


@contextmanager
def connecting_proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy that knows CONNECT, its address, and what it was asked for."""
    listening, asked = socket.create_server(("127.0.0.1", 0)), list[str]()

    def pass_on(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while content := one.recv(1 << 16):
                other.sendall(content)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def accept_all() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(4096)
                asked.append(head.split(b"\r\n")[0].decode())
                host, _, port = head.split()[1].decode().partition(":")
                server = socket.create_connection((host, int(port)))
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=pass_on, args=ends, daemon=True).start()

    threading.Thread(target=accept_all, daemon=True).start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}", asked
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def test_the_way_goes_through_a_proxy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roster = accepted_roster(home)
    assert roster is not None
    with coordinator(home), connecting_proxy() as (proxy, asked):
        monkeypatch.setenv("https_proxy", f"http://{proxy}")
        assert found(home, code=0)["reachability"]["verdict"] == "good"
        assert asked == [f"CONNECT {roster.address} HTTP/1.1"]
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{free_port()}")
        assert "the proxy of https_proxy" in found(home, code=1)["reachability"]["to_do"]


def test_a_passphrase_that_is_not_given_is_unknown(tmp_path: Path) -> None:
    secret, place = tmp_path / "secret", tmp_path / "home"
    secret.touch(0o600)
    secret.write_text("four random words")
    made = ("keys", "new", "hospital-a", "--home", str(place), "--request", str(tmp_path / "a.request"))
    assert securetm(*made, "--passphrase-file", str(secret)).code == 0
    said = found(place, code=1)
    assert (said["keys"]["verdict"], said["roster"]["verdict"]) == ("unknown", "bad")
    assert found(place, "--passphrase-file", str(secret), code=1)["keys"]["verdict"] == "good"
