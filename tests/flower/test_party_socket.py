"""A party on a Unix socket: who may reach it, and what it does with callers that hang up, say nothing or say too much."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from securetm.errors import CannotWrite, Mistake
from securetm.federation.flower.party_socket import Door, PartyNotReached, answers, ask, opened, serve

MOST = 1_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose path is longer than the address of a socket may be."""
    deep = tmp_path / ("deep" * 20) / ("deeper" * 15)
    deep.mkdir(parents=True)
    return deep


@pytest.fixture
def served(folder: Path) -> Iterator[list[Path]]:
    """Two parties behind two sockets, held by one thread; each says its number and the request backwards."""
    paths = [folder / f"{place}.sock" for place in range(2)]
    ends, ended = os.pipe()
    with ExitStack() as stack:
        doors = {
            stack.enter_context(opened(path)): Door(lambda message, n=n: bytes([n]) + message[::-1], lambda: MOST)
            for n, path in enumerate(paths)
        }
        thread = threading.Thread(target=lambda: serve(doors, until=stack.enter_context(os.fdopen(ends, "rb"))))
        thread.start()
        yield paths
        os.close(ended)
        thread.join()


def test_each_socket_reaches_its_own_party(served: list[Path]) -> None:
    long = bytes(range(256)) * 2_000
    assert ask(served[0], long) == b"\0" + long[::-1]
    assert ask(served[1], b"") == b"\1"
    assert all(map(answers, served))


def test_nobody_else_on_the_machine_may_open_it(served: list[Path]) -> None:
    assert stat.S_IMODE(served[0].stat().st_mode) == 0o600


def test_a_group_may_where_its_owner_says_so(folder: Path) -> None:
    with opened(folder / "party.sock", 0o660):
        assert stat.S_IMODE((folder / "party.sock").stat().st_mode) == 0o660
    assert not (folder / "party.sock").exists()


def test_a_second_process_is_refused_and_what_a_killed_one_left_behind_is_replaced(served: list[Path], folder: Path) -> None:
    with pytest.raises(Mistake, match="another process answers at"), opened(served[0]):
        pass
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here = os.open(folder, os.O_RDONLY)
    left.bind(f"/proc/self/fd/{here}/left.sock")
    left.close()
    os.close(here)
    assert not answers(folder / "left.sock")
    with opened(folder / "left.sock"):
        assert answers(folder / "left.sock")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="/proc/"), opened(Path("/proc/party.sock")):
        pass


def test_a_party_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(PartyNotReached, match=r"party\.sock"):
        ask(folder / "party.sock", b"a request")
    with pytest.raises(PartyNotReached):
        ask(folder / "missing" / "party.sock", b"a request")


@pytest.mark.parametrize(
    "said", [b"", b"\0\0", (1 << 62).to_bytes(8, "big"), (MOST + 1).to_bytes(8, "big"), b"\0" * 7 + b"\5abc"]
)
def test_a_caller_that_breaks_off_or_says_too_much_gets_no_answer_and_the_next_one_does(
    said: bytes, served: list[Path]
) -> None:
    here = os.open(served[0].parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.connect(f"/proc/self/fd/{here}/0.sock")
        caller.sendall(said)
        caller.shutdown(socket.SHUT_WR)
        assert caller.recv(10) == b""
    os.close(here)
    assert ask(served[0], b"ab") == b"\0ba"


def test_a_request_that_is_too_long_for_the_party_is_not_read(served: list[Path]) -> None:
    with pytest.raises(PartyNotReached):
        ask(served[0], bytes(MOST + 1))
