"""The code blocks of a page, and how each is run: commands in this process, Python by exec, named files as files.

A command that ends in `&` runs as a process of its own. `$ wait` waits until all of them have ended well, and none outlives the
page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from unittest.mock import patch

from securetm.trial.processes import MemberProcesses

from ..cli.conftest import Said, securetm
from ..cli.keys.terminal import typed

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {"console", "python", "toml", "sh"}
FLOWER = "flower"
QUICK = "quick.toml"  # a plan that is over in seconds, in place of the shipped one, which the slow suite carries out
PATIENCE = 300.0  # seconds that a process in the background may take, far more than it needs
_FILE = re.compile(r"# (\w+\.(?:py|toml))\n")  # a block that begins so is that file
_BLOCK = re.compile(r"(?:^<!-- (?P<note>[\w ]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block. `note` is the comment above: `slow`, `answers y`, or `fails with N`, the exit code of its commands."""

    language: str
    text: str
    note: str

    @property
    def exit_code(self) -> int:
        """How its first command ends."""
        return int(self.note.removeprefix("fails with ")) if self.note.startswith("fails with ") else 0

    @property
    def is_read(self) -> bool:
        """Whether it is a file that later blocks read, and no test."""
        file = _FILE.match(self.text)
        return file is not None and not file[1].startswith("test_")

    def run(self, arguments: Sequence[str]) -> Said:
        """Runs one command, in a terminal if it is answered there."""
        answer = self.note.removeprefix("answers ")
        return securetm(*arguments) if answer == self.note else typed(arguments, f"{answer}\n")


def blocks(page: Path, *, slow: bool = False) -> list[Block]:
    """The blocks of a page that are run with this suite, in their order. With slow ones come the files that the page makes."""
    found = [Block(one["language"], one["text"], one["note"] or "") for one in _BLOCK.finditer(page.read_text("utf-8"))]
    of_suite = [block for block in found if block.note != FLOWER and (block.note == "slow") == slow]
    return [block for block in found if block in of_suite or (of_suite and block.is_read)] if slow else of_suite


def flower_blocks(page: Path) -> list[str]:
    """The scripts of a page that need Flower's environment; `tests/flower` runs them."""
    return [one["text"] for one in _BLOCK.finditer(page.read_text("utf-8")) if one["note"] == FLOWER]


def run_page(page: Path, *, slow: bool = False) -> None:
    """Runs all blocks of a page in the current folder; each may build on those before it."""
    names: dict[str, object] = {"__name__": "__main__"}
    with MemberProcesses(Path.cwd()) as background:
        _run_blocks(page, blocks(page, slow=slow), names, background)
        assert background.all_ended(), f"{page}: a command in the background has no `$ wait`"


def _run_blocks(page: Path, found: list[Block], names: dict[str, object], background: MemberProcesses) -> None:
    for block in found:
        if block.language == "console":
            run_console(block, background)
        elif file := _FILE.match(block.text):
            write_file(file[1], block.text)
        elif block.language == "python":
            exec(compile(block.text, str(page), "exec"), names)
        else:
            check_shell(block.text)


def write_file(name: str, text: str) -> None:
    """Writes what a page calls a file; tests in it are run, as whoever reads the page would."""
    Path(name).write_text(text, "utf-8")
    if name.startswith("test_"):
        command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name)
        path = os.pathsep.join([str(Path.cwd()), str(ROOT)])
        done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:]


def run_console(block: Block, background: MemberProcesses) -> None:
    """Runs each command of the block; where it shows an output, that is what came out."""
    exit_code = block.exit_code
    for command, shown in commands(block.text):
        words = shlex.split(command)
        variables = dict(word.split("=", 1) for word in takewhile(lambda word: re.match(r"[A-Z_]+=", word), words))
        program, *arguments = words[len(variables) :]
        if command == "wait":
            for one in background.members:
                one.running.wait(PATIENCE)
            background.all_ended()  # one that ended otherwise is an error
            continue
        assert program == "securetm", command
        if arguments[-1] == "&":
            background.start(f"{len(background.members)}", arguments[:-1])
            continue
        with patch.dict(os.environ, variables):
            ended = block.run([QUICK if argument == "quick" else argument for argument in arguments])
        assert ended.code == exit_code, (command, ended.code, ended.err)
        assert not shown or matches(shown, ended.out), f"{command}\n{ended.out}"
        exit_code = 0


def commands(text: str) -> list[tuple[str, str]]:
    """Each command with the output that is shown below it, which may be none."""
    parts = re.split(r"^\$ ", text, flags=re.M)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2].strip("\n")) for part in parts]


def matches(shown: str, out: str) -> bool:
    """Whether this came out; a line `...` stands for any lines, and `...` in a line for any letters."""
    wanted, found = shown.splitlines(), [line.rstrip() for line in out.replace("\N{NO-BREAK SPACE}", " ").splitlines()]
    return any(_begins(wanted, found[start:]) for start in range(len(found)))


def _begins(wanted: list[str], found: list[str]) -> bool:
    if not wanted or wanted[0] != "...":
        return not wanted or (bool(found) and _is_line(wanted[0], found[0]) and _begins(wanted[1:], found[1:]))
    return any(_begins(wanted[1:], found[start:]) for start in range(len(found) + 1))


def _is_line(wanted: str, found: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, wanted.rstrip().split("..."))), found) is not None


def check_shell(text: str) -> None:
    """Commands of the shell are not run here: `make` has that target, and pip installs this project."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for line in text.splitlines():
        command = line.partition("#")[0].strip()
        target = command.removeprefix("make ").split(" ")[0]
        known = command in ("", "pip install .") or re.search(rf"^{re.escape(target)}:", makefile, re.M)
        assert known, line
