"""Which large packages each command imports. Each command runs in a process of its own, as a user runs it.

The sets are exact: an import that is no longer needed is found like one that is new. Packages of the standard library's size
(typer, attrs, typing extensions) have no part in it.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import securetm
from securetm.stages import Unwatched
from securetm.trial.files import make_trial

from .quick_part import quick

LARGE = tuple(
    (
        "cryptography dp_accounting flwr google.protobuf grpc matplotlib numba numpy opacus opendp pandas pyarrow rich "
        "safetensors scipy sentence_transformers sklearn tenseal torch"
    ).split()
)
LISTED = f"\nimport sys\nprint('large', *(name for name in {LARGE} if name in sys.modules), file=sys.__stderr__)\n"
COMMAND = "import atexit, sys\natexit.register(lambda: exec({listed!r}))\nfrom securetm.cli.main import main\nmain()\n"

COUNTS = {"numpy"}
RUN = {*COUNTS, "scipy", "numba", "cryptography", "safetensors", "google.protobuf", "rich"}
WORDS = ("min_documents=1", "max_share=1", "most_candidates=500")
SHORT = f"run --corpus documents.csv --rounds 1 --json --out out {' '.join(f'--set vocabulary.{word}' for word in WORDS)}"

COMMANDS: dict[str, set[str]] = {
    "--help": set(),
    "budget --help": set(),
    "budget laplace --epsilon-per-word 8 --words 60": {"numpy", "scipy", "dp_accounting", "rich"},
    "explain masked": {*COUNTS, "cryptography", "rich", "safetensors"},
    "choose --parties 5 --documents 900 --per-person 0 --purpose explore --looks nobody": {
        *COUNTS,
        "cryptography",
        "google.protobuf",
        "rich",
        "safetensors",
    },
    "parts": {*COUNTS, "rich", "safetensors"},
    "keys --help": set(),
    "keys new north --home home": {"cryptography", "numpy", "rich"},
    "check masked": {*COUNTS, "cryptography", "google.protobuf", "rich", "safetensors"},
    f"{SHORT} --profile open --model lda --topics 2": RUN,
    f"{SHORT} --profile masked --model lda --topics 2": RUN,
    f"{SHORT} --profile open --model prodlda --topics 2": {*RUN, "torch"},
}

QUICK = ("--help", "check masked")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the documents of four parties."""
    words = "river lake water boat goal match team score law court judge trial".split()
    draw = random.Random(0)
    rows = [f"{' '.join(draw.choices(words, k=12))},{party}" for party in ("east", "north", "south", "west") for _ in range(60)]
    folder = tmp_path_factory.mktemp("place")
    (folder / "documents.csv").write_text("text,party\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return folder


def imported(code: str, *arguments: str, cwd: Path) -> set[str]:
    """The large packages that a new process has imported when it ends."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stderr.rpartition("large")[2].split())


def test_the_package_itself_imports_nothing_large(tmp_path: Path) -> None:
    assert imported("import securetm, securetm.errors" + LISTED, cwd=tmp_path) == set()


@pytest.mark.parametrize("command", quick(COMMANDS, *QUICK))
def test_a_command_imports_what_it_needs_and_nothing_else(command: str, place: Path, tmp_path: Path) -> None:
    (tmp_path / "documents.csv").symlink_to(place / "documents.csv")
    assert imported(COMMAND.format(listed=LISTED), *command.split(), cwd=tmp_path) == COMMANDS[command]


READY = """
import sys
from pathlib import Path
import securetm.federation.network.dialing
from securetm.federation.party.joining import prepare
from securetm.federation.party.reply_times import PacedParty
from securetm.federation.party.state import PartyWatch
from securetm.stages import Unwatched
PacedParty(prepare(Path(sys.argv[1]), lambda _: None, Unwatched()).party(PartyWatch()))
"""
LIBRARYS = re.compile(r"from dataclasses import .*\bdataclass\b|@dataclasses\.dataclass")
WAITING = {"numpy", "cryptography", "google.protobuf", "grpc", "safetensors"}


JOIN = """
import os, sys
import securetm.federation.network.dialing as dialing
def dialed(*_):
    exec({listed!r})
    sys.__stderr__.flush()
    os._exit(0)
dialing.Dialer.run = dialed
from securetm.cli.main import main
main()
"""
# Each takes a fiftieth or more of the time in which a party gets ready, and none is of use before it is asked.
LATER = (
    "concurrent.futures.process msgspec numpy.ma rich statistics securetm.accounting.calculator.budget_report "
    "securetm.corpus.docstrings securetm.reports.document securetm.reports.terminal securetm.runs"
).split()


def test_a_party_dials_before_it_loads_what_shows_saves_or_computes(tmp_path: Path) -> None:
    """The whole command, as a service runs it, where nobody looks at a terminal."""
    trial = make_trial(tmp_path / "trial", "masked", 2, Unwatched())
    loaded = LISTED.replace(str(LARGE), str((*LARGE, *LATER)))
    code, file = JOIN.format(listed=loaded), str(trial.file(trial.parties[0]))
    assert imported(code, "join", file, cwd=tmp_path) == WAITING


def test_classes_of_the_package_are_made_without_compiling_their_methods() -> None:
    """`dataclasses.dataclass` compiles six functions for each class; of the hundreds that a command loads it uses few."""
    theirs = {path.name for path in Path(securetm.__file__).parent.rglob("*.py") if LIBRARYS.search(path.read_text("utf-8"))}
    assert theirs == {"data_classes.py"}


@pytest.mark.parametrize(
    "profile",
    quick(("masked", "dp-distributed", "open", "masked_strict", "dp-central", "dp-local", "fortress"), "dp-distributed"),
)
def test_a_party_that_waits_has_neither_a_compiler_nor_an_accountant_nor_matrices_in_memory(
    profile: str, tmp_path: Path
) -> None:
    """Everything is read and checked, and nothing was asked yet."""
    trial = make_trial(tmp_path / "trial", profile, 2, Unwatched())
    assert imported(READY + LISTED, str(trial.file(trial.parties[0])), cwd=tmp_path) == WAITING


@pytest.mark.slow
def test_a_party_whose_noise_is_sought_waits_without_a_compiler_and_an_accountant_too(tmp_path: Path) -> None:
    """Answers with Gaussian noise alone have a closed form."""
    trial = make_trial(tmp_path / "trial", "dp-distributed", 2, Unwatched())
    file = trial.file(trial.parties[0])
    file.write_text(file.read_text("utf-8").replace('models = ["lda"]', 'models = ["lda-vi"]'), "utf-8")
    plan = '[model]\nname = "lda-vi"\n[privacy]\nunit = "document"\n'
    (file.parent / "plan.toml").write_text(f'profile = "dp-distributed"\n{plan}', "utf-8")
    assert imported(READY + LISTED, str(file), cwd=tmp_path) == {*WAITING, "scipy"}


def test_each_reader_imports_its_own_library(place: Path, tmp_path: Path) -> None:
    assert "pyarrow" not in imported(f"import securetm; securetm.read_corpus('documents.csv'){LISTED}", cwd=place)
    wrong = "try: securetm.read_corpus('x.parquet')\nexcept securetm.errors.SecuretmError: pass"
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    assert "pyarrow" in imported(f"import securetm, securetm.errors\n{wrong}{LISTED}", cwd=tmp_path)
