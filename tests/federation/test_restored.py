"""A home out of an old copy answers nothing twice, pays for what it may have forgotten, and goes on where others know it."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from securetm.accounting.ledger import Ledger
from securetm.contracts import Answer, Budget, Unit
from securetm.credentials.homes import accept
from securetm.credentials.issuing import RosterOperator
from securetm.credentials.key_requests import KeyRequest
from securetm.credentials.keys import Passphrase
from securetm.credentials.roster import read_roster, write_roster
from securetm.errors import Mistake
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.party.backups import MAGIC, back_up, restore
from securetm.federation.party.failure_log import failures_in
from securetm.federation.store import DamagedStore
from securetm.federation.wire import wire

from ..quick_part import quick
from .joined import NAMES, PLAN, Door, Joined, Organisations, coordinator_of
from .private import public_words

PHRASE = Passphrase("four random words")
ME = "numpy"


# ---- the file --------------------------------------------------------------------------------------------------------


@pytest.fixture
def organisations(keys: Path, tmp_path: Path) -> Organisations:
    return Organisations.of(keys, tmp_path / "all", PLAN)


@pytest.fixture
def copy(organisations: Organisations, tmp_path: Path) -> Path:
    (organisations.home(ME) / "data").mkdir(0o700)
    large = organisations.home(ME) / "data" / "large"
    large.touch(0o600)
    large.write_bytes(b"word " * 500_000)
    back_up(organisations.home(ME), tmp_path / "a.backup", PHRASE)
    return tmp_path / "a.backup"


def test_a_copy_is_whole_and_nobody_reads_it(organisations: Organisations, copy: Path, tmp_path: Path) -> None:
    content = copy.read_bytes()
    assert content.startswith(MAGIC)
    assert not any(known in content for known in (b"PRIVATE KEY", b"roster.toml", b"word word"))
    restore(copy, tmp_path / "back", PHRASE)
    before, after = organisations.home(ME), tmp_path / "back"
    names = {path.relative_to(before) for path in before.rglob("*") if path.is_file()}
    assert all((before / name).read_bytes() == (after / name).read_bytes() for name in names)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (after, *after.rglob("*")))


@pytest.mark.parametrize("damage", ["ledger cut off", "ledger empty", "ledger cut at a page", "store of garbage"])
def test_of_a_damaged_home_no_copy_is_made(organisations: Organisations, tmp_path: Path, damage: str) -> None:
    home = organisations.home(ME)
    path = home / ("own.sqlite" if damage == "store of garbage" else "ledgers/0001/notes.ledger")
    Ledger.open(home / "ledgers/0001/notes.ledger", ME, Budget(Unit.DOCUMENT, 1.0, 1e-6)).close()
    back_up(home, tmp_path / "good.backup", PHRASE)
    how_much = {"ledger cut off": 3000, "ledger empty": 0, "ledger cut at a page": 8192}
    content = b"garbage" * 100 if damage == "store of garbage" else path.read_bytes()[: how_much[damage]]
    path.touch(0o600)
    path.write_bytes(content)
    with pytest.raises(DamagedStore) as refused:
        back_up(home, tmp_path / "a.backup", PHRASE)
    assert refused.value.path == str(path)
    assert not any(tmp_path.glob("a.backup*"))


def changed(content: bytes) -> Iterator[bytes]:
    yield content[:10]
    yield content[: len(MAGIC) + 16 + (1 << 20) + 16]  # up to the end of a piece
    yield content + b"more"
    for at in (len(MAGIC) + 2, len(content) - 40):
        yield content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    piece, head = (1 << 20) + 16, len(MAGIC) + 16
    yield content[:head] + content[head + piece : head + 2 * piece] + content[head : head + piece] + content[head + 2 * piece :]


def test_a_changed_copy_makes_no_home(copy: Path, tmp_path: Path) -> None:
    for content in changed(copy.read_bytes()):
        (tmp_path / "changed").write_bytes(content)
        with pytest.raises(Mistake):
            restore(tmp_path / "changed", tmp_path / "back", PHRASE)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("back")] == []
    with pytest.raises(Mistake, match="passphrase"):
        restore(copy, tmp_path / "back", Passphrase("five random words"))


def test_nothing_is_restored_over_a_home(organisations: Organisations, copy: Path) -> None:
    with pytest.raises(Mistake, match="is not empty"):
        restore(copy, organisations.home(ME), PHRASE)


# ---- a federation of which one is restored ---------------------------------------------------------------------------


@dataclass
class Copying(Door):
    """A door that copies the home of one party before each of its messages, and may end it there."""

    home: Path = Path()
    to: Path = Path()
    last: int = 1_000  # question that is asked; then the coordinator's process ends
    copies: list[Path] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)  # of which messages these were

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        if ME in requests:
            self.copies.append(self.to / f"{len(self.copies):03d}.backup")
            self.questions.append(wire.body_of(requests[ME]))
            if self.questions.count("ask") > self.last:
                raise KeyboardInterrupt
            back_up(self.home, self.copies[-1], PHRASE)
        yield from super().ask(requests, most)


def trained_through(organisations: Organisations, door: Door, folder: Path) -> tuple[list[int], Joined]:
    """Everybody joins and the coordinator trains. Returns the serial numbers of the sums that were opened."""
    joined, opened = Joined(door), list[int]()
    for name in NAMES:
        joined.comes(organisations.prepared(name))
    try:
        door.wait(NAMES)
        coordinator: Coordinator = coordinator_of(organisations, door, folder)

        def note(serial: int, answer: Answer) -> None:
            opened.append(serial)

        coordinator.watch.opened = note  # type: ignore[method-assign]
        try:
            coordinator.run()
            door.ended.set()
        finally:
            coordinator.store.close()
    finally:
        joined.stop.set()
        joined.end()
    return opened, joined


def put_back(organisations: Organisations, copy: Path, *, renewed: bool = True) -> None:
    """The party's home is lost, and made again of that copy; everybody accepts its new identity."""
    shutil.rmtree(organisations.home(ME))
    request = restore(copy, organisations.home(ME), PHRASE)
    assert request is not None
    if renewed:
        renew(organisations, request)


def renew(organisations: Organisations, request: KeyRequest) -> None:
    """The operator issues the roster with the new identity, and everybody accepts it."""
    path = organisations.folder / "coordinator" / "roster.toml"
    operator = RosterOperator(organisations.folder / "coordinator" / "home", path, None)
    old = operator.read()
    operator.publish(old, operator.enrol(old, [request], None, 365))
    new = read_roster(path)
    for name in NAMES:
        write_roster(organisations.file(name).parent / "roster.toml", new)
        accept(organisations.home(name), new)


def spends(organisations: Organisations) -> list[bool]:
    """What the ledgers of that party hold: for each payment, whether it is for an answer that may be lost."""
    found = []
    for path in sorted(organisations.home(ME).glob("ledgers/*/*.ledger")):
        with Ledger.read(path) as ledger:
            found += ["lost" in one.content["about"] for one in ledger.entries() if one.content["kind"] == "spent"]
    return found


BUDGET = """
profile = "{profile}"
[model]
name = "lda"
n_topics = 3
[vocabulary]
source = "file"
file = "{words}"
[training]
rounds = 3
[privacy]
unit = "document"
{noise}
[origins]
vocabulary = "words that the tests made up"
"""


def under_budget(keys: Path, folder: Path, profile: str, noise: float = 0.0) -> Organisations:
    folder.mkdir(exist_ok=True)
    return Organisations.of(
        keys,
        folder / "all",
        BUDGET.format(profile=profile, words=public_words(folder), noise=f"noise = {noise}" if noise else ""),
        250,
    )


def copied_run(organisations: Organisations, folder: Path) -> Copying:
    """A whole run, with a copy of one party's home before each message to it."""
    (folder / "copies").mkdir()
    door = Copying(home=organisations.home(ME), to=folder / "copies")
    _, joined = trained_through(organisations, door, folder / "coordinator")
    assert joined.problems == {}
    return door


def test_out_of_a_copy_it_does_not_answer_as_it_was(organisations: Organisations, copy: Path) -> None:
    put_back(organisations, copy, renewed=False)
    with pytest.raises(Mistake, match="was restored from a copy"):
        organisations.prepared(ME)


@pytest.mark.parametrize(("profile", "each"), quick([("masked", 9), ("masked", 1), ("dp-distributed", 1)], ("masked", 9)))
def test_of_no_copy_of_a_run_a_question_is_answered_twice(profile: str, each: int, keys: Path, tmp_path: Path) -> None:
    """A coordinator that lost its store, or lies, asks everything again, from whichever moment the copy is."""
    budget = profile != "masked"
    made = under_budget(keys, tmp_path, profile) if budget else Organisations.of(keys, tmp_path / "all", PLAN)
    door = copied_run(made, tmp_path)
    paid = spends(made)
    shutil.copytree(made.folder, tmp_path / "after")
    for number, old in enumerate(door.copies[each // 2 :: each]):
        shutil.rmtree(made.folder)
        shutil.copytree(tmp_path / "after", made.folder)
        put_back(made, old)
        opened: list[int] = []
        with pytest.raises(PartyRefused):
            opened, _ = trained_through(made, Door(), tmp_path / f"again-{number}")
        assert opened == []
        assert len(spends(made)) <= len(paid)


def new_run(organisations: Organisations) -> None:
    """Another plan over the same documents, for which each party gives them more budget."""
    organisations.plan = "seed = 7\n" + organisations.plan
    for name in NAMES:
        (organisations.file(name).parent / "plan.toml").write_text(organisations.plan, "utf-8")
        organisations.write(name, privacy="epsilon = 200.0")


def train_again(organisations: Organisations, folder: Path) -> str:
    """The next run, and the last thing that went wrong at the party whose home was restored."""
    new_run(organisations)
    with suppress(PartyRefused):  # a run that no budget allows ends without one
        trained_through(organisations, Door(), folder)
    return trouble(organisations)


def trouble(organisations: Organisations) -> str:
    """The last thing that went wrong at the party whose home was restored."""
    joining = organisations.prepared(ME)
    path = joining.home.run(joining.agreement)
    with sqlite3.connect(path / "own.sqlite") as opened:
        refused = [name for (name,) in opened.execute("SELECT name FROM refusals ORDER BY at")]
    return [*refused, *(one.name for one in failures_in(path))][-1]


@pytest.mark.slow
def test_the_newest_copy_goes_on_and_pays_for_one_answer_that_may_be_lost(keys: Path, tmp_path: Path) -> None:
    made = under_budget(keys, tmp_path, "dp-distributed", noise=20.0)
    (tmp_path / "copies").mkdir()
    with pytest.raises(KeyboardInterrupt):
        trained_through(made, Copying(home=made.home(ME), to=tmp_path / "copies", last=1), tmp_path / "coordinator")
    back_up(made.home(ME), tmp_path / "newest.backup", PHRASE)
    put_back(made, tmp_path / "newest.backup")
    assert spends(made) == [False]
    _, joined = trained_through(made, Door(), tmp_path / "coordinator")
    assert joined.problems == {}
    assert spends(made) == [False, True, False, False]


@pytest.mark.slow
def test_where_everybody_was_restored_nobody_spends(keys: Path, tmp_path: Path) -> None:
    made = under_budget(keys, tmp_path, "dp-local")
    copied_run(made, tmp_path)
    for name in NAMES:
        back_up(made.home(name), tmp_path / f"{name}.backup", PHRASE)
    for name in NAMES:
        shutil.rmtree(made.home(name))
        request = restore(tmp_path / f"{name}.backup", made.home(name), PHRASE)
        assert request is not None
        path = made.folder / "coordinator" / "roster.toml"
        operator = RosterOperator(made.folder / "coordinator" / "home", path, None)
        operator.publish(operator.read(), operator.enrol(operator.read(), [request], None, 365))
    for name in NAMES:
        write_roster(made.file(name).parent / "roster.toml", read_roster(made.folder / "coordinator" / "roster.toml"))
        accept(made.home(name), read_roster(made.folder / "coordinator" / "roster.toml"))
    assert train_again(made, tmp_path / "next") == "NotWitnessed"


@pytest.mark.slow
def test_a_home_is_copied_while_its_process_works(organisations: Organisations, tmp_path: Path) -> None:
    """Whatever moment a copy is of, it is a home that can be read."""
    copies, ended = list[Path](), threading.Event()

    def copy_again_and_again() -> None:
        while not ended.wait(0.02):
            copies.append(tmp_path / f"{len(copies):03d}.backup")
            back_up(organisations.home(ME), copies[-1], PHRASE)

    copying = threading.Thread(target=copy_again_and_again)
    copying.start()
    try:
        _, joined = trained_through(organisations, Door(), tmp_path / "coordinator")
    finally:
        ended.set()
        copying.join()
    assert joined.problems == {}
    for number, one in enumerate(copies[:: max(len(copies) // 10, 1)]):
        restore(one, tmp_path / f"home-{number}", PHRASE)
        for path in (tmp_path / f"home-{number}").glob("ledgers/*/*.ledger"):
            Ledger.read(path).close()
