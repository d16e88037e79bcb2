"""Letters in a store: a real SFTP server on this machine, reached through fsspec as any administrator's would be."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from securetm.errors import Mistake
from securetm.federation.courier import places
from securetm.federation.courier.letters import Writer
from securetm.federation.courier.mailbox import Mailbox
from securetm.federation.courier.places import LocalFolder, Place, PlaceAway, StoredFolder, place_of
from securetm.trial.files import free_port

from ..federation.joined import NAMES, PLAN
from .passing import ByCourier
from .test_letters import put

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/sbin")
pytestmark = [pytest.mark.own_draws, pytest.mark.skipif(SSHD is None, reason="no sshd is installed on this machine")]
CONFIGURATION = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/member.pub
PidFile {folder}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
Subsystem sftp internal-sftp {options}
"""


@dataclass
class Drop:
    """An SFTP server that lets this user in by a key."""

    folder: Path
    options: str = ""
    port: int = field(default_factory=free_port)
    server: subprocess.Popen[bytes] | None = None

    def url(self, path: Path) -> str:
        return f"sftp://{getpass.getuser()}@127.0.0.1:{self.port}{path}"

    def start(self) -> None:
        assert SSHD is not None
        configuration = self.folder / f"sshd_config_{self.port}"
        configuration.write_text(CONFIGURATION.format(folder=self.folder, port=self.port, options=self.options), "utf-8")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        self.server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(configuration)], stderr=subprocess.DEVNULL)
        while self.server.poll() is None:
            with socket.socket() as caller:
                if caller.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
        raise AssertionError(self.server.returncode)

    def sessions(self) -> list[int]:
        """The processes that serve one connection each."""
        assert self.server is not None
        children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text("utf-8")
        return [int(one) for one in children.split()]

    def stop(self) -> None:
        """Ends the server with all its connections."""
        assert self.server is not None
        for session in self.sessions():
            os.kill(session, signal.SIGKILL)
        self.server.terminate()
        self.server.wait()


@pytest.fixture(scope="module")
def login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keys of a server and of a member, with which fsspec logs in as its configuration says."""
    fsspec = pytest.importorskip("fsspec", reason="the extra courier is not installed")
    pytest.importorskip("paramiko", reason="the extra courier is not installed")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "member"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    before = fsspec.config.conf.get("sftp")
    fsspec.config.conf["sftp"] = {"key_filename": str(folder / "member"), "look_for_keys": False, "allow_agent": False}
    try:
        yield folder
    finally:
        fsspec.config.conf["sftp"] = before or {}
        stores = fsspec.get_filesystem_class("sftp")
        for connected in stores._cache.values():
            connected.client.close()
        stores.clear_instance_cache()


@pytest.fixture
def drop(login: Path) -> Iterator[Drop]:
    made = Drop(login)
    made.start()
    yield made
    made.stop()


def test_a_store_is_a_folder_like_any_other(drop: Drop, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    store, folder = place_of(drop.url(tmp_path)), LocalFolder(tmp_path)
    assert isinstance(store, StoredFolder)
    name = store.write(b"a letter" * 10_000)
    assert store.files() == folder.files() == {name: 80_000}
    assert store.read(name, 100, 8) == folder.read(name, 100, 8) == (b"a letter" * 13)[:100]
    assert store.read("not there", 10) == b""
    assert len(store.read(name, 1 << 30)) == 80_000
    store.remove(name)
    store.remove(name)
    assert store.files() == {}
    with pytest.raises(Mistake, match="no folder"):
        place_of(drop.url(tmp_path / "not" / "there"))


def test_a_name_that_is_no_text_hides_no_letter(drop: Drop, tmp_path: Path) -> None:
    for name in (b"caf\xe9.txt", b"two\nlines", b"a b%20#c?d=e"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(b"of somebody else")
    (tmp_path / "link").symlink_to("/dev/zero")
    store = place_of(drop.url(tmp_path))
    name = store.write(b"a letter")
    assert store.files() == store.files() == {name: 8, "two\nlines": 16, "a b%20#c?d=e": 16}
    assert [store.read(one, 20) for one in (name, "two\nlines")] == [b"a letter", b"of somebody else"]


def test_files_that_this_account_may_not_read_are_told_and_stop_nothing(
    login: Path, writers: dict[str, Writer], tmp_path: Path
) -> None:
    put(tmp_path, writers["coordinator"], "numpy")
    denied = Drop(login, "-P read")
    denied.start()
    try:
        box = Mailbox(writers["numpy"], place_of(denied.url(tmp_path)))
        assert list(box.heads()) == []
        assert box.unread == {"a letter"}
        (tmp_path / "a letter").unlink()
        assert list(box.heads()) == []
        assert box.unread == set()
    finally:
        denied.stop()


def test_a_server_that_was_away_is_reached_again(drop: Drop, tmp_path: Path) -> None:
    store = place_of(drop.url(tmp_path))
    drop.stop()
    for use in (store.files, lambda: store.write(b"a letter"), lambda: store.read("a letter", 1)):
        with pytest.raises(PlaceAway) as away:
            use()
        assert f"127.0.0.1:{drop.port}" in str(away.value)
        assert f"sftp://{getpass.getuser()}@127.0.0.1" in str(away.value)
    drop.start()
    name = store.write(b"a letter")
    assert store.files() == {name: 8}


def test_a_connection_that_froze_is_given_up(drop: Drop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PATIENCE", 2.0)
    store = place_of(drop.url(tmp_path))
    frozen = drop.sessions()
    for session in frozen:
        os.kill(session, signal.SIGSTOP)
    assert store.files() == {}
    assert set(drop.sessions()) > set(frozen)


@pytest.mark.slow
def test_by_sftp_and_a_stick_with_a_party_that_rests_the_model_is_the_same(drop: Drop, keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, PLAN.replace("rounds = 2", "rounds = 1"))
    stick = tmp_path / "stick"

    def place(name: str) -> Place:
        """One party has a stick, which somebody merges with the drop before and after each of its passes."""
        return LocalFolder(stick) if name == NAMES[0] else place_of(drop.url(run.letters))

    def carried() -> None:
        stick.mkdir(exist_ok=True)
        for source, to in ((run.letters, stick), (stick, run.letters)):
            shutil.copytree(source, to, dirs_exist_ok=True)

    carried()
    run.place_of = place
    assert run.to_the_end(carried, lambda turn: NAMES[-1:] if 3 < turn < 9 else ())["rounds"] == 1
    assert run.models() == {run.simulated()}
