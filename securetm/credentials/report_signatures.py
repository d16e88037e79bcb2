"""Detached signatures under reports: a party's identity signs the SHA-256 of a file, its own name and the run.

A signature lies beside its file. It says that this key stood behind these bytes, and nothing of whether they are true. A
roster, a request or a fingerprint that somebody read out says whose key it is.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from securetm.credentials.homes import KEYS, found_home
from securetm.credentials.hybrid_identity import KEY, LASTING, PublicIdentity, Purpose, signature_in
from securetm.credentials.key_requests import parsed_request, request_in
from securetm.credentials.keys import REQUEST, Keys, Passphrase, fingerprint_of, parsed_fingerprint, same_fingerprint
from securetm.credentials.roster import COORDINATOR, LONGEST_ROSTER, check_name, parsed_roster
from securetm.credentials.strict_toml import decoded, encoded, hexadecimal, quoted, read_limited, table_of
from securetm.data_classes import dataclass
from securetm.errors import Mistake, Misuse
from securetm.settings import file_bytes, placed, require


class SignedFileChanged(Misuse):
    """{path} is not the file that was signed: its SHA-256 is not the one in {signature}"""

    path: str
    signature: str
    exit_code = 1  # as for every file that is not as it was
    hint = "ask for the file again, or for a new signature; do not rely on this one"


ENDING, FORMAT, FORMER_FORMAT, PARTY = ".sig", 2, 1, "party"  # by the former format, Ed25519 signed alone
_LONGEST = 20_000  # bytes of a signature's file
_DIGEST = 32


@dataclass(frozen=True)
class ReportSignature:
    sha256: bytes  # of the file
    role: str
    name: str  # of the party
    run: str
    run_digest: str
    identity: bytes
    lasting: bytes = b""
    signature: bytes = b""

    @property
    def public(self) -> PublicIdentity:
        return PublicIdentity(self.identity, self.lasting)

    @property
    def signed_fields(self) -> tuple[bytes, ...]:
        return self.sha256, self.role.encode(), self.name.encode(), self.run.encode(), self.run_digest.encode()

    def text(self) -> str:
        lines = [
            "# A signature under a report. To check it: securetm report --verify FILE THIS-FILE ROSTER",
            f"format = {FORMAT}",
            f'sha256 = "{self.sha256.hex()}"',
            *(f"{name} = {quoted(getattr(self, name))}" for name in ("role", "name", "run", "run_digest")),
            f'identity = "{self.identity.hex()}"',
            f"lasting = {encoded(self.lasting)}",
            f"signature = {encoded(self.signature)}",
        ]
        return "\n".join((*lines, ""))


@dataclass(frozen=True)
class _ReportSignatureTable:
    format: int
    sha256: str
    role: str
    name: str
    run: str
    run_digest: str
    identity: str
    signature: str
    lasting: str = ""


@dataclass(frozen=True)
class Signer:
    keys: Keys
    name: str

    @classmethod
    def open(cls, home: Path, passphrase: Passphrase | None) -> Signer:
        """Opens the keys in a home. Refuses those of a coordinator: it does not answer for documents."""
        name = request_in(home / KEYS).name
        if name == COORDINATOR:
            raise _another_role(name, COORDINATOR)
        return cls(Keys.open(home / KEYS, passphrase), name)

    def sign(self, content: bytes, run: str, run_digest: str) -> ReportSignature:
        own = self.keys.public
        made = ReportSignature(hashlib.sha256(content).digest(), PARTY, self.name, run, run_digest, own.ed25519, own.lasting)
        return ReportSignature(**{**vars(made), "signature": self.keys.sign(Purpose.REPORT, *made.signed_fields)})


def home_of(named: Path) -> Path:
    """The home that was named: its folder, or the folder of keys in it."""
    return found_home(named.parent if (named / REQUEST).is_file() else named)


def read_signature(path: Path) -> ReportSignature:
    """Reads the file of a signature, without checking it."""
    with placed(path):
        table = table_of(_ReportSignatureTable, read_limited(path, _LONGEST), path.name)
        is_former = table.format == FORMER_FORMAT
        known = f"is not known; this version reads formats {FORMER_FORMAT} and {FORMAT}"
        require(is_former or table.format == FORMAT, path.name, "format", table.format, known)
        lasting = b"" if is_former else decoded(table.lasting, LASTING, path.name, "lasting")
        signature = signature_in(table.signature, lasting, path.name, "signature")
        return ReportSignature(
            hexadecimal(table.sha256, _DIGEST, path.name, "sha256"),
            table.role,
            check_name(table.name, path.name),
            table.run,
            table.run_digest,
            hexadecimal(table.identity, KEY, path.name, "identity"),
            lasting,
            signature,
        )


def verified(file: Path, signature: Path, trusted: str) -> ReportSignature:
    """The signature under a file, checked. `trusted` is a roster, a request, or the fingerprint of the signer's identity."""
    signed = read_signature(signature)
    if hashlib.sha256(file_bytes(file)).digest() != signed.sha256:
        raise SignedFileChanged(str(file), str(signature))
    if signed.role != PARTY or signed.name == COORDINATOR:
        raise _another_role(signed.name, signed.role)
    _check_key(signed, trusted)
    if not signed.public.is_signed(signed.signature, Purpose.REPORT, *signed.signed_fields):
        raise Mistake(
            "the signature of {name} in {path} is wrong",
            hint="the file was changed after it was signed, or was signed for something else: ask the signer for it again",
            path=str(signature),
            name=signed.name,
        )
    return signed


def _check_key(signed: ReportSignature, trusted: str) -> None:
    own, told = fingerprint_of(signed.identity), parsed_fingerprint(trusted)
    is_trusted = told is not None and same_fingerprint(told, own)
    if told is None:
        keys = _keys_in(Path(trusted), signed.name, own)
        # A signature by Ed25519 alone does not count where a lasting key is trusted.
        is_trusted = signed.identity == keys.ed25519 and keys.lasting in (b"", signed.lasting)
    if not is_trusted:
        raise Mistake(
            "the signature in the name of {name} is by the key {fingerprint}, and that is not the key in {trusted}",
            hint="compare fingerprints by telephone (`securetm keys show`), and take the newest roster",
            name=signed.name,
            fingerprint=own,
            trusted=trusted,
        )


def _keys_in(path: Path, name: str, own: str) -> PublicIdentity:
    """The keys of that name in a roster or a request. Refuses a signer whose key the roster revokes."""
    tables = read_limited(path, LONGEST_ROSTER)
    if "signing_request" in tables:
        request = parsed_request(path, tables)
        return request.public if request.name == name else PublicIdentity(b"")
    roster = parsed_roster(path, tables)
    if own in roster.revoked:
        raise Mistake(
            "the key that signed in the name of {name} is revoked in {roster}",
            hint="ask the signer for a signature by its new key",
            name=name,
            roster=str(path),
        )
    return roster.member(name).public


def _another_role(name: str, role: str) -> Mistake:
    return Mistake(
        "{name} signs as {role}, and a report is signed by a party: it answers for its documents",
        hint="have the party sign it with the keys in its own home",
        name=name,
        role=role,
    )
