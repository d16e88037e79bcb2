"""What could keep a member from taking part, looked for before a run: one finding for each thing, and what to do about it.

Nothing is changed, and nothing is sent but an empty question over the connection that a run would use; by courier, a file too
short to be a letter comes and goes. No document is read.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import grpc

from securetm.accounting.ledger import Ledger
from securetm.credentials.certificates import CertificateRefused
from securetm.credentials.diagnosis import check_own, ended, ending_soon, now_utc, said_of_build
from securetm.credentials.homes import KEYS, accepted_roster
from securetm.credentials.key_requests import request_in
from securetm.credentials.keys import NEXT, REQUEST, Keys, Passphrase, are_encrypted
from securetm.credentials.roster import COORDINATOR, FederationRoster, check_address
from securetm.data_classes import dataclass
from securetm.entropy import OperatingSystem
from securetm.errors import Mistake, SecuretmError
from securetm.extras import missing_extra
from securetm.federation.budget.ledgers import LedgersOfDocuments
from securetm.federation.courier.letters import OVERHEAD
from securetm.federation.courier.places import place_of
from securetm.federation.network.dialing import channel_options
from securetm.federation.network.handshake import channel_credentials, diagnosed
from securetm.federation.network.hub import SERVICE
from securetm.federation.party.home import PartyHome
from securetm.federation.store import reading
from securetm.private_files import check_private
from securetm.version import __version__, build_digest
from securetm.wording import counted

GOOD, BAD, UNKNOWN = "good", "bad", "unknown"
_LEAST_ROOM = 500 << 20  # bytes: a few copies of what a party keeps of a round
_LEAST_FILES = 1_000
_SLACK = 120.0  # seconds that a file may come from the future: clocks of file servers differ
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")  # in the order in which grpc looks
_EXEMPT = ("no_grpc_proxy", "no_proxy")
_GIVE_IT = "give --passphrase-file FILE"
_PATIENCE = 10.0  # seconds for the coordinator's answer


@dataclass(frozen=True)
class Finding:
    """What was looked at, how it is, and what to do where it is not good."""

    what: str
    verdict: str
    found: str
    to_do: str = ""


def examined(home: Path, passphrase: Passphrase | None, courier: str | None = None) -> Iterator[Finding]:
    """Looks at everything, in an order in which the first thing that is bad often explains the others.

    The way to the coordinator is the connection of a run, or the place where letters lie.
    """
    yield _versions()
    yield _permissions(home)
    yield _clock(home)
    yield _disk(home)
    yield _entropy()
    roster = _attempted(lambda: accepted_roster(home))
    yield _roster(roster)
    if isinstance(roster, FederationRoster):
        yield _build(roster)
    accepted = roster if isinstance(roster, FederationRoster) else None
    keys = _attempted(lambda: _opened(home, passphrase))
    yield _keys(home, keys, accepted)
    if isinstance(keys, Keys) and (forgets := _attempted(lambda: PartyHome(home, "", "").check_identity(keys.public_identity))):
        yield _refused("copy", forgets)
    yield _ledgers(home)
    yield _stores(home)
    if courier is not None:
        yield _courier(courier)
    elif accepted is not None and request_in(home / KEYS).name != COORDINATOR:
        yield _proxy(accepted.address, os.environ)
        yield _reachability(home, keys if isinstance(keys, Keys) else None, accepted)


Found = TypeVar("Found")


def _attempted(work: Callable[[], Found]) -> Found | SecuretmError:
    try:
        return work()
    except SecuretmError as problem:
        return problem


def _refused(what: str, problem: SecuretmError) -> Finding:
    return Finding(what, BAD, str(problem), problem.advice())


# ---- this machine ----------------------------------------------------------------------------------------------------


def _versions() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    found = f"securetm {__version__}, Python {python}"
    try:
        wanted = [one.split(";")[0].strip() for one in metadata.requires("securetm") or () if "extra ==" not in one]
    except metadata.PackageNotFoundError:
        return Finding("versions", UNKNOWN, f"{found}; securetm is not installed as a package", "install it with pip")
    names = [one[: next((at for at, c in enumerate(one) if c in "<>=!~ ["), len(one))] for one in wanted]
    missing = [name for name in names if not _is_installed(name)]
    if missing:
        return Finding("versions", BAD, f"{found}; missing: {', '.join(missing)}", "repeat `pip install securetm`")
    return Finding("versions", GOOD, f"{found}, with all {len(names)} libraries that it needs")


def _is_installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def _permissions(home: Path) -> Finding:
    looked = 0
    for path in (home, *sorted(home.rglob("*"))):
        if path.parent == home and path.name == "roster.toml":  # public
            continue
        try:
            check_private(path)
        except FileNotFoundError:  # a process at work has just removed it
            continue
        except SecuretmError as problem:
            return _refused("permissions", problem)
        looked += 1
    return Finding("permissions", GOOD, f"{counted(looked, 'file')} and folders in {home} are their owner's alone")


_UNITS = (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0))


def _clock(home: Path) -> Finding:
    now, to_do = time.time(), "set the clock, and keep it right with NTP: certificates are valid at certain times only"
    newest = max((path.stat().st_mtime for path in home.rglob("*") if path.is_file()), default=0.0)
    if newest - now > _SLACK:
        unit, seconds = next(one for one in _UNITS if newest - now > 2 * one[1])
        behind = counted(round((newest - now) / seconds), unit)
        return Finding("clock", BAD, f"it stands {behind} before the newest file of this home", to_do)
    kept = _is_kept_right()
    if kept is None:
        return Finding("clock", UNKNOWN, f"it says {now_utc():%Y-%m-%d %H:%M} UTC; the system does not say who sets it", to_do)
    if not kept:
        return Finding("clock", UNKNOWN, f"it says {now_utc():%Y-%m-%d %H:%M} UTC, and no time server sets it", to_do)
    return Finding("clock", GOOD, "a time server sets it")


def _is_kept_right() -> bool | None:
    """Whether the kernel says that its clock is synchronised; None where it says nothing."""
    room = ctypes.create_string_buffer(512)  # struct timex, with modes = 0: nothing is set
    try:
        state = int(ctypes.CDLL(None).adjtimex(room))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != 5  # TIME_ERROR


def _disk(home: Path) -> Finding:
    free, files = shutil.disk_usage(home).free, os.statvfs(home)
    found = f"{free / 1e9:,.1f} GB are free"
    if free < _LEAST_ROOM:
        return Finding("disk", BAD, found, f"make room for {_LEAST_ROOM / 1e9:.1f} GB: a member whose disk is full stops")
    if files.f_files and files.f_favail < _LEAST_FILES:
        return Finding("disk", BAD, f"{found}, and {files.f_favail:,} more files fit", "delete files: a run writes hundreds")
    if not os.access(home, os.W_OK):
        return Finding("disk", BAD, f"{home} cannot be written", "mount it so that it can be written")
    return Finding("disk", GOOD, found)


def _entropy() -> Finding:
    try:
        os.getrandom(32, os.GRND_NONBLOCK)
    except BlockingIOError:
        return Finding("entropy", BAD, "the system's generator is not seeded yet", "wait, or give a virtual machine virtio-rng")
    except (AttributeError, OSError):
        return Finding("entropy", UNKNOWN, "the system does not say", "the first draw waits until there is enough")
    return Finding("entropy", GOOD, "the system's generator is seeded")


# ---- the home --------------------------------------------------------------------------------------------------------


def _roster(found: FederationRoster | SecuretmError | None) -> Finding:
    if isinstance(found, SecuretmError):
        return _refused("roster", found)
    if found is None:
        return Finding("roster", BAD, "no roster is accepted here", "`securetm keys accept roster.toml`")
    said = f"roster {found.version} of federation {found.federation}"
    renew = "the coordinator's operator renews them: `securetm keys issue`"
    if gone := ended(found, now_utc()):
        return Finding("roster", BAD, f"{said}: the certificates of {', '.join(gone)} have ended", renew)
    if soon := ending_soon(found, now_utc()):
        return Finding("roster", GOOD, f"{said}; {'; '.join(soon)}", renew)
    return Finding("roster", GOOD, f"{said}, with {counted(len(found.parties), 'party', 'parties')}")


def _build(roster: FederationRoster) -> Finding:
    to_do = "install the build that was published, or have this one listed: `securetm keys roster builds`"
    try:
        warning = said_of_build(roster)
    except SecuretmError as problem:
        return Finding("build", BAD, str(problem), problem.advice() or to_do)
    if warning:
        return Finding("build", UNKNOWN, warning, to_do)
    listed = "the roster lists it" if roster.builds else "the roster lists none"
    return Finding("build", GOOD, f"{build_digest()[:16]}…; {listed}")


def _opened(home: Path, passphrase: Passphrase | None) -> Keys | None:
    if passphrase is None and are_encrypted(home / KEYS):
        return None
    return Keys.open(home / KEYS, passphrase)


def _keys(home: Path, keys: Keys | SecuretmError | None, roster: FederationRoster | None) -> Finding:
    if isinstance(keys, SecuretmError):
        return _refused("keys", keys)
    if keys is None:
        return Finding("keys", UNKNOWN, "they are protected with a passphrase, and none was given", _GIVE_IT)
    try:
        name = request_in(home / KEYS).name
        if roster is not None:
            check_own(name, keys, roster, now_utc())
    except SecuretmError as problem:
        return _refused("keys", problem)
    waiting = (home / KEYS / NEXT / REQUEST).is_file()
    more = "; new keys wait for a roster" if waiting else ""
    return Finding("keys", GOOD, f"those of {name}{' fit the roster' if roster else ''}{more}")


def _ledgers(home: Path) -> Finding:
    paths, entries = sorted(home.glob("ledgers/*/*.ledger")), 0
    for path in paths:
        try:
            with Ledger.read(path) as ledger:
                entries += ledger.head[0]
                own = _attempted(lambda: request_in(home / KEYS).name)
                if isinstance(own, str) and ledger.owner != own:
                    raise Mistake(
                        "{path} is the ledger of {owner}, and this is the home of {own}",
                        hint="put the ledger of {own} back; without it, take the budget of its documents as spent",
                        path=str(ledger.path),
                        owner=ledger.owner,
                        own=own,
                    )
        except SecuretmError as problem:
            return _refused("ledgers", problem)
    try:
        LedgersOfDocuments(home / "ledgers").check_kept()
    except SecuretmError as problem:
        return _refused("ledgers", problem)
    if not paths:
        return Finding("ledgers", GOOD, "none yet")
    whole = f"{counted(len(paths), 'ledger')} with {counted(entries, 'entry', 'entries')}"
    return Finding("ledgers", GOOD, f"{whole}: every entry follows from the one before")


def _stores(home: Path) -> Finding:
    paths = sorted(path for path in home.rglob("*.sqlite") if path.is_file())
    for path in paths:
        try:
            with reading(path) as opened:
                (said,) = opened.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error as problem:
            said = problem
        if said != "ok":
            return Finding("stores", BAD, f"{path} is damaged: {said}", "restore the home from a copy: `securetm restore`")
    return Finding("stores", GOOD, f"{counted(len(paths), 'store')}, whole" if paths else "none yet")


# ---- the way to the coordinator --------------------------------------------------------------------------------------


def _proxy_for(host: str, variables: Mapping[str, str]) -> tuple[str, bool]:
    """The variable that names a proxy, as grpc looks for one, and whether it is passed by on the way to this host."""
    exempt = next((variables[name] for name in _EXEMPT if variables.get(name)), "")
    name = next((name for name in _PROXIES if variables.get(name)), "")
    return name, any(host.endswith(one.strip()) for one in exempt.split(",") if one.strip())


def _proxy(address: str, variables: Mapping[str, str]) -> Finding:
    """What grpc makes of the settings of proxies. User and password of a proxy are not shown."""
    host, _ = check_address(address, "the roster")
    name, passed_by = _proxy_for(host, variables)
    if not name:
        return Finding("proxy", GOOD, "no variable names one; connections are direct")
    if passed_by:
        return Finding("proxy", GOOD, f"{name} is set, and no_proxy exempts {host}; connections are direct")
    proxy = urlsplit(variables[name])
    if proxy.scheme != "http" or not proxy.hostname:
        return Finding("proxy", BAD, f"{name} is not of the form http://HOST:PORT", "connections go by CONNECT over plain HTTP")
    return Finding("proxy", GOOD, f"connections go through {proxy.hostname}:{proxy.port or 80} ({name})")


def _courier(text: str) -> Finding:
    """Whether letters can be read, put and taken away where they lie."""
    try:
        place = place_of(text)
        there = len(place.files())
        name = place.write(OperatingSystem().bytes(OVERHEAD // 2))
        place.remove(name)
        stays = name in place.files()
    except (SecuretmError, ModuleNotFoundError) as problem:
        known = missing_extra(problem) if isinstance(problem, ModuleNotFoundError) else problem
        if known is None:
            raise
        return _refused("courier", known)
    taken = "put, but not deleted: answered letters stay" if stays else "put and deleted"
    return Finding("courier", GOOD, f"{counted(there, 'file')} there; one can be {taken}")


def _reachability(home: Path, keys: Keys | None, roster: FederationRoster) -> Finding:
    what, address = "reachability", roster.address
    if keys is None:
        return Finding(what, UNKNOWN, f"{address} was not dialed: that takes the keys", _GIVE_IT)
    try:
        why = _why_unreached(request_in(home / KEYS).name, keys, roster)
    except SecuretmError as problem:
        return _refused(what, problem)
    if not why:
        return Finding(what, GOOD, f"the coordinator of the roster answers at {address}, and takes this member's certificate")
    name, passed_by = _proxy_for(check_address(address, "the roster")[0], os.environ)
    through = bool(name) and not passed_by
    cause = None if through else diagnosed(roster)  # which dials directly
    if isinstance(cause, CertificateRefused):
        return _refused(what, cause)
    if cause is not None:
        return Finding(what, BAD, f"{address} answers, and a connection fails: {why}", cause.advice())
    way = f"the proxy of {name} lets CONNECT to it pass, and opens no TLS" if through else "this port is open"
    asks = f"ask the coordinator's operator whether `securetm serve` runs, and your own network team whether {way}"
    return Finding(what, BAD, f"nothing answers at {address}: {why}", asks)


def _why_unreached(name: str, keys: Keys, roster: FederationRoster) -> str:
    """Asks the coordinator for a method that it does not have, over the connection of a run: that it says so is an answer."""
    credentials, options = channel_credentials(name, keys, roster), tuple(channel_options(roster).items())
    with grpc.secure_channel(roster.address, credentials, options) as channel:
        try:
            channel.unary_unary(f"/{SERVICE}/IsThere")(b"", timeout=_PATIENCE)
        except grpc.RpcError as problem:
            there = problem.code() is grpc.StatusCode.UNIMPLEMENTED
            return "" if there else f"{problem.code().name}: {problem.details()}"
    return ""
