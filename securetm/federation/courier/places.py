"""Where letters lie: a folder of this machine, or any store that `fsspec` reaches by a URL (`sftp://...`).

Whoever carries the files is trusted with nothing: it may drop, double, swap, cut, rename and hold back.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from securetm.data_classes import dataclass, field
from securetm.errors import Mistake, Misuse, did_you_mean
from securetm.extras import missing_extra
from securetm.federation.courier.letters import drawn_name

MOST_FILES = 100_000  # names that a pass looks at
_T = TypeVar("_T")
_BESIDE = ".part"  # ends the name of a file that is not whole yet


class PlaceAway(Misuse):
    """the letters at {place} cannot be reached: {problem}"""

    place: str
    problem: str
    hint = "try the same place with its own client; nothing is lost, the same command goes on"


class PlaceClosed(PlaceAway):
    """this account may not use the folder of the letters at {place}: {problem}"""

    hint = (
        "let this account list, read and write there, or run as the account that may; nothing is lost, the same command goes on"
    )


class Place(Protocol):
    """A folder that several members write into and read from."""

    def files(self) -> Mapping[str, int]:
        """The plain files by name, with their lengths. At most so many as a pass looks at."""
        ...

    def read(self, name: str, length: int, start: int = 0) -> bytes:
        """At most so many bytes of a file; none where it is gone."""
        ...

    def write(self, content: bytes) -> str:
        """Writes a file whole or not at all, and returns the name that it was given."""
        ...

    def remove(self, name: str) -> None:
        """Deletes a file, if it is there and may be deleted."""
        ...


def place_of(text: str) -> Place:
    """The folder or store that was given on the command line."""
    return StoredFolder.reached(text) if "://" in text else LocalFolder(Path(text))


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine's file system: a share, a mount, a stick, what `rsync` or a mail client carries."""

    path: Path

    def __post_init__(self) -> None:
        try:
            is_folder = stat.S_ISDIR(self.path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            raise Mistake(
                "there is no folder {path}",
                hint="make it, or attach what holds it: letters are put into a folder that is there",
                path=str(self.path),
            ) from None
        except OSError as problem:
            raise _refused(self.path, problem) from problem
        if not is_folder:
            raise Mistake("{path} is a file, and letters lie in a folder", hint="name the folder", path=str(self.path))

    def files(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in islice(entries, MOST_FILES):
                    with suppress(OSError):  # gone meanwhile
                        if entry.is_file(follow_symlinks=False) and not entry.name.endswith(_BESIDE):
                            found[entry.name] = entry.stat(follow_symlinks=False).st_size
        except OSError as problem:
            raise _refused(self.path, problem) from problem
        return found

    def read(self, name: str, length: int, start: int = 0) -> bytes:
        """At most so many bytes of a plain file; what waits when it is opened, such as a pipe, is not opened."""
        with suppress(OSError):
            opened = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(opened, "rb") as file:
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    file.seek(start)
                    return file.read(length)
        return b""

    def write(self, content: bytes) -> str:
        """Writes under another name, syncs, and renames. The group may read it: others carry it, and it is sealed."""
        name = drawn_name()
        beside = self.path / (name + _BESIDE)
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o664), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.rename(self.path / name)
            folder = os.open(self.path, os.O_RDONLY)
            try:
                with suppress(OSError):  # a share that cannot sync a folder
                    os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as problem:
            with suppress(OSError):
                beside.unlink()
            raise _refused(self.path, problem) from problem
        return name

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self.path / name).unlink()


@dataclass
class StoredFolder:
    """A folder of a store that `fsspec` knows. A connection that broke is made anew, once for each thing that is done."""

    url: str
    path: str
    system: Any = field(repr=False)
    _by_bytes: bool = False  # whether names there are read that are no text

    @classmethod
    def reached(cls, url: str) -> StoredFolder:
        """Connects to the store. What it needs to log in stands in the URL or in fsspec's own configuration."""
        _check_protocol(url)
        try:
            system, path = _connected(url)
            there = system.isdir(path)
        except Exception as problem:
            raise _not_reached(url, problem) from problem
        if not there and not _has_no_folders(system):
            raise Mistake(
                "there is no folder {path}", hint="make it first, with the rights that all members need", path=_shown(url)
            )
        return cls(url, str(path).rstrip("/"), system)

    def files(self) -> Mapping[str, int]:
        listed: list[Any] = self._done(self._listed, otherwise=[])
        plain = (one for one in islice(listed, MOST_FILES) if one.get("type") == "file" and isinstance(one.get("size"), int))
        named = ((str(one["name"]).rpartition("/")[2], one["size"]) for one in plain)
        return {name: size for name, size in named if name and not name.endswith(_BESIDE)}

    def _listed(self, system: Any) -> list[Any]:
        if self._by_bytes:
            return list(_listed_by_bytes(system.ftp, self.path))
        system.invalidate_cache()
        try:
            return list(system.ls(self.path, detail=True))
        except UnicodeDecodeError:  # of a name by somebody else; the connection is out of step now
            self._by_bytes = _SFTP in _protocols(system)
            raise

    def read(self, name: str, length: int, start: int = 0) -> bytes:
        """At most so many bytes of a file; none where this account may not read it."""

        def work(system: Any) -> bytes:
            with system.open(f"{self.path}/{name}", "rb") as file:
                file.seek(start)
                return bytes(file.read(length))

        return self._done(work, otherwise=b"")

    def write(self, content: bytes) -> str:
        """Writes under another name and moves it. A store without a move puts an object whole or not at all anyway."""

        def work(system: Any) -> str:
            name = drawn_name()
            beside = f"{self.path}/{name}{_BESIDE}"
            with system.open(beside, "wb") as file:
                file.write(content)
            system.mv(beside, f"{self.path}/{name}")
            return name

        return self._done(work)

    def remove(self, name: str) -> None:
        with suppress(Exception):
            self.system.rm_file(f"{self.path}/{name}")

    def _done(self, work: Callable[[Any], _T], otherwise: _T | None = None) -> _T:
        """Does this with the store, over a new connection if the old one fails.

        What is gone, or not for this account, is as said otherwise.
        """
        for again in (False, True):
            try:
                if again:
                    self.system, _ = _connected(self.url, anew=True)
                return work(self.system)
            except (FileNotFoundError, PermissionError) as problem:
                if otherwise is not None:
                    return otherwise
                raise _not_reached(self.url, problem) from problem
            except Exception as problem:
                if again:
                    raise _not_reached(self.url, problem) from problem
        raise AssertionError


_SFTP = "sftp"
PATIENCE = 60.0  # seconds for one answer of an SFTP server, which else may never come


def _connected(url: str, *, anew: bool = False) -> tuple[Any, str]:
    import fsspec

    at_most = dict.fromkeys(("timeout", "banner_timeout", "auth_timeout"), PATIENCE) if url.startswith(f"{_SFTP}://") else {}
    system, path = fsspec.url_to_fs(url, skip_instance_cache=anew, **at_most)
    if at_most:
        system.ftp.get_channel().settimeout(PATIENCE)
    return system, path


def _listed_by_bytes(ftp: Any, path: str) -> Iterator[Mapping[str, Any]]:
    """What paramiko lists, without the names that are no text: those are no letters, and paramiko stops at them."""
    from paramiko.sftp import CMD_CLOSE, CMD_OPENDIR, CMD_READDIR
    from paramiko.sftp_attr import SFTPAttributes

    handle = ftp._request(CMD_OPENDIR, path.encode())[1].get_string()
    try:
        while True:
            _, answer = ftp._request(CMD_READDIR, handle)
            for _ in range(answer.get_int()):
                name, _, about = answer.get_string(), answer.get_string(), SFTPAttributes._from_msg(answer)
                plain = stat.S_ISREG(about.st_mode or 0)
                with suppress(UnicodeDecodeError):
                    yield {"name": name.decode(), "size": about.st_size, "type": "file" if plain else "other"}
    except EOFError:  # of the list
        ftp._request(CMD_CLOSE, handle)


def _has_no_folders(system: Any) -> bool:
    """Whether names with a slash are all that the store has of folders, so that an empty one is not there."""
    return bool({"s3", "s3a", "gs", "gcs", "abfs", "az", "memory"} & set(_protocols(system)))


def _protocols(system: Any) -> tuple[str, ...]:
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


_WITH_ACCOUNTS = ("sftp", "ssh", "ftp", "smb")  # protocols whose URL names an account; elsewhere that may be a token


def _shown(url: str) -> str:
    """The URL without a password."""
    protocol, _, rest = url.partition("://")
    login, at, place = rest.rpartition("@")
    account = f"{login.partition(':')[0]}@" if at and protocol in _WITH_ACCOUNTS else ""
    return f"{protocol}://{account}{place}"


def _check_protocol(url: str) -> None:
    try:
        from fsspec.registry import known_implementations, registry
    except ModuleNotFoundError as problem:
        raise _not_reached(url, problem) from problem
    protocol, known = url.partition("://")[0].split("::")[0], sorted({*known_implementations, *registry})
    if protocol not in known:
        raise Mistake(
            "the protocol {protocol} of --courier {place} is not known",
            hint=did_you_mean(protocol, known)
            + "a store is named by a URL such as sftp://... or s3://..., and a folder by its path",
            protocol=protocol,
            place=_shown(url),
        )


def _refused(path: Path, problem: OSError) -> PlaceAway:
    kind = PlaceClosed if isinstance(problem, PermissionError) else PlaceAway
    return kind(str(path), problem.strerror or type(problem).__name__)


def _not_reached(url: str, problem: Exception) -> Misuse:
    if isinstance(problem, ImportError):
        missing = problem if isinstance(problem, ModuleNotFoundError) else problem.__cause__
        if isinstance(missing, ModuleNotFoundError):
            return missing_extra(missing) or Mistake(
                "the letters at {place} cannot be reached without {package}, which is not installed",
                hint="install it beside securetm: pip install {package}",
                place=_shown(url),
                package=missing.name or "",
            )
    kind = PlaceClosed if isinstance(problem, PermissionError) else PlaceAway
    return kind(_shown(url), f"{type(problem).__name__}: {problem}"[:200])
