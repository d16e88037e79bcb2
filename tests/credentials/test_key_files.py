"""Keys in files, for their owner alone, and certificates: each wrong one has a name of its own."""

from __future__ import annotations

import os
import pickle
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from securetm.credentials.certificates import (
    Certificate,
    CertificateExpired,
    CertificateNotEc,
    CertificateNotForTls,
    CertificateNotInRoster,
    CertificateNotYetValid,
    CertificateOfAnotherFederation,
    CertificateOfAnotherKey,
    CertificateRefused,
    CertificateReplaced,
    CertificateRevoked,
    CertificateUnreadable,
    CertificateWeak,
    IdentityOfAnotherKey,
    NotTheCoordinator,
    check_form,
)
from securetm.credentials.diagnosis import check_coordinator, check_own, member_with
from securetm.credentials.homes import KEYS, Replacement, new_keys, next_keys, own_replacement
from securetm.credentials.hybrid_identity import PublicIdentity, Purpose
from securetm.credentials.issuing import Issuing, authority_pem, open_authority, with_revoked
from securetm.credentials.key_requests import make_request, read_request, request_in, write_request
from securetm.credentials.keys import CERTIFICATE, IDENTITY, REQUEST, TLS, Keys, Passphrase, are_encrypted, make_keys
from securetm.credentials.roster import OwnKeysRevoked
from securetm.credentials.strict_toml import encoded
from securetm.errors import BadSetting, Mistake, OpenToOthers

from .made import BOTH, NOW, Federation, federation, odd_certificate

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


@pytest.mark.parametrize("name", [IDENTITY, TLS, REQUEST])
def test_of_keys_the_file_that_is_gone_is_named(home: Path, name: str) -> None:
    (home / KEYS / name).unlink()
    opened = request_in if name == REQUEST else Keys.open
    with pytest.raises(Mistake, match=f"of the keys in .*, {name} is gone") as refused:
        opened(home / KEYS)
    assert "back-up" in refused.value.advice()


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


# ---- certificates ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path: Path) -> Federation:
    return federation(tmp_path, "east", "north").accepted_by_all()


RSA = rsa.generate_private_key(65537, 2048)
FORMS = [
    (odd_certificate(RSA), CertificateNotEc),
    (odd_certificate(ed25519.Ed25519PrivateKey.generate(), signer=RSA), CertificateNotEc),
    (odd_certificate(ec.generate_private_key(ec.SECP521R1())), CertificateWeak),
    (odd_certificate(ec.generate_private_key(ec.SECP256K1())), CertificateWeak),
    (odd_certificate(hashed=hashes.SHA224()), CertificateWeak),
    (odd_certificate(is_authority=True), CertificateNotForTls),
    (odd_certificate(signs=False), CertificateNotForTls),
    (odd_certificate(uses=[ExtendedKeyUsageOID.SERVER_AUTH]), CertificateNotForTls),
    (odd_certificate(uses=[ExtendedKeyUsageOID.CODE_SIGNING]), CertificateNotForTls),
    (odd_certificate(names=()), CertificateNotForTls),
]


@pytest.mark.parametrize(("certificate", "refusal"), FORMS)
def test_a_certificate_that_no_member_may_have(
    certificate: Certificate, refusal: type[CertificateRefused], two: Federation
) -> None:
    with pytest.raises(refusal) as refused:
        check_form(certificate, "north")
    assert refused.value.advice()
    with pytest.raises(refusal):
        member_with(certificate.pem, two.roster, NOW)


@pytest.mark.parametrize("uses", [(), BOTH])
def test_a_good_certificate_of_another_authority_is_fine(uses: Any) -> None:
    fine = odd_certificate(
        organisation="Clinic", names=("10.0.0.1", "north.example.org"), **({"uses": uses} if uses == () else {})
    )
    check_form(fine, "north")
    assert fine.names == ("north.example.org", "10.0.0.1")
    assert fine.federation == ""


@pytest.mark.parametrize("pem", ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "A" * 20_000])
def test_what_is_no_certificate(pem: str, two: Federation) -> None:
    with pytest.raises(CertificateUnreadable):
        member_with(pem, two.roster, NOW)


def test_every_single_byte_of_a_certificate_counts(two: Federation) -> None:
    """Damage at any place ends in a refusal by name, and never in another error."""
    der = two.roster.member("north").certificate.der
    for at in range(len(der)):
        damaged = der[:at] + bytes([der[at] ^ 0x41]) + der[at + 1 :]
        with pytest.raises(CertificateRefused):
            member_with(_pem(damaged), two.roster, NOW)


def _pem(der: bytes) -> bytes:
    import base64

    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"


def test_a_member_is_known_by_its_certificate(two: Federation) -> None:
    for name in ("east", "north"):
        assert member_with((two.keys(name).folder / CERTIFICATE).read_bytes(), two.roster, NOW) == name
        assert check_own(name, two.keys(name), two.roster, NOW).name == name
    check_coordinator((two.keys("coordinator").folder / CERTIFICATE).read_bytes(), two.roster, NOW)
    assert check_own("coordinator", two.keys("coordinator"), two.roster, NOW).name == "coordinator"


def test_the_coordinator_is_no_party_and_a_party_no_coordinator(two: Federation) -> None:
    with pytest.raises(CertificateNotInRoster):
        member_with((two.keys("coordinator").folder / CERTIFICATE).read_bytes(), two.roster, NOW)
    with pytest.raises(NotTheCoordinator, match="north"):
        check_coordinator((two.keys("north").folder / CERTIFICATE).read_bytes(), two.roster, NOW)
    with pytest.raises(NotTheCoordinator):
        check_coordinator(odd_certificate(names=("coordinator",)).pem, two.roster, NOW)


@pytest.mark.parametrize(("days", "refusal"), [(366, CertificateExpired), (-2, CertificateNotYetValid)])
def test_time(two: Federation, days: int, refusal: type[CertificateRefused]) -> None:
    then = NOW + timedelta(days=days)
    with pytest.raises(refusal, match="clock says"):
        check_own("north", two.keys("north"), two.roster, then)
    with pytest.raises(refusal):
        member_with((two.keys("north").folder / CERTIFICATE).read_bytes(), two.roster, then)
    with pytest.raises(refusal):
        check_coordinator((two.keys("coordinator").folder / CERTIFICATE).read_bytes(), two.roster, then)


def test_a_replaced_certificate_is_revoked_and_a_renewed_one_is_not(two: Federation) -> None:
    old = (two.keys("north").folder / CERTIFICATE).read_bytes()
    authority = open_authority(two.home("coordinator"), "demo", None, NOW)
    later = Issuing(NOW + timedelta(days=340), authority=authority)
    renewed = later.renew(two.roster)
    with pytest.raises(CertificateReplaced):
        member_with(old, renewed, NOW)
    assert renewed.revoked == frozenset()
    assert renewed.member("north").certificate.until > two.roster.member("north").certificate.until
    roster = two.enrol(two.rotated("north"))
    with pytest.raises(CertificateRevoked, match="roster 2"):
        member_with(old, roster, NOW)


def test_a_revoked_member_is_told_so(two: Federation) -> None:
    old = two.keys("north")
    roster = two.change(lambda before: with_revoked(before, "north"))
    assert roster.members == ("east",)
    with pytest.raises(CertificateRevoked):
        member_with((old.folder / CERTIFICATE).read_bytes(), roster, NOW)
    with pytest.raises(OwnKeysRevoked, match="the keys of north were revoked"):
        check_own("north", old, roster, NOW)


def test_strangers(two: Federation, tmp_path: Path) -> None:
    other = federation(tmp_path / "elsewhere", "north", called="other").accepted_by_all()
    with pytest.raises(CertificateOfAnotherFederation, match="other"):
        member_with((other.keys("north").folder / CERTIFICATE).read_bytes(), two.roster, NOW)
    with pytest.raises(CertificateNotInRoster):
        member_with(odd_certificate().pem, two.roster, NOW)
    with pytest.raises(CertificateExpired):
        member_with(odd_certificate(until=NOW - timedelta(hours=1)).pem, two.roster, NOW)
    with pytest.raises(CertificateNotInRoster) as refused:
        member_with(odd_certificate(names=(".".join(["x" * 60] * 3),)).pem, two.roster, NOW)
    assert len(refused.value.name) <= 100


def test_keys_that_do_not_fit_the_roster(two: Federation, tmp_path: Path) -> None:
    strange = make_keys(tmp_path / "strange", None)
    with pytest.raises(IdentityOfAnotherKey):
        check_own("north", strange, two.roster, NOW)
    half = make_keys(tmp_path / "half", None, identity=two.keys("north").identity)
    with pytest.raises(CertificateOfAnotherKey):
        check_own("north", half, two.roster, NOW)


def test_an_authority_that_has_ended_issues_nothing(two: Federation) -> None:
    with pytest.raises(Mistake, match="the certificate authority in"):
        open_authority(two.home("coordinator"), "demo", None, NOW + timedelta(days=3660))
    assert b"BEGIN CERTIFICATE" in authority_pem(two.home("coordinator"))
    assert authority_pem(two.home("north")) == b""
