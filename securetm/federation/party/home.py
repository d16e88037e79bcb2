"""A party's home: keys, ledgers, and for each data set what was answered of it. Everything in it is its owner's alone.

What outlives a run is found by the identity of the data set and by the agreement, never by the name of a file or of a run. So a
coordinator that begins a run anew meets the counters of before.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from securetm.contracts import Budget
from securetm.corpus.corpus import Corpus
from securetm.corpus.document_names import content_digests
from securetm.credentials.keys import Keys
from securetm.data_classes import dataclass
from securetm.entropy import OperatingSystem
from securetm.errors import Mistake
from securetm.federation.budget.ledgers import LedgersOfDocuments, ledger_in
from securetm.federation.budget.witness import TAG, UNCONFIRMED, UNPAID
from securetm.federation.origins import run_of
from securetm.federation.party_store import PartyStore
from securetm.federation.store import COMMON, DamagedStore, SqliteStore, reading
from securetm.plans.agreement import Agreement
from securetm.plans.party_file import PartyFile
from securetm.private_files import check_database, check_private, private_folder, sync, writing
from securetm.sessions.identities import IDENTITY
from securetm.settings import digest

_DOCUMENTS = "documents of this run"  # in the store: one digest of all of them
_NAMES, _SECRET = "names.key", 32
_OTHERS = "others.sqlite"
_COPIED = "restored from a copy under the identity"  # in the store, beside what others' ledgers were
_LABEL = b"securetm data set of a ledger\n"


class HomeStore(PartyStore):
    """A party's store in its home, synced to disk. The private key of its identity is in none of its files."""

    def __init__(self, folder: Path, identity: bytes) -> None:
        super().__init__(folder)
        self._identity = identity

    def get(self, key: str) -> bytes | None:
        return self._identity if key == IDENTITY else super().get(key)


@dataclass(frozen=True)
class PartyHome:
    path: Path
    party: str
    data_set: str  # the identity that the party gave its documents

    @classmethod
    def named_in(cls, file: PartyFile) -> PartyHome:
        """The home that this file names. It is made for its owner alone; one that others may open is refused."""
        home = cls(file.home_folder, file.name, file.data.identity)
        for folder in (home.path, home.path / "data", home.data):
            private_folder(folder)
        return home

    @property
    def data(self) -> Path:
        return self.path / "data" / self.data_set

    @property
    def ledgers(self) -> Path:
        return self.path / "ledgers"

    def secret_of_names(self) -> bytes:
        """Returns the secret under which the names of documents become their keys. It is drawn once, and never leaves the home.

        Without it nobody knows which documents are held out or drawn together, even of texts that they guess.
        """
        path = self.path / _NAMES
        if not path.is_file():
            beside = path.with_name(f".{_NAMES}.{os.getpid()}")
            with writing(beside) as file:
                file.write(OperatingSystem().bytes(_SECRET))
            with suppress(FileExistsError):  # another process of this home was first, and its secret counts
                os.link(beside, path)
            beside.unlink()
            sync(self.path)
        check_private(path)
        if len(secret := path.read_bytes()) != _SECRET:
            raise DamagedStore(str(path), f"a secret of {_SECRET} bytes is wanted")
        return secret

    def run(self, agreement: Agreement) -> Path:
        """The folder of everything that was answered of this data set under that agreement and its profile."""
        return self.data / "runs" / run_of(agreement)

    def check_one_data_set(self, agreement: Agreement) -> None:
        """Refuses if another data set of this party has begun this run.

        It has its own counters, so the coordinator could ask it a question that the others answered before. They would give the
        same noise again, and the difference of the two sums would show this party's answers behind little noise or none.
        """
        name = self.run(agreement).name
        begun = sorted(path.parts[-3] for path in (self.path / "data").glob(f"*/runs/{name}"))
        if others := [data_set for data_set in begun if data_set != self.data_set]:
            raise Mistake(
                "this run was begun with data set {begun}, and not with {data_set}",
                hint="write `identity` in [data] of PARTY.toml as it was: an answer to the same question over another data set "
                "would show the difference. The other data set takes part under the next plan (another seed is another plan)",
                begun=others[0],
                data_set=self.data_set,
            )

    def store(self, agreement: Agreement, identity: bytes, corpus: Corpus) -> PartyStore:
        """Opens the store of this data set under that agreement, if the documents are those that it was begun with."""
        path = self.run(agreement)
        private_folder(path.parent)
        store = HomeStore(path, identity)
        in_order = corpus.in_blocks()  # in which a corpus on disk has them
        persons = b"" if in_order.persons is None else in_order.persons.tobytes()
        labels = digest([list(in_order.vocabulary), persons.hex()])
        # One digest of all documents and of whose they are. It is as secret as they are.
        held, before = digest([content_digests(in_order).tobytes().hex(), labels.hex()]), store.get(_DOCUMENTS)
        if before is None:
            store.put(_DOCUMENTS, held)
        elif before != held:
            store.close()
            raise Mistake(
                "the documents of data set {data_set} are not those that this run began with",
                hint="put the documents back as they were: an answer to the same question over other documents would show the "
                "difference. Changed documents take part under the next plan (another seed is another plan)",
                data_set=self.data_set,
                path=str(path),
            )
        return store

    def ledger(self, corpus: Corpus, budget: Budget | None, *, begins: bool = True) -> Path:
        """Returns the ledger of these documents. What was spent of any of them before is in it, under whichever identity."""
        files = {self.party: self.data_set}
        folder = LedgersOfDocuments(self.ledgers).home({self.party: corpus}, files, budget, by_name=True, begins=begins)
        return ledger_in(folder, self.data_set, None if budget is None else budget.unit)

    def others(self) -> SqliteStore:
        """Opens the store of what this party saw of the others' ledgers, in all runs."""
        return SqliteStore(self.path / _OTHERS, COMMON)

    def tag(self, ledger: Path, identity: bytes) -> bytes:
        """Returns the name of the ledger's data set for the other parties, who cannot read in it what the data set is called.

        It follows from the identity that the party had first: a ledger that was lost and begun anew has the same one, under a
        new identity, too.
        """
        return hmac.digest(identity, _LABEL + f"{ledger.parent.name}/{ledger.name}".encode(), "sha256")[:TAG]

    def check_identity(self, identity: bytes) -> None:
        """Refuses to answer out of a copy of the home under the identity of before.

        The others would give their old answers to a question again, to which this party does not know its own.
        """
        path = self.path / _OTHERS
        if not path.is_file() or not path.stat().st_size:
            return
        check_database(path)
        try:
            with reading(path) as others:
                (before,) = others.execute("SELECT value FROM store WHERE key = ?", (_COPIED,)).fetchone() or (None,)
        except sqlite3.Error as problem:
            raise DamagedStore(str(path), str(problem)) from problem
        if before == identity:
            raise Mistake(
                "{home} was restored from a copy, and does not know what this party answered after the copy was made",
                hint="take part under a new identity: send the request that `securetm restore` wrote to the coordinator's "
                "operator, and accept the roster that comes back (`securetm keys accept`)",
                home=str(self.path),
            )


def mark_restored(home: Path, keys: Keys) -> None:
    """Notes in a home that was made of a copy under which identity it was made, and that nobody has confirmed its ledgers."""
    with closing(PartyHome(home, "", "").others()) as others:
        others.put(_COPIED, keys.public_identity)
        others.put(UNCONFIRMED, b"1")
        others.put(UNPAID, b"1")
