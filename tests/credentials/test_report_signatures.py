"""A party's signature under a report: for these bytes, this name and this run, by a key that a roster still has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from securetm.credentials.homes import KEYS
from securetm.credentials.hybrid_identity import Purpose
from securetm.credentials.issuing import with_revoked
from securetm.credentials.keys import fingerprint_of
from securetm.credentials.report_signatures import ReportSignature, SignedFileChanged, Signer, home_of, read_signature, verified
from securetm.errors import BadSetting, Mistake, NoSuchPath

from .made import Federation, federation


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    return federation(tmp_path_factory.mktemp("federation"), "east", "north")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "page.pdf").write_bytes(b"what was done with the documents")
    return tmp_path / "page.pdf"


def signed(page: Path, of: Federation, name: str = "east", **changes: str) -> Path:
    """A signature by that party; with changes, it is made for something else than it says."""
    found = Signer.open(of.home(name), None).sign(page.read_bytes(), "trial", "ab" * 32)
    path = page.with_name("page.pdf.sig")
    path.write_text(replace(found, **changes).text(), "utf-8")
    return path


def test_a_roster_a_request_and_a_fingerprint_say_whose_signature_it_is(page: Path, made: Federation) -> None:
    signature, identity = signed(page, made), made.requests["east"].identity
    for trusted in (made.folder / "roster.toml", made.home("east") / KEYS / "request.toml", fingerprint_of(identity)):
        found = verified(page, signature, str(trusted))
        assert (found.name, found.role, found.run, found.identity) == ("east", "party", "trial", identity)
    assert home_of(made.home("east") / KEYS) == home_of(made.home("east")) == made.home("east")


def test_a_changed_file_is_refused(page: Path, made: Federation) -> None:
    signature = signed(page, made)
    page.write_bytes(page.read_bytes() + b".")
    with pytest.raises(SignedFileChanged, match=r"page\.pdf is not the file that was signed"):
        verified(page, signature, str(made.folder / "roster.toml"))
    with pytest.raises(NoSuchPath):
        verified(page.with_name("other.pdf"), signature, str(made.folder / "roster.toml"))


def test_the_key_of_another_is_refused(page: Path, made: Federation) -> None:
    signature = signed(page, made)
    for trusted in (made.home("north") / KEYS / "request.toml", fingerprint_of(made.requests["north"].identity)):
        with pytest.raises(Mistake, match="in the name of east"):
            verified(page, signature, str(trusted))
    north = Signer(made.keys("north"), "east").sign(page.read_bytes(), "trial", "ab" * 32)
    signature.write_text(north.text(), "utf-8")
    with pytest.raises(Mistake, match="in the name of east"):
        verified(page, signature, str(made.folder / "roster.toml"))
    signature.write_text(Signer(made.keys("north"), "west").sign(page.read_bytes(), "trial", "").text(), "utf-8")
    with pytest.raises(Mistake, match="west"):
        verified(page, signature, str(made.folder / "roster.toml"))


@pytest.mark.parametrize("changes", [{"run": "another"}, {"run_digest": "cd" * 32}])
def test_a_signature_says_of_which_run_it_is(changes: dict[str, str], page: Path, made: Federation) -> None:
    with pytest.raises(Mistake, match="the signature of east"):
        verified(page, signed(page, made, **changes), str(made.folder / "roster.toml"))


def test_a_signature_for_another_purpose_is_refused(page: Path, made: Federation) -> None:
    good = read_signature(signed(page, made))
    other = made.keys("east").sign(Purpose.CONSENT, *good.signed_fields)
    page.with_name("page.pdf.sig").write_text(replace(good, signature=other).text(), "utf-8")
    with pytest.raises(Mistake, match="the signature of"):
        verified(page, page.with_name("page.pdf.sig"), str(made.folder / "roster.toml"))


def test_a_coordinator_does_not_sign_and_its_signature_is_refused(page: Path, made: Federation) -> None:
    with pytest.raises(Mistake, match="coordinator signs as coordinator"):
        Signer.open(made.home("coordinator"), None)
    with pytest.raises(Mistake, match="east signs as coordinator"):
        verified(page, signed(page, made, role="coordinator"), str(made.folder / "roster.toml"))


def test_a_revoked_key_is_refused(page: Path, tmp_path: Path) -> None:
    own = federation(tmp_path / "own", "east", "north", "south")
    signature = signed(page, own)
    own.change(lambda old: with_revoked(old, "east"))
    with pytest.raises(Mistake, match="in the name of east is revoked"):
        verified(page, signature, str(own.folder / "roster.toml"))


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("format = 2", "format = 3"),
        ('role = "party"', "role = 1"),
        ('sha256 = "', 'sha256 = "zz'),
        ('name = "east"', 'name = "../x"'),
    ],
)
def test_a_damaged_signature_is_refused_with_its_place(line: str, instead: str, page: Path, made: Federation) -> None:
    signature = signed(page, made)
    text = signature.read_text("utf-8")
    assert line in text
    signature.write_text(text.replace(line, instead), "utf-8")
    with pytest.raises(BadSetting):
        read_signature(signature)


def test_what_is_signed_is_all_that_the_signature_says(page: Path, made: Federation) -> None:
    """Whoever adds a field signs it, too."""
    found: ReportSignature = read_signature(signed(page, made))
    said = {name for name in vars(found) if name not in ("identity", "lasting", "signature")}  # a signature binds its own key
    assert len(found.signed_fields) == len(said)
