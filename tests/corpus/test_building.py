"""A build that is killed goes on to the same bytes, keeps within its memory, and names whatever went wrong."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.records import Columns
from securetm.corpus.tokeniser import Tokeniser
from securetm.errors import BadSetting, CannotWrite, Mistake, OpenToOthers

from .killed_build import ended

STATUS = Path("/proc/self/status")
SMALL: dict[str, Any] = {"block_documents": 16, "shards": 2}


def notes(path: Path, documents: int = 60, *, persons: bool = True, words: int = 200) -> Path:
    """Lines with every name; texts of few words, some of none."""
    draw = random.Random(3)
    with path.open("w", encoding="utf-8") as file:
        for n in range(documents):
            row = {"text": " ".join(f"word{draw.randrange(words)}x" for _ in range(draw.randrange(12))), "party": f"p{n % 2}"}
            file.write(json.dumps({**row, "person": f"q{draw.randrange(20)}"} if persons else row) + "\n")
    return path


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a corpus."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def unbroken(source: Path, folder: Path) -> dict[str, bytes]:
    CorpusBuild(str(source), folder, **SMALL).run()
    return content(folder)


# ---- kill -9 ---------------------------------------------------------------------------------------------------------


def test_a_build_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path: Path) -> None:
    source = notes(tmp_path / "notes.jsonl")
    expected, folder = unbroken(source, tmp_path / "whole"), tmp_path / "killed"
    killed = 0
    while ended(source, folder, 12 + 3 * killed, {**SMALL, "megabytes": 64 + killed}) == -signal.SIGKILL:
        killed += 1
        if not (folder / "corpus.json").exists():
            with pytest.raises(Mistake, match=r"building has not ended|holds no corpus"):
                Corpus.load(folder)
    assert killed >= 3
    assert content(folder) == expected


@pytest.mark.slow
def test_it_goes_on_from_every_step(tmp_path: Path) -> None:
    source = notes(tmp_path / "notes.jsonl")
    expected = unbroken(source, tmp_path / "whole")
    step, way = 0, -signal.SIGKILL
    while way == -signal.SIGKILL:
        step += 1
        folder = tmp_path / f"killed-{step}"
        way = ended(source, folder, step, SMALL)
        if way:
            CorpusBuild(str(source), folder, **SMALL).run()
        assert content(folder) == expected, step
    assert step > 40


def test_a_part_that_was_damaged_is_read_again(tmp_path: Path) -> None:
    source = notes(tmp_path / "notes.jsonl")
    expected, folder = unbroken(source, tmp_path / "whole"), tmp_path / "killed"
    assert ended(source, folder, 24, SMALL) == -signal.SIGKILL
    parts = sorted((folder / "building").glob("*.part"))
    assert len(parts) > 2
    parts[1].write_bytes(b"damaged")
    CorpusBuild(str(source), folder, **SMALL).run()
    assert content(folder) == expected


# ---- memory ----------------------------------------------------------------------------------------------------------

_MEASURED = """
import sys
from collections.abc import Iterator
from pathlib import Path
from securetm.cli.main import main
sys.argv = ["securetm", "corpus", "build", *sys.argv[1:]]
try:
    main()
finally:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print("peak", int(status["VmHWM"].split()[0]) // 1024, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.is_file(), reason="this system does not measure the peak of a process's memory")
def test_memory_is_bounded_by_the_setting_and_not_by_the_corpus(tmp_path: Path) -> None:
    """The whole command keeps within 150 MB, for a source of five times as much."""
    draw, source, out, megabytes = random.Random(5), tmp_path / "notes.jsonl", tmp_path / "out", 150
    texts = (" ".join(f"word{draw.randrange(9000)}x" for _ in range(60)) for _ in range(2000))
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    with source.open("wb") as file:
        for _ in range((5 * megabytes << 20) // len(lines)):
            file.write(lines)
    command = [sys.executable, "-c", _MEASURED, str(source), "--out", str(out), "--memory", str(megabytes)]
    done = subprocess.run([*command, "--block-documents", "8192"], check=True, capture_output=True, text=True)
    assert int(done.stderr.rsplit("peak", 1)[1]) <= megabytes
    assert len(Corpus.load(out)) == 2000 * ((5 * megabytes << 20) // len(lines))


def test_too_little_memory_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    from securetm.corpus.corpus_build import left_for_documents

    with pytest.raises(BadSetting, match="--memory"):
        left_for_documents(64, str(notes(tmp_path / "notes.jsonl")), Columns())


def test_too_many_words_are_refused_and_more_memory_goes_on(tmp_path: Path) -> None:
    source = tmp_path / "notes.jsonl"
    source.write_text("".join(json.dumps({"text": " ".join(f"word{n}x{i}" for i in range(100))}) + "\n" for n in range(100)))
    with pytest.raises(Mistake, match="different words and names"):
        CorpusBuild(str(source), tmp_path / "out", block_documents=10, megabytes=2).run()
    CorpusBuild(str(source), tmp_path / "out", block_documents=10).run()
    assert len(Corpus.load(tmp_path / "out").vocabulary) == 10_000


# ---- what went wrong -------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path: Path) -> tuple[Path, Path]:
    """A source, and a folder in which its build was killed."""
    source, folder = notes(tmp_path / "notes.jsonl"), tmp_path / "stopped"
    assert ended(source, folder, 24, SMALL) == -signal.SIGKILL
    return source, folder


def test_another_source_or_setting_is_refused_and_nothing_is_lost(stopped: tuple[Path, Path]) -> None:
    source, folder = stopped
    before = content(folder)
    with pytest.raises(Mistake, match="--block-documents = 16, and now 17"):
        CorpusBuild(str(source), folder, **{**SMALL, "block_documents": 17}).run()
    with pytest.raises(Mistake, match=r"tokeniser.min_length = 3, and now 4"):
        CorpusBuild(str(source), folder, tokeniser=Tokeniser(min_length=4), **SMALL).run()
    with pytest.raises(Mistake, match="--label"):
        CorpusBuild(str(source), folder, Columns(label="party"), **SMALL).run()
    with source.open("a") as file:
        file.write('{"text": "one more", "party": "p1", "person": "q1"}\n')
    with pytest.raises(Mistake, match="is not what it was"):
        CorpusBuild(str(source), folder, **SMALL).run()
    assert content(folder) == before


def test_a_source_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = notes(tmp_path / "notes.jsonl")

    class Changes:
        def stage(self, title: str, total: int) -> None:
            with source.open("a") as file:
                file.write("\n")

        def step(self, done: int) -> None:
            pass

    with pytest.raises(Mistake, match="is not what it was"):
        CorpusBuild(str(source), tmp_path / "out", stages=Changes(), **SMALL).run()
    assert not (tmp_path / "out" / "corpus.json").exists()


def test_a_source_that_cannot_be_read_leaves_no_folder(tmp_path: Path) -> None:
    source, there = tmp_path / "notes.parquet", tmp_path / "there"
    source.write_text("this is no Parquet file")
    there.mkdir(mode=0o700)
    for folder in (tmp_path / "out", there):
        with pytest.raises(Mistake, match="is damaged or was cut short"):
            CorpusBuild(str(source), folder).run()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["notes.parquet", "there"]


def test_folders_of_others_are_left_alone(tmp_path: Path, stopped: tuple[Path, Path]) -> None:
    source, folder = stopped
    own = tmp_path / "project" / "building"
    own.mkdir(parents=True, mode=0o700)
    (own / "house.txt").write_text("mine")
    (folder / "letter.txt").write_text("mine")
    for place in (own.parent, folder):
        before = content(place)
        with pytest.raises(Mistake, match="other files"):
            CorpusBuild(str(source), place, **SMALL).run()
        assert content(place) == before


def test_shards_that_were_swapped_or_opened_to_others_are_named(tmp_path: Path) -> None:
    source, folder = notes(tmp_path / "notes.jsonl", 64, persons=False), tmp_path / "out"
    lines = ['{"text": "cat hill moon"}\n', '{"text": "dog lake star"}\n']
    source.write_text(lines[0] * 16 + lines[1] * 16)
    CorpusBuild(str(source), folder, **SMALL).run()
    first, second = folder / "00000.shard", folder / "00001.shard"
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    swapped = Corpus.load(folder)
    with pytest.raises(Mistake, match="block 0 does not hold what was written"):
        swapped.lengths()
    second.chmod(0o644)
    with pytest.raises(OpenToOthers, match=r"00001\.shard"):
        Corpus.load(folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid():
        pytest.skip("this user cannot mount a file system")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("this user cannot mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_named_and_the_build_goes_on_with_more_room(tmp_path: Path, small_disk: Path) -> None:
    source = notes(tmp_path / "notes.jsonl", 600)
    expected, folder = unbroken(source, tmp_path / "whole"), small_disk / "out"
    with pytest.raises(CannotWrite, match="No space left"):
        CorpusBuild(str(source), folder, **SMALL).run()
    assert (folder / "building" / "00001.json").is_file()
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    CorpusBuild(str(source), folder, **SMALL).run()
    assert content(folder) == expected
