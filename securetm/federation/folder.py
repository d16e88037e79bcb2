"""The folder of a run: where each role's store lies, how a run is begun and reopened, and the SHA-256 of every file in it.

A file that was changed, cut, lost or swapped is refused by name. Digests are no signature: whoever can write into the folder
can write digests too. Files that do not change any more get one as soon as they are written, all others when the run has ended.
Databases grow while a run works, and only SQLite checks them then; once it has ended they get a digest of the rows in their
tables, because the same rows may be other bytes. A checkpoint and a party's memory carry their own (models/tensor_file.py).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from securetm.contracts import Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import left_out
from securetm.data_classes import asdict, dataclass, field, replace
from securetm.entropy import OperatingSystem
from securetm.errors import CannotWrite, Mistake, Misuse, SecuretmError
from securetm.extras import msgspec
from securetm.federation.budget.ledgers import LedgersOfDocuments, ledger_in, own_budget
from securetm.federation.budget.prices import calibrated
from securetm.federation.document_minimum import check_delta, check_whole_persons, units_of
from securetm.federation.health import LOCK, PULSE
from securetm.federation.origins import check_in_ledgers
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import JOINT
from securetm.federation.release import released_model
from securetm.federation.soundness import check_answerable
from securetm.federation.sources import named_for
from securetm.federation.store import HANDED_OUT, DamagedStore, read_json, write_bytes, write_json
from securetm.federation.topic_labels import TopicLabels
from securetm.models.stored_model import check_plan_of, write_model
from securetm.plans.agreement import Agreement, agree
from securetm.plans.profiles import words_in_sums
from securetm.plans.recommend import Recommendation, plan_text
from securetm.plans.schema import Plan, decode
from securetm.private_files import check_private, private_file, private_folder
from securetm.sessions.identities import public_identity
from securetm.settings import require
from securetm.version import __version__

RUN, KEPT = "run.json", "kept.json"
DIGESTS_VERSION = 1
LOG = "serve.jsonl"  # of a coordinator that serves
_OTHERS = (KEPT, LOCK, LOG, PULSE, f"coordinator/{HANDED_OUT}")  # a coordinator writes into these also after the run has ended
LATE = "late"  # the transcript of what is said after a run has ended, to parties that come for its model
# Later: trials, names of topics, what is said of what leaves, receipts by courier.
ADDED = ("audits/", "labels.json", "release/statement", "courier/", f"{LATE}/")
_DATABASES, _BESIDE = (".sqlite", ".ledger", ".others"), ("-wal", "-shm", "-journal")


class RunBusy(Misuse):
    """another process is working on {path}"""

    path: str
    hint = "wait for it, or end it first"


class NotARun(Misuse):
    """{path} holds no {what}"""

    path: str
    what: str
    hint = "give the directory that `securetm run` printed; an unfinished run is continued with `securetm run --resume`"


class ChangedFile(SecuretmError):
    """{path} is not as its run wrote it: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy of the run's folder: a run's words, model and result belong together; else train again"


@dataclass
class FileDigests:
    version: int = DIGESTS_VERSION
    ended: bool = False  # then there is no other file of the run
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of what is in the file
    rows: dict[str, str] = field(default_factory=dict)  # of what is in the tables of a database


def bind(folder: Path, files: Iterable[Path]) -> None:
    """Adds the digests of files that will not change any more."""
    kept = read_digests(folder) if (folder / KEPT).is_file() else FileDigests()
    added = {_place(folder, file): _digest(file) for file in files}
    write_json(folder / KEPT, asdict(replace(kept, files={**kept.files, **added})))


def bind_all(folder: Path, more: Mapping[str, bytes]) -> None:
    """Writes the digests of all files of a run that ends now, and of `more` files that are written next."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_kept(_place(folder, path))]
    files = {_place(folder, path): _digest(path) for path in found if path.suffix not in _DATABASES}
    files |= {name: hashlib.sha256(content).hexdigest() for name, content in more.items()}
    rows = {_place(folder, path): _rows(path) for path in found if path.suffix in _DATABASES}
    write_json(folder / KEPT, asdict(FileDigests(DIGESTS_VERSION, True, dict(sorted(files.items())), rows)))


def check(folder: Path, *files: Path) -> None:
    """Refuses a file that is not as this run wrote it. While a run works, only files with a digest are checked."""
    kept = read_digests(folder)
    for file in files:
        place = _place(folder, file)
        if place in kept.files:
            _compare(file, kept.files[place], _digest)
        elif kept.ended and not place.startswith(ADDED):
            raise ChangedFile(str(file), f"it is none of the files that this run kept ({KEPT})")


def check_all(folder: Path) -> None:
    kept = read_digests(folder)
    for place, digest in kept.files.items():
        if not place.startswith(ADDED):
            _compare(folder / place, digest, _digest)
    for place, digest in kept.rows.items():
        _compare(folder / place, digest, _rows)


def read_digests(folder: Path) -> FileDigests:
    """Reads the digests, or refuses a file that holds none."""
    path = folder / KEPT
    if not path.is_file():
        raise ChangedFile(str(path), "it is not there, and nothing else says what this run's files were")
    try:
        kept = msgspec.convert(read_json(path), FileDigests)
    except msgspec.ValidationError as problem:
        raise DamagedStore(str(path), "it is no list of files and their digests") from problem
    if kept.version != DIGESTS_VERSION or not kept.files:
        raise DamagedStore(str(path), "it is no list of files and their digests, or one of a later version")
    return kept


def _compare(file: Path, written: str, digest_of: Callable[[Path], str]) -> None:
    if not file.is_file():
        raise ChangedFile(str(file), "it is not there")
    found = digest_of(file)
    if found != written:
        raise ChangedFile(str(file), f"its SHA-256 is {found[:16]}…, and {written[:16]}… was written down in {KEPT}")


def _place(folder: Path, file: Path) -> str:
    return file.relative_to(folder).as_posix()


def _is_kept(place: str) -> bool:
    return place not in _OTHERS and not place.startswith(ADDED) and not place.endswith((*_BESIDE, ".new", ".part"))


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _rows(file: Path) -> str:
    """Returns the digest of all rows of all tables. An empty table that a later version adds changes nothing.

    It is opened as for writing, so that what SQLite puts beside it is gone again when it is closed.
    """
    digest = hashlib.sha256()
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=rw", uri=True)) as opened:
            named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            for (table,) in opened.execute(named).fetchall():
                for row in opened.execute(f'SELECT * FROM "{table}" ORDER BY rowid'):  # noqa: S608 - out of the database itself
                    digest.update(repr((table, row)).encode())
    except sqlite3.DatabaseError as problem:
        raise ChangedFile(str(file), str(problem)) from problem
    return digest.hexdigest()


RESULT, LEDGERS = "result.json", "ledgers"
EARLIER = "earlier.safetensors"  # the model that the training went on from
PLAN = "plan.toml"  # the whole plan, for people and for another run
VERSION = 1


@dataclass(frozen=True)
class RunFolder:
    path: Path
    agreement: Agreement
    members: tuple[str, ...]
    with_content: bool = False
    keys: Mapping[str, bytes] = field(default_factory=dict)  # each member's public identity
    name: str = ""  # what the parties call the run in their ledgers: no other run has it, whatever its folder is called
    ledgers: Path = Path()  # where the parties' ledgers lie: a trial's in the run's folder; those of documents outlive runs
    holds: Mapping[str, int] = field(default_factory=dict)  # how many documents each member has at least, by the roster

    def ledger(self, name: str) -> Path:
        budget = self.agreement.budget
        return ledger_in(self.ledgers, self.party(name).name, None if budget is None else budget.unit)

    @property
    def is_trial(self) -> bool:
        """Whether its ledgers belong to this run alone, so that they do not hold what other runs spent."""
        return self.ledgers == self.path / LEDGERS

    @property
    def model(self) -> Path:
        """The file of the finished shared model; that of a coordinator who never sees one is not there."""
        return released_model(self.path)

    @property
    def coordinator(self) -> Path:
        return self.path / "coordinator"

    def party(self, name: str) -> Path:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
        return self.path / "parties" / f"{self.members.index(name) + 1:02d}-{slug}"

    def documents(self, name: str) -> Path:
        return self.party(name) / "corpus.npz"

    @property
    def words(self) -> Path:
        return self.coordinator / "vocabulary.txt"


def check_free(path: Path) -> None:
    """Refuses a folder that holds a run or cannot be made, before documents are read. It makes no folder."""
    if (path / RUN).exists():
        raise Mistake(
            "{path} already holds a run",
            hint="choose another --out, or continue it with `securetm run --resume {path}`",
            path=str(path),
        )
    there = next(one for one in (path, *path.parents) if one.exists())
    if not there.is_dir():
        raise CannotWrite(str(path), f"{there} is a file, and a folder is wanted")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CannotWrite(str(path), f"nothing can be written to {there}")
    if there == path:
        private_folder(path)


def check_lists(agreement: Agreement) -> None:
    """Refuses, before any party is asked, to look words up in a list of a language that is not installed."""
    if agreement.words is None and agreement.plan.vocabulary.source == JOINT and words_in_sums(agreement.profile):
        import wordfreq  # noqa: F401 - `missing_extra` names what to install


def begin(
    path: Path,
    plan: Plan,
    corpora: Mapping[str, Corpus],
    *,
    with_content: bool = False,
    ledgers: Path | None = None,
    why: Mapping[str, str] | None = None,
) -> RunFolder:
    """Makes the folder of a new run. Each party's documents go into that party's folder and nowhere else.

    The ledgers are a trial's and lie in the run's folder, unless `ledgers` is a folder of ledgers that belong to documents.
    `why` has the reasons of settings that were recommended: they stand in the plan that is written there.
    """
    check_free(path)
    agreement = agree(plan)
    check_lists(agreement)
    check_answerable(agreement, len(corpora))
    _check_parties(agreement, corpora)
    persons = any(corpus.persons is not None for corpus in corpora.values())
    agreement = calibrated(agreement, len(corpora), Unit.PERSON if persons else None)
    check_whole_persons(corpora, agreement)
    held = {party: named_for(corpus, agreement.budget) for party, corpus in corpora.items()}
    units = sum(units_of(corpus, agreement.unit) for corpus in corpora.values())
    check_delta("all parties together", units, agreement.profile)
    name = f"{path.resolve().name} {OperatingSystem().bytes(4).hex()}"
    folder = RunFolder(path, agreement, tuple(corpora), with_content, name=name, ledgers=path / LEDGERS)
    folder = replace(folder, ledgers=_ledgers(folder, corpora, ledgers))
    own = (own_budget(folder.ledger(name), agreement.budget) for name in corpora)
    check_delta("all parties together", units, agreement.profile, *(one.delta for one in own if one is not None))
    keys = {name: _settled(folder.party(name), corpus) for name, corpus in held.items()}
    folder = replace(folder, keys=keys)
    lasts = f"the least with which epsilon lasts for all rounds of {len(corpora)} parties"
    chosen = {"unit": "as the documents name persons", "noise": lasts, "words": "a quarter of epsilon finds the words"}
    before, after = plan.privacy, agreement.plan.privacy
    made = {f"privacy.{one}": said for one, said in chosen.items() if getattr(before, one) != getattr(after, one)}
    write_record(folder, left_out(corpora), {**(why or {}), **made})
    bind(path, [path / RUN, *(folder.documents(name) for name in corpora)])
    return folder


@contextmanager
def announced(path: Path, found: Recommendation) -> Iterator[None]:
    """Writes the plan of a run before its documents are read: who is stopped meanwhile goes on with it.

    A refusal leaves no folder, and a plan that was there before stays.
    """
    made, plan = [one for one in (path, *path.parents) if not one.exists()], path / PLAN
    own = not plan.exists()
    private_folder(path)
    if own:
        write_bytes(plan, plan_text(found, {}, ("The whole plan of this run, which has not begun.",)).encode())
    try:
        yield
    except SecuretmError:
        if own and not (path / RUN).exists():
            plan.unlink(missing_ok=True)
            for one in made:
                with suppress(OSError):  # something else lies there
                    one.rmdir()
        raise


def write_record(folder: RunFolder, more: Mapping[str, Any], why: Mapping[str, str] | None = None) -> None:
    """Writes what `reopen` reads: who takes part, under which plan and with which keys, and where ledgers lie.

    The plan stands beside it as a file that can be run again, with why each setting was chosen.
    """
    whole = plan_text(Recommendation(folder.agreement.plan, why or {}), {}, ("The whole plan of this run.",))
    write_bytes(folder.path / PLAN, whole.encode())
    facts = {
        "version": VERSION,
        "run": folder.path.resolve().name,
        "members": folder.members,
        "with_content": folder.with_content,
        "keys": {name: key.hex() for name, key in folder.keys.items()},
        "ledgers": LEDGERS if folder.is_trial else str(folder.ledgers),
        "name": folder.name,
        "plan": folder.agreement.plan.tables(),
        "digests": KEPT,
        "software": __version__,
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(folder.path / RUN, {**facts, **more})
    if (earlier := folder.agreement.earlier) is not None:
        write_model(folder.path / EARLIER, earlier.model, earlier.state, earlier.vocabulary, origin=earlier.origin)
        bind(folder.path, [folder.path / EARLIER])
        topics = len(earlier.model.topics(earlier.state))
        TopicLabels.beside(Path(folder.agreement.plan.training.continue_from), topics).write(folder.path)


def _check_parties(agreement: Agreement, corpora: Mapping[str, Corpus]) -> None:
    """Refuses a plan that names a party that is not there, or a list of words that no document has."""
    for name in agreement.plan.model.settings.get("topics_at", {}):
        require(name in corpora, "[model]", "topics_at", name, known=tuple(corpora))
    words = agreement.words
    if words is not None and not any(set(words).intersection(corpus.vocabulary) for corpus in corpora.values()):
        raise Mistake(
            "no document has a word of {file}",
            hint=(
                "take the list of words that belongs to these documents, with its words as the tokeniser leaves them:"
                " in lower case"
            ),
            file=agreement.plan.vocabulary.file,
        )


def _ledgers(folder: RunFolder, corpora: Mapping[str, Corpus], given: Path | None) -> Path:
    """The folder of the parties' ledgers: those of the documents where they are asked for, else the run's own."""
    if given is None:
        return folder.ledgers
    check_in_ledgers(folder.agreement, LedgersOfDocuments(given.resolve()).runs(), given)
    files = {name: folder.party(name).name for name in folder.members}
    return LedgersOfDocuments(given.resolve()).home(corpora, files, folder.agreement.budget)


def _settled(here: Path, corpus: Corpus) -> bytes:
    corpus.save(here / "corpus.npz")
    with closing(PartyStore(here)) as store:
        return public_identity(store, OperatingSystem())


def reopen(path: Path, network: str = "") -> RunFolder:
    """Opens the folder of a run that was begun before. `network` is the class of torch that the caller's own plan names."""
    if not (path / RUN).is_file():
        raise NotARun(str(path), "run")
    check_private(path)
    facts = read_json(path / RUN)
    check(path, path / RUN)
    try:
        tables, members, with_content = dict(facts["plan"]), tuple(facts["members"]), bool(facts["with_content"])
        keys = {name: bytes.fromhex(facts["keys"][name]) for name in members}
        name, ledgers = str(facts["name"]), path / facts["ledgers"]
        if (path / EARLIER).is_file():  # wherever the earlier model was
            tables["training"] = {**tables["training"], "continue_from": str(path / EARLIER)}
            tables["vocabulary"] = {**tables["vocabulary"], "file": str(path / EARLIER)}
    except (KeyError, TypeError, ValueError) as problem:
        raise DamagedStore(str(path / RUN), "it is not the record of a run") from problem
    check_plan_of(str(path / RUN), tables, network)
    return RunFolder(path, agree(decode(tables, str(path / RUN))), members, with_content, keys, name, ledgers)


def result_of(path: Path) -> dict[str, Any]:
    """Reads the result of a finished run."""
    if not (path / RESULT).is_file():
        raise NotARun(str(path), "finished run")
    check(path, path / RESULT)
    return read_json(path / RESULT)


@contextmanager
def alone_in(path: Path) -> Iterator[None]:
    """Locks a run or a data set: two processes would overwrite checkpoints, or answer the same number with two vectors."""
    private_file(path / LOCK)
    with (path / LOCK).open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise RunBusy(str(path)) from problem
        yield
