"""An organisation's request for a place in a roster: its name and public keys, signed by its identity. It holds no secret.

It lies beside the private keys, so that commands know whose they are without a passphrase. The operator gets a copy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from securetm.credentials.certificates import DAMAGED, Certificate, CertificateOfAnotherKey, check_form
from securetm.credentials.hybrid_identity import KEY, LASTING, PublicIdentity, Purpose, signature_in, signature_text
from securetm.credentials.keys import REQUEST, Keys, no_keys
from securetm.credentials.roster import check_name
from securetm.credentials.strict_toml import decoded, encoded, hexadecimal, quoted, read_limited, table_of
from securetm.data_classes import dataclass, replace
from securetm.errors import Mistake
from securetm.private_files import sync, writing
from securetm.settings import placed, require

LONGEST = 65_536  # bytes of a request


@dataclass(frozen=True)
class KeyRequest:
    """Who asks, with which keys. `old_identity` and `consent` are there where a member replaces its identity.

    `lasting` are the keys of the identity beside Ed25519; requests from before protocol 4 have none.
    """

    name: str
    identity: bytes
    signing_request: bytes  # PKCS #10 in DER, signed by the TLS key
    signature: bytes = b""
    certificate: Certificate | None = None  # of an authority of its own
    old_identity: bytes = b""
    consent: bytes = b""
    holds: int = 0  # documents, or persons where these name them, that it says it holds at least
    lasting: bytes = b""
    old_lasting: bytes = b""

    @property
    def public(self) -> PublicIdentity:
        return PublicIdentity(self.identity, self.lasting)

    @property
    def tls_public_key(self) -> bytes:
        """The public key of TLS, in DER."""
        key = x509.load_der_x509_csr(self.signing_request).public_key()
        return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    @property
    def signed_fields(self) -> tuple[bytes, ...]:
        own = self.certificate.der if self.certificate else b""
        holds = (self.holds.to_bytes(8, "big"),) if self.holds else ()
        lasting = (self.lasting, self.old_lasting) if self.lasting else ()
        return self.name.encode(), self.identity, self.signing_request, own, self.old_identity, *lasting, *holds

    def text(self) -> str:
        pem = x509.load_der_x509_csr(self.signing_request).public_bytes(Encoding.PEM).decode()
        lines = [
            "# A request for a place in a federation's roster. It holds no secret: send it to the coordinator's operator.",
            f"name = {quoted(self.name)}",
            f'identity = "{self.identity.hex()}"',
            f"signing_request = '''\n{pem}'''",
        ]
        if self.certificate:
            lines.append(f"certificate = '''\n{self.certificate.pem.decode()}'''")
        if self.lasting:
            lines.append(f"lasting = {encoded(self.lasting)}")
        if self.old_identity:
            lines.append(f'old_identity = "{self.old_identity.hex()}"')
            lines += [f"old_lasting = {encoded(self.old_lasting)}"] if self.old_lasting else []
            lines.append(f"consent = {signature_text(self.consent)}")
        if self.holds:
            lines.append(f"holds = {self.holds}")
        return "\n".join((*lines, f"signature = {signature_text(self.signature)}", ""))


@dataclass(frozen=True)
class _RequestTable:
    name: str
    identity: str
    signing_request: str
    signature: str
    certificate: str = ""
    old_identity: str = ""
    consent: str = ""
    holds: int = 0
    lasting: str = ""
    old_lasting: str = ""


def make_request(
    name: str, keys: Keys, *, certificate: Certificate | None = None, replaced: Keys | None = None, holds: int = 0
) -> KeyRequest:
    """Makes the request for these keys; with the keys of the identity that it replaces, if that is another one."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signing = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(keys.tls_key, hashes.SHA256())
    request = KeyRequest(name, keys.public_identity, signing.public_bytes(Encoding.DER), certificate=certificate, holds=holds)
    request = replace(request, lasting=keys.public.lasting)
    if replaced is not None and replaced.public_identity != request.identity:
        consent = replaced.sign(Purpose.SUCCESSOR, name.encode(), request.identity, request.lasting)
        old = replaced.public
        request = replace(request, old_identity=old.ed25519, old_lasting=old.lasting, consent=consent)
    return replace(request, signature=keys.sign(Purpose.REQUEST, *request.signed_fields))


def announcing(request: KeyRequest, keys: Keys, holds: int) -> KeyRequest:
    """The same request, of the same keys, with another number of documents or persons that the organisation holds at least.

    One from before protocol 4 gets the lasting keys of its identity.
    """
    changed = replace(request, holds=holds, lasting=keys.public.lasting)
    return replace(changed, signature=keys.sign(Purpose.REQUEST, *changed.signed_fields))


def write_request(path: Path, request: KeyRequest) -> None:
    with writing(path) as file:
        file.write(request.text().encode())
    sync(path)


def read_request(path: Path) -> KeyRequest:
    """Reads a request, and refuses one that its own keys did not sign."""
    return parsed_request(path, read_limited(path, LONGEST))


def parsed_request(path: Path, tables: dict[str, Any]) -> KeyRequest:
    with placed(path):
        return _request(path, table_of(_RequestTable, tables, path.name))


def _request(path: Path, table: _RequestTable) -> KeyRequest:
    name = check_name(table.name, path.name)
    identity, lasting = hexadecimal(table.identity, KEY, path.name, "identity"), _lasting(path, table, "lasting")
    signature = signature_in(table.signature, lasting, path.name, "signature")
    require(table.holds >= 0, path.name, "holds", table.holds, "must be at least 0")
    own = Certificate.from_pem(table.certificate, table.name) if table.certificate else None
    if own is not None:
        check_form(own, table.name)
    request = KeyRequest(name, identity, _signing_request(path, table), signature, own, holds=table.holds, lasting=lasting)
    if table.old_identity:
        old = hexadecimal(table.old_identity, KEY, path.name, "old_identity")
        old_lasting = _lasting(path, table, "old_lasting")
        consent = signature_in(table.consent, old_lasting, path.name, "consent")
        request = replace(request, old_identity=old, old_lasting=old_lasting, consent=consent)
    _check(path, request)
    return request


def request_in(folder: Path) -> KeyRequest:
    if not (folder / REQUEST).is_file():
        raise no_keys(str(folder))
    return read_request(folder / REQUEST)


def _check(path: Path, request: KeyRequest) -> None:
    if not request.public.is_signed(request.signature, Purpose.REQUEST, *request.signed_fields):
        raise _damaged(str(path), "the signature of its identity is wrong")
    successor = (request.name.encode(), request.identity, *((request.lasting,) if request.lasting else ()))
    old = PublicIdentity(request.old_identity, request.old_lasting)
    if request.old_identity and not old.is_signed(request.consent, Purpose.SUCCESSOR, *successor):
        raise _damaged(str(path), "the signature of the identity that it replaces is wrong")
    if request.certificate and request.certificate.public_key != request.tls_public_key:
        raise CertificateOfAnotherKey(request.name, str(path))


def _lasting(path: Path, table: _RequestTable, setting: str) -> bytes:
    text = getattr(table, setting)
    return decoded(text, LASTING, path.name, setting) if text else b""


def _signing_request(path: Path, table: _RequestTable) -> bytes:
    try:
        signing = x509.load_pem_x509_csr(table.signing_request.encode())
        is_valid = signing.is_signature_valid and signing.public_key() is not None
    except DAMAGED as problem:
        raise _damaged(str(path), "its signing_request is no PKCS #10 request in PEM") from problem
    if not is_valid:
        raise _damaged(str(path), "its signing_request is not signed by the key in it")
    return signing.public_bytes(Encoding.DER)


def _damaged(path: str, problem: str) -> Mistake:
    return Mistake(
        "{path} is no request that can be used: {problem}",
        hint="ask for it again; `securetm keys request` writes it",
        path=path,
        problem=problem,
    )
