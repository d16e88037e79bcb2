"""A home in one encrypted file, copied while its process works, and a home made of such a file.

What a party answered after the copy was made, the copy does not know. So a restored home takes part again under a new identity
only. The others then refuse by name each number that they answered together with the old one: no sum is opened twice. Under a
budget they must know its ledger as it stands, under the name that it had; what may be missing nevertheless, one answer that
nobody signed yet, is paid for (`budget/guard.py`). Until then it signs no other ledger.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import struct
import tarfile
from collections.abc import Iterator
from contextlib import closing, nullcontext
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from securetm.credentials.homes import KEYS, Replacement, next_keys
from securetm.credentials.key_requests import KeyRequest, request_in
from securetm.credentials.keys import NEXT, Keys, Passphrase, are_encrypted
from securetm.credentials.roster import COORDINATOR
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import FileNotWritten, Mistake, NoSuchPath
from securetm.federation.budget.ledgers import LedgersOfDocuments
from securetm.federation.party.home import mark_restored
from securetm.federation.store import DamagedStore
from securetm.private_files import FILE, check_private, make_folder, sync, writing

MAGIC = b"securetm backup 1\n"
_SALT, _KEY, _NONCE = 16, 32, struct.Struct(">3xQ?")  # the number of a piece, and whether it is the last
_COST = {"n": 1 << 16, "r": 8, "p": 1}  # 64 MiB and some tenths of a second for each passphrase that somebody tries
_PIECE = 1 << 20  # bytes of the copy in one encrypted piece
_TAG = 16
_PASSING = re.compile(r".*(-wal|-shm|-journal|\.new)|\..*")  # of files that their owner is about to replace or to delete
_SQLITE = b"SQLite format 3\x00"


def back_up(home: Path, file: Path, passphrase: Passphrase) -> int:
    """Writes a copy of the home, whole or not at all, and returns how many files are in it. The home's process may go on.

    Ledgers come last: the copy may know that an answer was paid for and not have it, which is refused, and never the reverse.
    """
    request_in(home / KEYS)
    if are_encrypted(home / KEYS):  # the copy has the same passphrase: nobody has to remember two
        Keys.open(home / KEYS, passphrase)
    beside, ledgers = file.with_name(f"{file.name}.new"), home / "ledgers"
    try:
        with writing(beside) as stream:
            sealing = _Sealing.begun(stream, passphrase)
            with tarfile.open(fileobj=sealing, mode="w|", format=tarfile.PAX_FORMAT) as packed:  # type: ignore[call-overload]
                count = sum(_pack(packed, path, home) for path in _files(home) if ledgers not in path.parents)
                with LedgersOfDocuments(ledgers).alone() if ledgers.is_dir() else nullcontext():
                    count += sum(_pack(packed, path, home) for path in _files(ledgers))
            sealing.end()
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
        sync(file.absolute().parent)
    except OSError as problem:
        raise FileNotWritten(str(file), problem.strerror or type(problem).__name__) from problem
    finally:
        beside.unlink(missing_ok=True)
    return count


def restore(file: Path, home: Path, passphrase: Passphrase) -> KeyRequest | None:
    """Makes a home of a copy, whole or not at all. Returns the request of a party for its new identity.

    A coordinator, who holds no documents, goes on with the keys that it has.
    """
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise Mistake(
            "{home} is not empty, and nothing is restored over a home",
            hint="rename it, so that it can be compared, or choose another folder",
            home=str(home),
        )
    if not file.is_file():
        raise NoSuchPath(str(file))
    beside = home.with_name(f"{home.name}.restoring")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        make_folder(beside)
        with file.open("rb") as stream:
            opening = _Opening.begun(stream, file, passphrase)
            with tarfile.open(fileobj=opening, mode="r|") as packed:  # type: ignore[call-overload]
                for member in packed:
                    _unpack(packed, member, beside, file)
            while opening.read(_PIECE):  # to the end, which says that nothing was cut off
                pass
        request = None
        if request_in(beside / KEYS).name != COORDINATOR:
            used = passphrase if are_encrypted(beside / KEYS) else None
            keys = Keys.open(beside / KEYS, used)
            mark_restored(beside, keys)
            shutil.rmtree(beside / KEYS / NEXT, ignore_errors=True)  # keys that waited for a roster when the copy was made
            request = next_keys(beside, keys, Replacement(identity=True), used)
        sync(beside)
        beside.replace(home)
        sync(home.absolute().parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return request


# ---- files -----------------------------------------------------------------------------------------------------------


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name != "lock" and not _PASSING.fullmatch(path.name):
            yield path


def _pack(packed: tarfile.TarFile, path: Path, home: Path) -> int:
    """Puts one file into the copy; none if its owner has deleted it since. A database is copied as it is at one moment."""
    try:
        if path.name != "roster.toml":  # the accepted roster is public, and its folder is closed
            check_private(path)
        content = _database(path) if _is_database(path) else path.read_bytes()
    except FileNotFoundError:
        return 0
    entry = tarfile.TarInfo(path.relative_to(home).as_posix())
    entry.size, entry.mode, entry.mtime = len(content), FILE, int(path.stat().st_mtime) if path.exists() else 0
    packed.addfile(entry, BytesIO(content))
    return 1


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(len(_SQLITE))
    ending = path.suffix
    if start != _SQLITE and (ending == ".ledger" or (ending == ".sqlite" and start)):  # a store is empty before its first table
        raise DamagedStore(str(path), "it is no database" if start else "it is empty")
    return start == _SQLITE


def _database(path: Path) -> bytes:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as opened, closing(sqlite3.connect(":memory:")) as copy:
            opened.backup(copy)
            content = bytes(copy.serialize())
            (said,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as problem:
        if not path.exists():
            raise FileNotFoundError(str(path)) from problem
        raise DamagedStore(str(path), str(problem)) from problem
    if said != "ok":
        raise DamagedStore(str(path), str(said))
    return content


def _unpack(packed: tarfile.TarFile, member: tarfile.TarInfo, home: Path, file: Path) -> None:
    path, found = home / member.name, packed.extractfile(member)
    if not member.isfile() or found is None or ".." in Path(member.name).parts or Path(member.name).is_absolute():
        raise _damaged(file, "it holds something else than the files of a home")
    make_folder(path.parent)
    with writing(path) as stream:
        shutil.copyfileobj(found, stream)
        stream.flush()
        os.fsync(stream.fileno())


# ---- encryption: pieces that nobody can change, leave out, move or cut off -------------------------------------------


def _cipher(passphrase: Passphrase, salt: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(Scrypt(salt, _KEY, **_COST).derive(passphrase.text.encode()))


@dataclass
class _Sealing:
    """A file to write to; its content is encrypted piece by piece, each bound to its place and to whether it is the last."""

    stream: BinaryIO
    cipher: ChaCha20Poly1305 = field(repr=False)
    head: bytes
    waiting: bytearray = field(default_factory=bytearray, repr=False)
    number: int = 0

    @classmethod
    def begun(cls, stream: BinaryIO, passphrase: Passphrase) -> _Sealing:
        salt = OperatingSystem().bytes(_SALT)
        stream.write(MAGIC + salt)
        return cls(stream, _cipher(passphrase, salt), MAGIC + salt)

    def write(self, content: bytes) -> int:
        """Takes content; a piece is written when more follows it."""
        self.waiting += content
        while len(self.waiting) > _PIECE:
            self._seal(bytes(self.waiting[:_PIECE]), last=False)
            del self.waiting[:_PIECE]
        return len(content)

    def end(self) -> None:
        self._seal(bytes(self.waiting), last=True)

    def _seal(self, piece: bytes, *, last: bool) -> None:
        self.stream.write(self.cipher.encrypt(_NONCE.pack(self.number, last), piece, self.head))
        self.number += 1


@dataclass
class _Opening:
    """The content of such a file, to read from. Of a damaged one, no byte of a wrong piece is given."""

    stream: BufferedReader
    file: Path
    cipher: ChaCha20Poly1305 = field(repr=False)
    head: bytes
    piece: bytes = field(default=b"", repr=False)
    number: int = 0
    last: bool = False

    @classmethod
    def begun(cls, stream: BufferedReader, file: Path, passphrase: Passphrase) -> _Opening:
        head = stream.read(len(MAGIC) + _SALT)
        if not head.startswith(MAGIC) or len(head) != len(MAGIC) + _SALT:
            raise _damaged(file, "it does not begin as a copy of a home does")
        return cls(stream, file, _cipher(passphrase, head[len(MAGIC) :]), head)

    def read(self, size: int) -> bytes:
        """Returns up to so many bytes; fewer at the end only."""
        while len(self.piece) < size and not self.last:
            self.piece += self._next()
        content, self.piece = self.piece[:size], self.piece[size:]
        return content

    def _next(self) -> bytes:
        sealed = self.stream.read(_PIECE + _TAG)
        self.last = not self.stream.peek(1)
        try:
            piece = self.cipher.decrypt(_NONCE.pack(self.number, self.last), sealed, self.head)
        except InvalidTag:
            if self.number:
                raise _damaged(self.file, "it was cut off or changed") from None
            raise Mistake(
                "the passphrase does not open {file}, or the file was changed",
                hint="type it again: it is that of the keys when the copy was made; nobody can recover one that is lost",
                file=str(self.file),
            ) from None
        self.number += 1
        return piece


def _damaged(file: Path, problem: str) -> Mistake:
    return Mistake("{file} is no whole copy of a home: {problem}", hint="take another copy", file=str(file), problem=problem)
