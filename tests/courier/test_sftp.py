"""Letters in a store: a real SFTP server on this machine, reached through fsspec as any administrator's would be."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from securetm.errors import Mistake
from securetm.federation.courier.places import LocalFolder, Place, StoredFolder, place_of
from securetm.trial.files import free_port

from ..federation.joined import NAMES, PLAN
from .passing import ByCourier

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/sbin")
pytestmark = [pytest.mark.own_draws, pytest.mark.skipif(SSHD is None, reason="no sshd is installed on this machine")]
CONFIGURATION = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/member.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
Subsystem sftp internal-sftp
"""


@pytest.fixture(scope="module")
def drop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an SFTP server that lets this user in by a key."""
    fsspec = pytest.importorskip("fsspec", reason="the extra courier is not installed")
    pytest.importorskip("paramiko", reason="the extra courier is not installed")
    assert SSHD is not None
    folder, port = tmp_path_factory.mktemp("sshd"), free_port()
    for name in ("host", "member"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "sshd_config").write_text(CONFIGURATION.format(folder=folder, port=port), "utf-8")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL) as server:
        _until_listening(port, server)
        before = fsspec.config.conf.get("sftp")
        fsspec.config.conf["sftp"] = {"key_filename": str(folder / "member"), "look_for_keys": False, "allow_agent": False}
        try:
            yield f"sftp://{getpass.getuser()}@127.0.0.1:{port}"
        finally:
            server.terminate()
            fsspec.config.conf["sftp"] = before or {}
            stores = fsspec.get_filesystem_class("sftp")
            for connected in stores._cache.values():
                connected.client.close()
            stores.clear_instance_cache()


def _until_listening(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        with socket.socket() as caller:
            if caller.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError(server.returncode)


def test_a_store_is_a_folder_like_any_other(drop: str, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    store, folder = place_of(f"{drop}{tmp_path}"), LocalFolder(tmp_path)
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
        place_of(f"{drop}{tmp_path}/not/there")


@pytest.mark.slow
def test_five_parties_by_sftp_and_a_stick_learn_what_a_simulation_does(drop: str, keys: Path, tmp_path: Path) -> None:
    run = ByCourier.of(keys, tmp_path, PLAN.replace("rounds = 2", "rounds = 1"))
    stick = tmp_path / "stick"

    def place(name: str) -> Place:
        """One party has a stick, which somebody merges with the drop before and after each of its passes."""
        return LocalFolder(stick) if name == NAMES[0] else place_of(f"{drop}{run.letters}")

    def carried() -> None:
        stick.mkdir(exist_ok=True)
        for source, to in ((run.letters, stick), (stick, run.letters)):
            shutil.copytree(source, to, dirs_exist_ok=True)

    carried()
    run.place_of = place
    assert run.to_the_end(carried)["rounds"] == 1
    assert run.models() == {run.simulated()}
