"""Each wrong certificate has a name of its own, whoever shows it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
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
from securetm.credentials.issuing import Issuing, authority_pem, open_authority, with_revoked
from securetm.credentials.keys import make_keys
from securetm.errors import Mistake

from .made import BOTH, NOW, Federation, federation, odd_certificate


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
        assert member_with(two.keys(name).certificate_pem, two.roster, NOW) == name
        assert check_own(name, two.keys(name), two.roster, NOW).name == name
    check_coordinator(two.keys("coordinator").certificate_pem, two.roster, NOW)
    assert check_own("coordinator", two.keys("coordinator"), two.roster, NOW).name == "coordinator"


def test_the_coordinator_is_no_party_and_a_party_no_coordinator(two: Federation) -> None:
    with pytest.raises(CertificateNotInRoster):
        member_with(two.keys("coordinator").certificate_pem, two.roster, NOW)
    with pytest.raises(NotTheCoordinator, match="north"):
        check_coordinator(two.keys("north").certificate_pem, two.roster, NOW)
    with pytest.raises(NotTheCoordinator):
        check_coordinator(odd_certificate(names=("coordinator",)).pem, two.roster, NOW)


@pytest.mark.parametrize(("days", "refusal"), [(366, CertificateExpired), (-2, CertificateNotYetValid)])
def test_time(two: Federation, days: int, refusal: type[CertificateRefused]) -> None:
    then = NOW + timedelta(days=days)
    with pytest.raises(refusal, match="clock says"):
        check_own("north", two.keys("north"), two.roster, then)
    with pytest.raises(refusal):
        member_with(two.keys("north").certificate_pem, two.roster, then)
    with pytest.raises(refusal):
        check_coordinator(two.keys("coordinator").certificate_pem, two.roster, then)


def test_a_replaced_certificate_is_revoked_and_a_renewed_one_is_not(two: Federation) -> None:
    old = two.keys("north").certificate_pem
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
        member_with(old.certificate_pem, roster, NOW)
    with pytest.raises(Mistake, match="there is no member called"):
        check_own("north", old, roster, NOW)


def test_strangers(two: Federation, tmp_path: Path) -> None:
    other = federation(tmp_path / "elsewhere", "north", called="other").accepted_by_all()
    with pytest.raises(CertificateOfAnotherFederation, match="other"):
        member_with(other.keys("north").certificate_pem, two.roster, NOW)
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
