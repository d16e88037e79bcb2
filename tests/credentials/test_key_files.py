"""Keys in files: for their owner alone, with a passphrase or without, and in no text."""

from __future__ import annotations

import os
import pickle
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from securetm.credentials.certificates import CertificateOfAnotherKey
from securetm.credentials.homes import KEYS, Replacement, new_keys, next_keys, own_replacement
from securetm.credentials.hybrid_identity import PublicIdentity, Purpose
from securetm.credentials.key_requests import make_request, read_request, write_request
from securetm.credentials.keys import IDENTITY, TLS, Keys, Passphrase, are_encrypted, make_keys
from securetm.credentials.strict_toml import encoded
from securetm.errors import BadSetting, Mistake, OpenToOthers

from .made import odd_certificate

SECRET = Passphrase("four random words")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    new_keys(tmp_path / "north", "north")
    return tmp_path / "north"


def test_files_and_folders_are_for_their_owner_alone(home: Path) -> None:
    modes = {stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home, home / KEYS)} == {0o700}


@pytest.mark.parametrize("name", [IDENTITY, TLS])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o622])
def test_a_key_that_others_may_open_is_refused(home: Path, name: str, mode: int) -> None:
    (home / KEYS / name).chmod(mode)
    with pytest.raises(OpenToOthers):
        Keys.open(home / KEYS)


def test_the_keys_sign_for_one_purpose(home: Path) -> None:
    keys = Keys.open(home / KEYS)
    signature = keys.sign(Purpose.HELLO, b"a", b"bc")
    assert keys.public.is_signed(signature, Purpose.HELLO, b"a", b"bc")
    assert not keys.public.is_signed(signature, Purpose.WELCOME, b"a", b"bc")
    assert not keys.public.is_signed(signature, Purpose.HELLO, b"ab", b"c")
    assert not PublicIdentity(b"short", keys.public.lasting).is_signed(signature, Purpose.HELLO, b"a", b"bc")


def test_a_passphrase_protects_both_keys(tmp_path: Path) -> None:
    made = make_keys(tmp_path / "keys", SECRET)
    plain = Ed25519PrivateKey.from_private_bytes(made.identity).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    stored = b"".join(path.read_bytes() for path in (tmp_path / "keys").iterdir())
    assert stored.count(b"BEGIN ENCRYPTED PRIVATE KEY") == 2
    assert made.identity not in stored
    assert plain not in stored
    assert are_encrypted(tmp_path / "keys")
    assert Keys.open(tmp_path / "keys", SECRET).identity == made.identity
    with pytest.raises(Mistake, match="is protected with a passphrase, and none"):
        Keys.open(tmp_path / "keys")
    with pytest.raises(Mistake, match="the passphrase does not open"):
        Keys.open(tmp_path / "keys", Passphrase("five random words"))


@pytest.mark.parametrize("text", ["", "short", "x" * 1001, "two\nlines of it", "with a \x07 bell"])
def test_a_passphrase_that_protects_nothing_is_refused(text: str) -> None:
    with pytest.raises(Mistake, match="the passphrase"):
        Passphrase(text)


def test_no_text_of_the_objects_shows_a_secret(tmp_path: Path) -> None:
    keys = make_keys(tmp_path / "keys", SECRET)
    change = Replacement(tls_key_pem=keys.tls_key_pem)
    for shown in (repr(keys), str(keys), f"{keys!s}", repr(SECRET), str(SECRET), repr(change), repr([keys, {"a": SECRET}])):
        assert SECRET.text not in shown
        assert repr(keys.identity)[2:-1] not in shown
        assert keys.identity.hex() not in shown
        assert "PRIVATE" not in shown


def test_keys_are_not_pickled(home: Path) -> None:
    with pytest.raises(TypeError, match="not copied"):
        pickle.dumps(Keys.open(home / KEYS))


@pytest.mark.parametrize("name", [IDENTITY, TLS])
@pytest.mark.parametrize(
    "content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"\xff" * 100]
)
def test_a_damaged_key_is_named(home: Path, name: str, content: bytes) -> None:
    (home / KEYS / name).write_bytes(content)
    with pytest.raises(Mistake, match="private key") as refused:
        Keys.open(home / KEYS)
    assert refused.value.facts()["path"].endswith(name)


def test_a_key_of_another_kind_is_refused(home: Path) -> None:
    for other in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP521R1())):
        (home / KEYS / TLS).write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        with pytest.raises(Mistake, match="P-256 or P-384"):
            Keys.open(home / KEYS)
    (home / KEYS / IDENTITY).write_bytes((home / KEYS / TLS).read_bytes())
    with pytest.raises(Mistake, match="Ed25519"):
        Keys.open(home / KEYS)


def test_missing_and_existing_keys_are_named(home: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="there are no keys in"):
        Keys.open(tmp_path / "elsewhere")
    with pytest.raises(Mistake, match="there are keys in"):
        new_keys(home, "north")
    (home / KEYS / TLS).unlink()
    with pytest.raises(Mistake, match="there are no keys in"):
        Keys.open(home / KEYS)


@pytest.mark.parametrize("name", ["North Clinic", "../up", "a\x1b[31m", "", "-a", "é", "x" * 64])
def test_names_that_fit_no_folder_or_certificate_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadSetting):
        new_keys(tmp_path / "home", name)
    assert not (tmp_path / "home").exists()


def test_a_request_is_what_its_keys_signed(home: Path, tmp_path: Path) -> None:
    keys, path = Keys.open(home / KEYS), tmp_path / "north.request"
    request = make_request("north", keys)
    write_request(path, request)
    assert read_request(path) == request
    text = path.read_text()
    assert "PRIVATE" not in text
    other = make_request("north", make_keys(tmp_path / "other", None))
    for changed in (
        text.replace('"north"', '"south"'),
        text.replace(keys.public_identity.hex(), other.identity.hex()),
        text.replace(encoded(request.signature), encoded(other.signature)),
        text.replace(encoded(request.lasting), encoded(other.lasting)),
        text.replace("-----BEGIN CERTIFICATE REQUEST", "-----BEGIN"),
        text + f'old_identity = "{"00" * 32}"\nconsent = "{"00" * 64}"\n',
    ):
        path.write_text(changed)
        with pytest.raises(Mistake, match="is no request that can be used"):
            read_request(path)


def test_a_request_binds_its_tls_key_and_is_signed_by_it(home: Path, tmp_path: Path) -> None:
    """Another's TLS key in it would let that other answer for the member; one that nobody holds would lock the member out."""
    keys, path = Keys.open(home / KEYS), tmp_path / "request.toml"
    request = make_request("north", keys)
    new_keys(tmp_path / "other", "other")
    other = make_request("north", Keys.open(tmp_path / "other" / KEYS)).signing_request
    write_request(path, replace(request, signing_request=other))
    with pytest.raises(Mistake, match="signature of its identity"):
        read_request(path)
    forged = bytearray(request.signing_request)
    forged[-1] ^= 1  # in its signature
    unsigned = replace(request, signing_request=bytes(forged))
    write_request(path, replace(unsigned, signature=keys.sign(Purpose.REQUEST, *unsigned.signed_fields)))
    with pytest.raises(Mistake, match="not signed by the key in it"):
        read_request(path)


def test_a_consent_of_nobody_is_refused(home: Path, tmp_path: Path) -> None:
    """The new identity signs the request, and the consent in it is of a third key."""
    keys, third = make_keys(tmp_path / "new", None), make_keys(tmp_path / "third", None)
    request = make_request("north", keys, replaced=third)
    path = tmp_path / "r"
    write_request(path, request)
    own = keys.sign(Purpose.SUCCESSOR, b"north", request.identity, request.lasting)
    path.write_text(path.read_text().replace(encoded(request.consent), encoded(own)))
    with pytest.raises(Mistake, match="replaces"):
        read_request(path)


def test_an_own_certificate_has_to_fit_its_key(home: Path, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    pem, private = tmp_path / "own.pem", tmp_path / "own-key.pem"
    pem.write_bytes(odd_certificate(key, organisation="Clinic").pem)
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    private.chmod(0o600)
    assert own_replacement(home, pem, private, None).certificate is not None
    private.chmod(0o644)
    with pytest.raises(OpenToOthers):
        own_replacement(home, pem, private, None)
    private.chmod(0o600)
    pem.write_bytes(odd_certificate().pem)
    with pytest.raises(CertificateOfAnotherKey):
        own_replacement(home, pem, private, None)


def test_a_folder_that_others_may_open_is_refused(home: Path) -> None:
    (home / KEYS).chmod(0o750)
    with pytest.raises(OpenToOthers):
        Keys.open(home / KEYS)


def test_new_keys_do_not_replace_keys_that_wait(home: Path) -> None:
    next_keys(home, Keys.open(home / KEYS), Replacement(), None)
    with pytest.raises(Mistake, match="wait for a roster already"):
        next_keys(home, Keys.open(home / KEYS), Replacement(), None)


def test_a_full_disk_leaves_no_half_made_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its request, a folder holds no keys that anybody knows of, so `new` may begin again."""

    def full(path: Path, request: object) -> None:
        raise OSError(28, os.strerror(28), str(path))

    with monkeypatch.context() as patch:
        patch.setattr("securetm.credentials.homes.write_request", full)
        with pytest.raises(OSError, match="space"):
            new_keys(tmp_path / "north", "north")
    new_keys(tmp_path / "north", "north")
    assert Keys.open(tmp_path / "north" / KEYS).identity
