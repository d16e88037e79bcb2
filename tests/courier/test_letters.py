"""What a member reads of all that lies there: whole letters to it, by members of its roster, about its run. Nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securetm.errors import Malformed, Mistake
from securetm.federation.courier.letters import HEAD, OVERHEAD, NotALetter, Writer, bundled, unbundled
from securetm.federation.courier.mailbox import LONGEST_AGAIN, Mailbox, newest
from securetm.federation.courier.party_end import NEVER
from securetm.federation.courier.places import LocalFolder, PlaceAway, PlaceClosed, place_of
from securetm.trial.files import free_port

CONTENT = bundled([b"a question", b"", b"another one"])


def put(
    folder: Path, writer: Writer, receiver: str, number: int = 1, content: bytes = CONTENT, name: str = "a letter"
) -> bytes:
    _, file = writer.sealed(receiver, number, NEVER, content)
    (folder / name).write_bytes(file)
    return file


def read(folder: Path, writer: Writer, most: int = 1 << 20, after: int = 0) -> list[bytes | None]:
    box = Mailbox(writer, LocalFolder(folder))
    found = newest(box.heads(), after)
    return [box.content(name, head, most) for head, names in found.items() for name in names]


def test_only_its_receiver_reads_a_letter(writers: dict[str, Writer], tmp_path: Path) -> None:
    file = put(tmp_path, writers["coordinator"], "numpy")
    assert read(tmp_path, writers["numpy"]) == [CONTENT]
    assert read(tmp_path, writers["torch"]) == read(tmp_path, writers["coordinator"]) == []
    for name in (b"numpy", b"coordinator", b"question"):
        assert name not in file
    assert put(tmp_path, writers["coordinator"], "numpy")[1:HEAD] != file[1:HEAD]


def test_nobody_writes_for_another(writers: dict[str, Writer], tmp_path: Path) -> None:
    put(tmp_path, writers["stranger"], "numpy", name="in the coordinator's name")
    put(tmp_path, writers["torch"], "numpy", name="from party to party")
    put(tmp_path, replace(writers["torch"], name="coordinator"), "numpy", name="a party as the coordinator")
    put(tmp_path, replace(writers["torch"], name="numpy"), "coordinator", name="a party as another")
    assert read(tmp_path, writers["numpy"]) == read(tmp_path, writers["coordinator"]) == []


def test_every_flipped_bit_is_found(writers: dict[str, Writer], tmp_path: Path) -> None:
    file, rng = put(tmp_path, writers["coordinator"], "numpy"), np.random.default_rng(0)
    places = [*rng.integers(0, 8 * len(file), 150), *range(8 * HEAD, 8 * len(file), 7), 0, 8 * len(file) - 1]
    box = Mailbox(writers["numpy"], LocalFolder(tmp_path))
    ((head, _),) = newest(box.heads(), 0).items()
    for place in map(int, places):
        other = bytearray(file)
        other[place // 8] ^= 1 << place % 8
        (tmp_path / "a letter").write_bytes(other)
        assert box.content("a letter", head, 1 << 20) is None
        assert set(read(tmp_path, writers["numpy"])) <= {None}


def test_a_file_is_measured_before_it_is_read(writers: dict[str, Writer], tmp_path: Path) -> None:
    file = put(tmp_path, writers["coordinator"], "numpy", content=bundled([bytes(5_000)]))
    assert read(tmp_path, writers["numpy"], most=4_000) == [None]
    for changed in (file[:-1], file + b"\0", file[:HEAD], file[: HEAD - 1], b""):
        (tmp_path / "a letter").write_bytes(changed)
        assert read(tmp_path, writers["numpy"]) == []
    (tmp_path / "a letter").unlink()
    with (tmp_path / "a letter").open("wb") as sparse:  # a head that is good, and a length that no memory holds
        sparse.write(file[:HEAD])
        sparse.truncate(1 << 40)
    assert read(tmp_path, writers["numpy"]) == []


def test_what_waits_or_leads_elsewhere_is_not_opened(writers: dict[str, Writer], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a pipe")
    (tmp_path / "a link").symlink_to("/dev/zero")
    (tmp_path / "a folder").mkdir()
    assert LocalFolder(tmp_path).files() == {}
    assert LocalFolder(tmp_path).read("a pipe", 10) == LocalFolder(tmp_path).read("a link", 10) == b""
    assert LocalFolder(tmp_path).read("a folder", 10) == LocalFolder(tmp_path).read("nothing", 10) == b""
    with pytest.raises(Mistake, match="no folder"):
        LocalFolder(tmp_path / "not there")
    (tmp_path / "a file").touch()
    with pytest.raises(Mistake, match="is a file"):
        LocalFolder(tmp_path / "a file")
    assert read(tmp_path, writers["numpy"]) == []


def test_a_letter_that_goes_while_it_is_looked_for_is_not_one_that_may_not_be_read(
    writers: dict[str, Writer], tmp_path: Path
) -> None:
    class Racing(LocalFolder):
        def read(self, name: str, length: int, start: int = 0) -> bytes:
            if name == "gone":
                (self.path / name).unlink()
            return b"" if name == "closed" else super().read(name, length, start)

    for name in ("gone", "closed"):
        put(tmp_path, writers["coordinator"], "numpy", name=name)
    box = Mailbox(writers["numpy"], Racing(tmp_path))
    assert list(box.heads()) == []
    assert box.unread == {"closed"}


def test_a_store_that_cannot_be_used_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("paramiko")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(Mistake, match="without s3fs, which is not installed") as absent:
        place_of("s3://bucket/letters")
    assert "pip install s3fs" in absent.value.advice()
    with pytest.raises(Mistake, match="the protocol sfpt of --courier sfpt://hub/letters is not known") as unknown:
        place_of("sfpt://user:secret@hub/letters")
    assert unknown.value.advice().startswith("did you mean sftp?")

    with pytest.raises(PlaceAway, match="at sftp://user@127") as away:
        place_of(f"sftp://user:secret@127.0.0.1:{free_port()}/letters")
    assert "secret" not in str(away.value)

    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    folder = LocalFolder(tmp_path)
    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(PlaceClosed, match="Permission denied") as refused:
        folder.files()
    assert "let this account list, read and write" in refused.value.advice()


def test_the_newest_letter_counts_in_whichever_file_it_lies(writers: dict[str, Writer], tmp_path: Path) -> None:
    for number in (2, 3, 1):
        put(tmp_path, writers["coordinator"], "numpy", number, bundled([bytes([number])]), f"{9 - number} letter")
    assert read(tmp_path, writers["numpy"]) == [bundled([b"\3"])]
    assert read(tmp_path, writers["numpy"], after=3) == []
    (tmp_path / "copy.eml").write_bytes((tmp_path / "6 letter").read_bytes())
    assert read(tmp_path, writers["numpy"]) == [bundled([b"\3"])] * 2


def test_a_letter_of_another_run_is_told_and_not_read(writers: dict[str, Writer], tmp_path: Path) -> None:
    other = replace(
        writers["coordinator"], subject=replace(writers["coordinator"].subject, roster=bytes([9]) * 32, profile=bytes([9]) * 32)
    )
    put(tmp_path, other, "numpy")
    box = Mailbox(writers["numpy"], LocalFolder(tmp_path))
    assert newest(box.heads(), 0) == {}
    assert box.troubles == {"coordinator": "another roster and profile than here"}


def test_a_letter_that_vanished_or_was_damaged_is_put_there_again_ever_more_seldom(
    writers: dict[str, Writer], tmp_path: Path
) -> None:
    now = [0.0]
    box = Mailbox(writers["coordinator"], LocalFolder(tmp_path), clock=lambda: now[0])
    sent = box.write("numpy", 1, NEVER, CONTENT)

    def harm(harmed: Callable[[Path], object]) -> None:
        for path in tmp_path.iterdir():
            harmed(path)

    assert box.look_after(sent)
    put_again = 0
    for _ in range(20_000):
        harm(Path.unlink)
        now[0] += 10.0
        put_again += box.look_after(sent)
    assert 20_000 * 10 / LONGEST_AGAIN - 5 < put_again < 20_000 * 10 / LONGEST_AGAIN + 10
    once = Mailbox(writers["coordinator"], LocalFolder(tmp_path), once=True)
    assert once.look_after(sent)
    assert not once.look_after(sent)
    harm(lambda path: path.write_bytes(b"damaged"))
    assert once.look_after(sent)
    assert read(tmp_path, writers["numpy"]) == [CONTENT]
    once.withdraw(sent)
    assert len(list(tmp_path.iterdir())) <= 1


@given(st.binary(max_size=200))
def test_any_bytes_are_a_bundle_or_refused(content: bytes) -> None:
    try:
        messages = unbundled(content, "somebody")
    except Malformed:
        return
    assert bundled(messages) == content


@given(st.binary(max_size=100))
def test_any_bytes_are_no_letter(writers: dict[str, Writer], content: bytes) -> None:
    whole = content.ljust(OVERHEAD, b"\1")
    with pytest.raises(NotALetter):
        writers["numpy"].opened_head("a file", whole[:HEAD], len(whole))
