"""A folder of ledgers that belong to documents. It finds the ledger with what was spent of a document, whichever party has it.

Documents are known by keyed digests of their content. Ledgers are in numbered generations, one for each way of dealing the
documents to parties. If they are dealt in another way, a new generation begins, with the most that any document had spent.
"""

from __future__ import annotations

import fcntl
import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.all_runs import WHOLE, WORDS
from securetm.accounting.ledger.ledger import units_differ
from securetm.accounting.ledger.ledger_file import LedgerFile
from securetm.accounting.ledger.succession import continue_from
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.document_names import DIGEST, content_digests
from securetm.data_classes import dataclass, replace
from securetm.entropy import OperatingSystem
from securetm.errors import Mistake
from securetm.federation.store import DamagedStore, reading
from securetm.private_files import check_database, private_file, private_folder

INDEX, LOCK = "documents.sqlite", "lock"
_KEY = 32
_TABLES = """
CREATE TABLE IF NOT EXISTS secret (value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS documents (digest BLOB NOT NULL, generation INTEGER NOT NULL, party TEXT NOT NULL,
  PRIMARY KEY (digest, generation, party)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS openings (path TEXT PRIMARY KEY, opening BLOB NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE given (digest BLOB PRIMARY KEY) WITHOUT ROWID;
"""
_KINDS = (WHOLE, WORDS)
Place = tuple[int, str]  # the generation, and the party's file in it
Found = Mapping[str, Mapping[bytes, frozenset[Place]]]  # of each party's documents that have ledgers: where these lie


@dataclass(frozen=True)
class LedgersOfDocuments:
    """One folder; all runs over the same documents, or some of them, spend from the ledgers in it."""

    folder: Path

    def home(
        self,
        corpora: Mapping[str, Corpus],
        file_of: Mapping[str, str],
        budget: Budget | None,
        *,
        by_name: bool = False,
        begins: bool = True,
    ) -> Path:
        """Returns the folder of ledgers that hold all that was ever spent of these parties' documents.

        Without a budget, as of a run that nothing bounds, they have the budget that they had, if any.
        The ledgers are made now, so that the next run does not overlook a run that has begun and has not spent yet. With
        `by_name` a party's last ledger goes on even if no document of it is there any more. Unless it `begins`, it makes none
        beside those that are there.
        """
        private_folder(self.folder)
        self._is_listed()
        with self.alone(), self._index() as index:
            key = _secret(index)
            held = {name: _keyed(key, corpus) for name, corpus in corpora.items()}
            found = {name: _places(index, digests) for name, digests in held.items()}
            if by_name:
                found = {name: {**known, **self._named(file_of[name])} for name, known in found.items()}
            self._check_there(index, {place for known in found.values() for places in known.values() for place in places})
            unit = budget.unit if budget is not None else None
            for known in found.values():  # before one of them ends or a new one begins
                for kind in _KINDS:
                    _check_ready(self._sources(known, kind), unit if kind == _kind(unit) else None)
            generation = self._unchanged(found, file_of)
            if generation is None:
                if not begins and any(self.folder.glob("*/*.ledger")):
                    raise Mistake(
                        "{folder} was restored from a copy, and these documents would begin a ledger beside those in it, "
                        "which nobody has confirmed yet",
                        hint="take part first with documents as they were when the copy was made; of documents that came later "
                        "nobody knows what was spent: take their budget as spent",
                        folder=str(self.folder),
                    )
                generation = self._begun(found, file_of)
            opened = {name: ledger_in(self._at(generation), file, unit) for name, file in file_of.items()}
            _check_ready([path for path in opened.values() if path.is_file()], unit)
            for name, path in opened.items():
                Ledger.open(path, name, own_budget(path, budget)).close()
            _enter(index, {file_of[name]: digests for name, digests in held.items()}, generation)
            paths = [self._at(generation) / f"{file}{kind}" for file in file_of.values() for kind in _KINDS]
            rows = [(self._named_in(path), _opening(path)) for path in paths if path.is_file()]
            index.executemany("INSERT OR IGNORE INTO openings VALUES (?, ?)", rows)  # so that no other one passes for it
        return self._at(generation)

    def ledgers_of(self, corpus: Corpus, unit: Unit | None, file: str) -> list[Path]:
        """Returns the ledgers that these documents have, in whichever generation, and the last of that name. It makes none."""
        if not self._is_listed():
            return []
        with self.alone(), self._index() as index:
            known = {**_places(index, _keyed(_secret(index), corpus)), **self._named(file)}
            self._check_there(index, {place for places in known.values() for place in places})
        return self._sources(known, _kind(unit))

    def check_kept(self) -> None:
        """Refuses if a ledger of any document is missing, or another one is in its place. It changes nothing."""
        if not self._is_listed():
            return
        try:
            with reading(self.folder / INDEX) as index:
                self._check_there(index, set(index.execute("SELECT DISTINCT generation, party FROM documents")))
        except sqlite3.Error as problem:
            raise DamagedStore(str(self.folder / INDEX), str(problem)) from problem

    def _is_listed(self) -> bool:
        """Whether there is a list of documents. Refuses ledgers without one: nobody knows whose they are."""
        if (self.folder / INDEX).is_file():
            return True
        if any(self.folder.rglob("*.ledger")):
            raise Mistake(
                "{folder} holds ledgers, and no list of the documents that they belong to",
                hint=(
                    "put documents.sqlite back, or give --ledgers another folder; what was spent of those documents stays spent"
                ),
                folder=str(self.folder),
            )
        return False

    def runs(self) -> frozenset[str]:
        """Returns the runs that any ledger in the folder holds, whichever documents they read."""
        if not (self.folder / INDEX).is_file():
            return frozenset()
        with self.alone():
            return frozenset().union(*map(runs_in, sorted(self.folder.glob("*/*.ledger"))))

    def _named(self, file: str) -> dict[bytes, frozenset[Place]]:
        """Returns the place of the last ledgers of that name, as if they were those of one more document."""
        there = {int(path.parent.name) for kind in _KINDS for path in self.folder.glob(f"*/{file}{kind}")}
        return {b"": frozenset({(max(there), file)})} if there else {}

    def _unchanged(self, found: Found, file_of: Mapping[str, str]) -> int | None:
        """Returns the generation in which every document that has a ledger is at the same party as now, if there is one."""
        generations = {generation for known in found.values() for places in known.values() for generation, _ in places}
        if len(generations) != 1:
            return None
        (generation,) = generations
        moved = any((generation, file_of[name]) not in places for name, known in found.items() for places in known.values())
        return None if moved or any(map(_ended, self._at(generation).glob("*.ledger"))) else generation

    def _begun(self, found: Found, file_of: Mapping[str, str]) -> int:
        """Makes a generation in which each party's ledger continues all ledgers that its documents had.

        If this stops halfway, the list of documents still names the former ledgers, which are complete: the next run continues
        those.
        """
        generation = 1 + max((int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()), default=0)
        private_folder(self._at(generation))
        for name, known in found.items():
            for kind in _KINDS:
                if sources := self._sources(known, kind):
                    continue_from(sources, self._at(generation) / f"{file_of[name]}{kind}", name)
        return generation

    def _sources(self, known: Mapping[bytes, frozenset[Place]], kind: str) -> list[Path]:
        places = sorted({place for held in known.values() for place in held})
        return [path for at, file in places if (path := self._at(at) / f"{file}{kind}").is_file()]

    def _check_there(self, index: sqlite3.Connection, places: Collection[Place]) -> None:
        """Refuses if a ledger is missing that documents spent from, or if another one is in its place."""
        known = {path: bytes(opening) for path, opening in index.execute("SELECT path, opening FROM openings")}
        for generation, file in sorted(places):
            paths = [self._at(generation) / f"{file}{kind}" for kind in _KINDS]
            there = [path.is_file() for path in paths]
            gone = [path for path, is_there in zip(paths, there, strict=True) if not is_there and self._named_in(path) in known]
            if gone or not any(there):
                raise Mistake(
                    "{path} is gone, and it holds what was spent of documents of this run",
                    hint="put it back; without it, take the budget of these documents as spent",
                    path=str((gone or paths)[0]),
                )
            for path in paths:
                opening = known.get(self._named_in(path))
                if opening is not None and _opening(path) != opening:
                    raise Mistake(
                        "{path} is another ledger than the one that holds what was spent of these documents",
                        hint="put that one back; without it, take the budget of these documents as spent",
                        path=str(path),
                    )

    def _named_in(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _at(self, generation: int) -> Path:
        return self.folder / f"{generation:04d}"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Locks the folder: of two runs that begin at once, neither would see what the other enters."""
        private_file(self.folder / LOCK)
        with (self.folder / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _index(self) -> Iterator[sqlite3.Connection]:
        """Opens the list of documents. All that is entered in the block is written at its end, or nothing."""
        path = self.folder / INDEX
        private_file(path)
        check_database(path)
        opened = sqlite3.connect(path, isolation_level=None)
        try:
            opened.executescript(_TABLES)
            opened.execute("BEGIN IMMEDIATE")
            yield opened
            opened.execute("COMMIT")
        except sqlite3.Error as problem:
            raise DamagedStore(str(path), str(problem)) from problem
        finally:
            opened.close()


def ledger_in(folder: Path, file: str, unit: Unit | None) -> Path:
    """Returns a party's ledger. What single words spend is in a ledger of its own: it adds up with no document's spends.

    What nothing bounds, for which there is no unit, is entered in the ledger of documents or persons.
    """
    return folder / f"{file}{_kind(unit)}"


def _kind(unit: Unit | None) -> str:
    return _KINDS[unit is Unit.WORD]


def _check_ready(paths: Sequence[Path], unit: Unit | None) -> None:
    """Refuses a ledger that is damaged, cannot be written, or counts another unit than this one or the first ledger's."""
    for path in paths:
        with Ledger.reopen(path) as ledger:
            budget, given = ledger.budget, ledger.has_budget
        if not given:
            continue
        unit = unit or budget.unit
        if budget.unit is not unit:
            raise units_differ(path, budget.unit, unit)


def own_budget(path: Path, of_the_run: Budget | None) -> Budget | None:
    """Returns the ledger's own budget: that of the first run with one. Later plans cannot raise it, only the party can."""
    if of_the_run is None or not path.is_file():
        return of_the_run
    with Ledger.read(path) as ledger:
        own, given = ledger.budget, ledger.has_budget
    return replace(own, unit=of_the_run.unit) if given else of_the_run


def runs_in(path: Path) -> frozenset[str]:
    with Ledger.read(path) as ledger:
        return frozenset(account.run for account in ledger.runs())


def _opening(path: Path) -> bytes:
    """Returns the digest of the opening entry, which differs for every ledger. The chain is checked elsewhere."""
    with closing(LedgerFile.read(path)) as file:
        return file.head_at(1) or b""


def _ended(path: Path) -> bool:
    with Ledger.read(path) as ledger:
        return bool(ledger.ended)


def _secret(index: sqlite3.Connection) -> bytes:
    """Returns the key of the digests. Without it nobody finds a document by trying texts. It is as secret as the documents."""
    kept = index.execute("SELECT value FROM secret").fetchone()
    if kept is None:
        kept = (OperatingSystem().bytes(_KEY),)
        index.execute("INSERT INTO secret VALUES (?)", kept)
    return bytes(kept[0])


def _keyed(key: bytes, corpus: Corpus) -> list[bytes]:
    plain = content_digests(corpus).tobytes()
    each = (plain[at : at + DIGEST] for at in range(0, len(plain), DIGEST))
    return [hashlib.blake2b(one, key=key, digest_size=DIGEST).digest() for one in each]


def _places(index: sqlite3.Connection, digests: Sequence[bytes]) -> dict[bytes, frozenset[Place]]:
    """Returns the places of these documents' ledgers. Copies of a document have one digest, and may have several ledgers."""
    _give(index, digests)
    found: dict[bytes, set[Place]] = {}
    for digest, generation, party in index.execute("SELECT digest, generation, party FROM documents NATURAL JOIN given"):
        found.setdefault(digest, set()).add((generation, party))
    return {digest: frozenset(places) for digest, places in found.items()}


def _enter(index: sqlite3.Connection, held: Mapping[str, Sequence[bytes]], generation: int) -> None:
    """Enters that these documents have their ledgers in this generation, and in no other."""
    _give(index, [digest for digests in held.values() for digest in digests])
    index.execute("DELETE FROM documents WHERE generation != ? AND digest IN (SELECT digest FROM given)", (generation,))
    for file, digests in held.items():
        rows = ((digest, generation, file) for digest in digests)
        index.executemany("INSERT OR IGNORE INTO documents VALUES (?, ?, ?)", rows)


def _give(index: sqlite3.Connection, digests: Sequence[bytes]) -> None:
    index.execute("DELETE FROM given")
    index.executemany("INSERT OR IGNORE INTO given VALUES (?)", ((digest,) for digest in digests))
