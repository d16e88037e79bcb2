"""An organisation's own keys: the identity that signs, the P-256 key of TLS, and the fingerprints of what is public.

No key is ever in a text that this module makes: not in `repr`, not in an error.
"""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import re
import resource
import sys
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from securetm.credentials.hybrid_identity import PrivateIdentity, PublicIdentity, Purpose
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import Mistake, Unreadable, refused_as
from securetm.private_files import check_private, private_folder, sync, writing

CURVES = ("secp256r1", "secp384r1")  # that a TLS key may be on
DIGITS, GROUP = 60, 5  # 10^60 is 199 bits: two contents with one fingerprint take about 2^99 trials


def fingerprint(digest: bytes) -> str:
    """The fingerprint of a SHA-256, as in `04217 99120 …`."""
    digits = f"{int.from_bytes(digest, 'big') % 10**DIGITS:0{DIGITS}d}"
    return " ".join(digits[at : at + GROUP] for at in range(0, DIGITS, GROUP))


def fingerprint_of(content: bytes) -> str:
    return fingerprint(hashlib.sha256(content).digest())


def parsed_fingerprint(text: str) -> str | None:
    """A typed fingerprint in its usual form; None if it is none. Spaces, dots, dashes and ends of lines do not matter."""
    digits = re.sub(r"[\s.\-]+", "", text[: 4 * DIGITS])
    if len(digits) != DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    return " ".join(digits[at : at + GROUP] for at in range(0, DIGITS, GROUP))


def same_fingerprint(typed: str, shown: str) -> bool:
    return hmac.compare_digest(parsed_fingerprint(typed) or "", shown)


IDENTITY, TLS, CERTIFICATE, REQUEST, NEXT = "identity.pem", "tls.pem", "certificate.pem", "request.toml", "next"
FIRST = "first-identity.pem"  # of a member that has another one now: it signs no more, and names ledgers to others
_MOST = 65_536  # bytes of a file of a key
_LEAST_LETTERS, _MOST_LETTERS = 8, 1_000
_ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


@dataclass(frozen=True, eq=False)
class Keys:
    """The private keys of one member, in memory. A text of this object shows the folder alone."""

    folder: Path
    identity: bytes = field(repr=False)  # 32 raw bytes, private
    tls_key_pem: bytes = field(repr=False)  # not encrypted: TLS libraries take it so
    first: bytes = field(default=b"", repr=False)  # the identity that this member had first, private

    @classmethod
    def open(cls, folder: Path, passphrase: Passphrase | None = None) -> Keys:
        """Reads the keys in a folder. Refuses files that others may read, and a passphrase that is missing or wrong."""
        if not (folder / IDENTITY).is_file():
            raise no_keys(str(folder))
        check_private(folder)
        identity = _private_key(folder / IDENTITY, passphrase)
        if not isinstance(identity, Ed25519PrivateKey):
            raise _damaged(str(folder / IDENTITY), "Ed25519")
        tls = ec_key(folder / TLS, passphrase)
        own = identity.private_bytes_raw()
        first = _private_key(folder / FIRST, passphrase) if (folder / FIRST).is_file() else identity
        if not isinstance(first, Ed25519PrivateKey):
            raise _damaged(str(folder / FIRST), "Ed25519")
        return cls(folder, own, pem_of(tls), first.private_bytes_raw())

    @property
    def public_identity(self) -> bytes:
        return Ed25519PrivateKey.from_private_bytes(self.identity).public_key().public_bytes_raw()

    @cached_property
    def private(self) -> PrivateIdentity:
        return PrivateIdentity(self.identity)

    @property
    def public(self) -> PublicIdentity:
        return self.private.public

    @property
    def tls_public_key(self) -> bytes:
        """The public key of TLS, in DER."""
        return public_der(self.tls_key)

    @property
    def tls_key(self) -> ec.EllipticCurvePrivateKey:
        key = load_pem_private_key(self.tls_key_pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    def sign(self, purpose: Purpose, *fields: bytes) -> bytes:
        return self.private.sign(purpose, *fields)

    def __reduce__(self) -> NoReturn:
        raise TypeError("private keys are not copied into other processes or files")


@dataclass(frozen=True, eq=False)
class Passphrase:
    """A passphrase in memory. A text of this object does not show it."""

    text: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _LEAST_LETTERS <= len(self.text) <= _MOST_LETTERS:
            raise unusable_passphrase(f"has {len(self.text)} characters")
        if not self.text.isprintable():
            raise unusable_passphrase("has control characters or several lines")


def make_keys(folder: Path, passphrase: Passphrase | None, *, identity: bytes | None = None, tls: bytes | None = None) -> Keys:
    """Makes a folder of keys: those given (raw, and PEM), and new ones else. They are synced to disk."""
    private_folder(folder)
    signing = Ed25519PrivateKey.from_private_bytes(identity or OperatingSystem().bytes(32))
    serving = load_pem_private_key(tls, None) if tls else ec.generate_private_key(ec.SECP256R1())
    for name, key in ((TLS, serving), (IDENTITY, signing)):  # the identity comes last: with it the folder holds keys
        write_key(folder / name, key, passphrase)  # type: ignore[arg-type]
    sync(folder)
    return Keys.open(folder, passphrase)


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey, passphrase: Passphrase | None) -> None:
    """Writes a private key for its owner alone, encrypted if there is a passphrase."""
    protected: KeySerializationEncryption = NoEncryption()
    if passphrase is not None:
        protected = BestAvailableEncryption(passphrase.text.encode())
    with writing(path) as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protected))
    sync(path)


def are_encrypted(folder: Path) -> bool:
    return any(_ENCRYPTED in _read(path) for path in (folder / IDENTITY, folder / TLS) if path.is_file())


def ec_key(path: Path, passphrase: Passphrase | None) -> ec.EllipticCurvePrivateKey:
    key = _private_key(path, passphrase)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name not in CURVES:
        raise _damaged(str(path), "P-256 or P-384")
    return key


def public_der(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _private_key(path: Path, passphrase: Passphrase | None) -> object:
    if not path.is_file():
        raise no_keys(str(path.parent))
    check_private(path)
    content = _read(path)
    is_encrypted = _ENCRYPTED in content
    if is_encrypted and passphrase is None:
        raise passphrase_needed(str(path))
    try:
        return load_pem_private_key(content, passphrase.text.encode() if passphrase and is_encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        if not is_encrypted:
            raise _damaged(str(path), "readable") from None
        raise Mistake(
            "the passphrase does not open {path}",
            hint="type it again; nobody can recover a passphrase that is lost: make new keys and have the old ones revoked",
            path=str(path),
        ) from None


def _read(path: Path) -> bytes:
    with refused_as(Unreadable, path), path.open("rb") as file:
        return file.read(_MOST)


def pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as TLS libraries take it, not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


_PR_SET_DUMPABLE = 4  # <linux/prctl.h>


def keep_out_of_core_dumps() -> None:
    """Lets this process, and those it starts, write no core dump; on Linux no other process of the user can trace it either.

    A role calls it before it opens its keys. Where the system does not know one of both, the other still holds.
    """
    with suppress(ValueError, OSError):  # a limit that is lower already stays
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def no_keys(path: str) -> Mistake:
    folder = Path(path)
    names = (IDENTITY, TLS, REQUEST)
    missing = [name for name in names if not (folder / name).is_file()]
    if 0 < len(missing) < len(names):
        return Mistake(
            "of the keys in {path}, {missing} is gone",
            hint="take it from your back-up; without one, have these keys revoked, delete this folder, and make new ones with "
            "`securetm keys new`; keep the rest of the home, which holds the ledgers",
            path=path,
            missing=" and ".join(missing),
        )
    return Mistake(
        "there are no keys in {path}",
        hint="make them with `securetm keys new NAME`, or name the home that has them: its keys lie in HOME/keys",
        path=path,
    )


def _damaged(path: str, kind: str) -> Mistake:
    return Mistake(
        "{path} holds no {kind} private key",
        hint="take the file from your back-up, or make new keys: `securetm keys rotate`, or `securetm keys new` in another "
        "home",
        path=path,
        kind=kind,
    )


def passphrase_needed(path: str) -> Mistake:
    return Mistake(
        "{path} is protected with a passphrase, and none was given",
        hint="give it with --passphrase-file FILE, or in the variable SECURETM_PASSPHRASE, or run in a terminal, which asks",
        path=path,
    )


def no_new_passphrase() -> Mistake:
    return Mistake(
        "a new passphrase has to be chosen, and none was given",
        hint="give it with --passphrase-file FILE, or in the variable SECURETM_PASSPHRASE, or run in a terminal, which asks",
    )


def unusable_passphrase(problem: str) -> Mistake:
    return Mistake("the passphrase {problem}", hint="choose one of 8 to 1,000 characters in one line", problem=problem)
