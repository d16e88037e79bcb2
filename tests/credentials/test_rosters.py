"""Every way of tampering with a roster ends in its named error, and what is hostile takes no time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.credentials.certificates import CertificateNotEc, CertificateUnreadable
from securetm.credentials.keys import fingerprint, fingerprint_of, parsed_fingerprint, same_fingerprint
from securetm.credentials.roster import (
    LONGEST_ROSTER,
    MOST_MEMBERS,
    MOST_REVOKED,
    BadRosterSignature,
    DuplicateMember,
    FederationRoster,
    MemberRevoked,
    check_address,
    read_roster,
    roster_text,
)
from securetm.errors import BadSetting, Mistake, Misuse, NotFound, SettingMistakes, UnreadableToml

from ..effort import worked
from .made import Federation, odd_certificate, signed_federation


@pytest.fixture
def three(tmp_path: Path) -> Federation:
    return signed_federation(tmp_path)


def read(three: Federation, text: str) -> FederationRoster:
    path = three.folder / "changed.toml"
    path.write_text(text, "utf-8")
    return read_roster(path)


# ---- the file --------------------------------------------------------------------------------------------------------


def test_a_roster_is_read_as_it_was_written(three: Federation) -> None:
    again = read_roster(three.folder / "roster.toml")
    assert again == three.roster
    assert again.digest == three.roster.digest
    assert again.signatures == three.roster.signatures
    assert again.unsigned == ()
    assert roster_text(again) == (three.folder / "roster.toml").read_text()
    assert again.members == ("east", "north", "south")
    assert set(again.keys) == set(again.members)


def test_the_order_in_the_file_changes_nothing(three: Federation) -> None:
    blocks = roster_text(three.roster).split("\n\n")
    members = [block for block in blocks if block.startswith("[[member]]")]
    others = [block for block in blocks if not block.startswith("[[member]]")]
    assert read(three, "\n\n".join([*others, *reversed(members)])) == three.roster


def entry(text: str, name: str) -> str:
    """The [[member]] block of that name."""
    return next(block for block in text.split("\n\n") if block.startswith(f'[[member]]\nname = "{name}"'))


def north(text: str) -> str:
    return entry(text, "north")


def swapped(text: str) -> str:
    """The identities of two members exchanged."""
    first, second = (re.search('identity = "(.*)"', entry(text, name))[1] for name in ("east", "north"))  # type: ignore[index]
    return text.replace(first, "??").replace(second, first).replace("??", second)


def renamed(text: str, name: str) -> str:
    """North under another name, in its entry and its signature."""
    return text.replace('"north"', name)


TAMPERED: dict[str, tuple[Callable[[str], str], type[Misuse]]] = {
    "two identities are exchanged": (swapped, BadRosterSignature),
    "a member is taken out": (lambda t: t.replace(north(t) + "\n\n", ""), BadRosterSignature),
    "a member is added twice": (
        lambda t: t.replace(north(t), north(t) + "\n\n" + north(t)),
        DuplicateMember,
    ),
    "another version": (lambda t: t.replace("version = 1", "version = 2"), BadRosterSignature),
    "another federation": (lambda t: t.replace('"demo"', '"other"'), BadRosterSignature),
    "a revocation is added": (lambda t: t.replace("version = 1", f'version = 1\nrevoked = ["{"1" * 60}"]'), BadRosterSignature),
    "a signature is another's": (lambda t: t.replace('member = "east"', 'member = "south"'), DuplicateMember),
    "a signature of a stranger": (lambda t: t.replace('member = "east"', 'member = "west"'), Mistake),
    "one digit of a signature": (
        lambda t: re.sub(
            r'(\[\[signature\]\]\nmember = "east"\nsignature = \'\'\'\n.)(.)', lambda m: m[1] + "BA"[m[2] == "B"], t
        ),
        BadRosterSignature,
    ),
    "a certificate that is none": (lambda t: t.replace("MII", "MXX"), CertificateUnreadable),
    "a name that is a path": (lambda t: renamed(t, '"../north"'), BadSetting),
    "a coordinator of another name": (lambda t: t.replace('name = "coordinator"', 'name = "boss"'), BadSetting),
    "an unknown setting": (lambda t: t.replace("version = 1", "version = 1\nadress = 3"), NotFound),
    "a version that is a text": (lambda t: t.replace("version = 1", 'version = "1"'), BadSetting),
    "no coordinator": (lambda t: re.sub(r"\[coordinator\].*?(?=\[\[member)", "", t, flags=re.S), BadSetting),
    "revoked that is no fingerprint": (lambda t: t.replace("version = 1", 'version = 1\nrevoked = ["abc"]'), BadSetting),
    "half of the file": (lambda t: t[: len(t) // 2], UnreadableToml),
    "nothing": (lambda t: "", SettingMistakes),
    "saved with a byte-order mark": (lambda t: f"\ufeff{t}", UnreadableToml),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_roster_that_was_tampered_with_is_refused_by_name(three: Federation, how: str) -> None:
    change, refusal = TAMPERED[how]
    changed = change(roster_text(three.roster))
    assert changed != roster_text(three.roster)
    with pytest.raises(refusal) as refused:
        read(three, changed)
    assert refused.type is refusal
    assert refused.value.advice()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe" * 100,
        b"[" * 3_000_000,
        b"a = " + b"[" * 900 + b"]" * 900,
        b"a." * 400_000 + b"a = 1",
        b"a = {" + b"b.c.d.e.f.g.h.i={" * 50,
        b"\n".join(b"k%d = 1" % n for n in range(200_000)),
        b"[[member]]\n" + b"\n".join(b"k%d = 1" % n for n in range(200_000)),
        b"[[member]]\n" * 300_000,
        b"x = '''" + b"\n" * 3_000_000,
        b"#" * 900 + b"\n" + b"\0" * 100,
        b"0" * (LONGEST_ROSTER + 1),
    ],
    ids=range(11),
)
def test_a_hostile_file_is_refused_in_no_time(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "roster.toml"
    path.write_bytes(content)

    def refused() -> None:
        with pytest.raises((Mistake, UnreadableToml, BadSetting, SettingMistakes)):
            read_roster(path)

    assert worked(refused) < 20


# ---- what a roster may hold ------------------------------------------------------------------------------------------


def test_a_roster_has_limits(three: Federation) -> None:
    member = three.roster.parties[0]
    with pytest.raises(BadSetting, match="at most 2,000"):
        replace(three.roster, parties=tuple(replace(member, name=f"n{place}") for place in range(MOST_MEMBERS + 1)))
    with pytest.raises(BadSetting, match="at most 20,000"):
        replace(three.roster, revoked=frozenset(map(str, range(MOST_REVOKED + 1))))


def test_no_two_members_share_keys(three: Federation) -> None:
    east, north, south = three.roster.parties
    for shared, what in (
        (replace(north, identity=east.identity), "identity"),
        (replace(north, certificate=east.certificate), "TLS key"),
    ):
        with pytest.raises(DuplicateMember, match=f"the same {what}: east, north"):
            replace(three.roster, parties=(east, shared, south), signatures={})


@pytest.mark.parametrize("what", [0, 1, 2])
def test_who_is_revoked_is_not_listed(three: Federation, what: int) -> None:
    revoked = sorted(three.roster.member("north").revocable)[what]
    with pytest.raises(MemberRevoked, match="north"):
        replace(three.roster, revoked=frozenset({revoked}), signatures={})


@pytest.mark.parametrize(
    "address", ["", "hub", ":7443", "hub:0", "hub:65536", "hub:x", "hub:７", "::1:7443", "a b:1", "a/b:1", "hub:1:2"]
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(BadSetting, match="HOST:PORT"):
        check_address(address, "the roster")


def test_fingerprints_are_read_as_people_type_them() -> None:
    shown = fingerprint_of(b"key")
    assert re.fullmatch(r"(\d{5} ){11}\d{5}", shown)
    digits = shown.replace(" ", "")
    for typed in (digits, shown.replace(" ", "-"), f" {shown}\n", shown.replace(" ", "\n", 3)):
        assert parsed_fingerprint(typed) == shown
        assert same_fingerprint(typed, shown)
    for typed in (
        "",
        digits[:-1],
        digits + "1",
        shown.replace("1", "x"),
        "٣" * 60,
        digits[:-1] + str((int(digits[-1]) + 1) % 10),
    ):
        assert not same_fingerprint(typed, shown)
    assert fingerprint(bytes(32)) == " ".join(["00000"] * 12)


def test_a_file_without_end_is_not_read() -> None:
    with pytest.raises(Mistake, match="is not read"):
        read_roster(Path("/dev/zero"))


def test_a_member_needs_a_certificate_of_the_right_form(three: Federation) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa

    east, other, south = three.roster.parties
    odd = odd_certificate(rsa.generate_private_key(65537, 2048))
    with pytest.raises(CertificateNotEc, match="north"):
        replace(three.roster, parties=(east, replace(other, certificate=odd), south), signatures={})
