"""How an organisation gets its keys, the first ones and those that follow. Commands call it; it asks nobody.

A home is a folder of one organisation: its keys, and the roster that it accepted. The coordinator has one, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from securetm.credentials.acceptance import KEYS
from securetm.credentials.certificate_errors import CertificateOfAnotherKey
from securetm.credentials.certificates import LONGEST, Certificate, check_form
from securetm.credentials.key_errors import KeysExist, KeysWait
from securetm.credentials.key_files import NEXT, REQUEST, Keys, Passphrase, ec_key, make_keys, pem_of, public_der
from securetm.credentials.key_requests import KeyRequest, announcing, make_request, request_in, write_request
from securetm.credentials.member_names import check_name
from securetm.credentials.strict_toml import bytes_of
from securetm.private_files import private_folder


def new_keys(home: Path, name: str, passphrase: Passphrase | None = None, holds: int = 0) -> KeyRequest:
    """Makes the first keys of an organisation in its home, and the request that lies beside them."""
    check_name(name, "the command", "NAME")
    folder = home / KEYS
    if (folder / REQUEST).exists():
        raise KeysExist(str(folder))
    private_folder(home)
    request = make_request(name, make_keys(folder, passphrase), holds=holds)
    write_request(folder / REQUEST, request)
    return request


def announced(home: Path, holds: int, passphrase: Passphrase | None) -> KeyRequest:
    """Changes how much the organisation says that it holds at least, in the request for its present or waiting keys."""
    folder = home / KEYS
    folder = folder / NEXT if (folder / NEXT / REQUEST).exists() else folder
    request = announcing(request_in(folder), Keys.open(folder, passphrase), holds)
    write_request(folder / REQUEST, request)
    return request


@dataclass(frozen=True)
class Replacement:
    """New keys of a member: what is to change. What is not named stays."""

    identity: bool = False
    tls_key_pem: bytes = field(default=b"", repr=False)  # of an authority of its own
    certificate: Certificate | None = None


def own_replacement(home: Path, certificate: Path, key: Path, passphrase: Passphrase | None) -> Replacement:
    """A certificate and key of an authority of the organisation's own, checked as far as possible without a roster."""
    name = request_in(home / KEYS).name
    read = Certificate.from_pem(bytes_of(certificate, LONGEST), name)
    check_form(read, name)
    private = ec_key(key, passphrase)
    if read.public_key != public_der(private):
        raise CertificateOfAnotherKey(name, str(key))
    return Replacement(tls_key_pem=pem_of(private), certificate=read)


def next_keys(home: Path, present: Keys, change: Replacement, passphrase: Passphrase | None) -> KeyRequest:
    """Makes keys that wait, beside the present ones, for a roster that names them. The present ones stay in use until then."""
    folder = home / KEYS / NEXT
    if (folder / REQUEST).exists():
        raise KeysWait(str(folder))
    keys = make_keys(folder, passphrase, identity=None if change.identity else present.identity, tls=change.tls_key_pem or None)
    known = request_in(home / KEYS)
    request = make_request(known.name, keys, certificate=change.certificate, replaced=present, holds=known.holds)
    write_request(folder / REQUEST, request)
    return request
