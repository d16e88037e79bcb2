"""Rosters: how versions change, the published vectors, and every way of tampering ends in its named error."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.credentials.certificates import CertificateNotEc, CertificateUnreadable, IdentityOfAnotherKey
from securetm.credentials.homes import accept, check_accepted
from securetm.credentials.issuing import Issuing, with_revoked, without_member
from securetm.credentials.key_requests import make_request
from securetm.credentials.keys import (
    CERTIFICATE,
    Keys,
    fingerprint,
    fingerprint_of,
    make_keys,
    parsed_fingerprint,
    same_fingerprint,
)
from securetm.credentials.roster import (
    LONGEST_ROSTER,
    MOST_MEMBERS,
    MOST_REVOKED,
    AnotherBuild,
    BadRosterSignature,
    DuplicateMember,
    FederationRoster,
    MemberRevoked,
    check_address,
    read_roster,
    roster_text,
    write_roster,
)
from securetm.errors import BadSetting, Mistake, Misuse, NotFound, SecuretmError, SettingMistakes, UnreadableToml
from securetm.version import build_digest, sources

from ..cli.conftest import securetm
from ..effort import worked
from ..federation.conftest import keys as trial_keys  # noqa: F401 - a fixture
from ..federation.joined import NAMES, PLAN, Organisations
from ..quick_part import quick
from .made import NOW, Federation, odd_certificate, signed_federation
from .make_vectors import path, text


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


# ---- versions --------------------------------------------------------------------------------------------------------------


# ---- changes by the operator -----------------------------------------------------------------------------------------


def test_a_member_comes_and_leaves(three: Federation) -> None:
    west = make_request("west", make_keys(three.folder / "west" / "keys", None))
    assert three.enrol(west).members == ("east", "north", "south", "west")
    assert three.roster.version == 2
    assert three.change(lambda old: without_member(old, "east")).members == ("north", "south", "west")
    assert three.roster.version == 3
    assert three.enrol(three.requests["east"]).members == ("east", "north", "south", "west")  # with the same keys
    with pytest.raises(Mistake, match="says so already"):
        three.enrol(three.requests["east"])
    with pytest.raises(Mistake, match="there is no member called"):
        three.change(lambda old: without_member(old, "nobody"))
    with pytest.raises(BadSetting, match="cannot leave"):
        three.change(lambda old: without_member(old, "coordinator"))


def test_nobody_takes_a_members_place(three: Federation) -> None:
    stranger = make_request("north", make_keys(three.folder / "stranger", None))
    with pytest.raises(Mistake, match="has another identity than the roster of"):
        three.enrol(stranger)
    three.change(lambda old: with_revoked(old, "north"))
    assert three.enrol(stranger).member("north").identity == stranger.identity
    with pytest.raises(Mistake, match="is for a key that federation"):
        three.enrol(three.requests["north"])


def test_a_fingerprint_is_revoked(three: Federation) -> None:
    lost = fingerprint_of(three.requests["north"].tls_public_key)
    roster = three.change(lambda old: with_revoked(old, lost.replace(" ", "")))
    assert roster.members == ("east", "south")
    assert lost in roster.revoked
    roster = three.change(lambda old: with_revoked(old, fingerprint_of(b"a key that nobody here has")))
    assert roster.members == ("east", "south")


def test_without_an_authority_a_certificate_is_needed(three: Federation) -> None:
    west = make_request("west", make_keys(three.folder / "west" / "keys", None))
    with pytest.raises(Mistake, match="brings no certificate, and no authority is"):
        Issuing(NOW).enrol(three.roster, [west])


def test_the_coordinator_moves(three: Federation) -> None:
    roster = three.change(lambda old: three.operator.enrol(old, (), "[::1]:9000"))
    assert roster.address == "[::1]:9000"
    assert roster.coordinator.certificate.names == ("coordinator", "::1")


# ---- who accepts what ------------------------------------------------------------------------------------------------


def test_only_an_accepted_roster_counts(three: Federation) -> None:
    check_accepted(three.home("north"), three.roster)
    new = three.enrol(three.rotated("south"))
    with pytest.raises(Mistake, match="is not accepted here, and not every"):
        check_accepted(three.home("north"), new)
    accept(three.home("north"), new)
    check_accepted(three.home("north"), new)


def test_an_older_roster_is_refused(three: Federation) -> None:
    old = three.roster
    three.enrol(three.rotated("south"))
    three.accepted_by_all()
    for refuse in (check_accepted, accept):
        with pytest.raises(Mistake, match="was accepted here before"):
            refuse(three.home("north"), old)
    write_roster(three.folder / "roster.toml", old)
    with pytest.raises(Mistake, match="was accepted here before"):
        three.operator.read()


def test_a_second_roster_of_one_version_is_refused(three: Federation) -> None:
    other = replace(three.roster, address="evil.example.org:1", signatures={})
    for refuse in (check_accepted, accept):
        with pytest.raises(Mistake, match="two different rosters of federation"):
            refuse(three.home("north"), other)


def test_another_federation_is_refused(three: Federation) -> None:
    other = replace(three.roster, federation="other", version=7, signatures={})
    for refuse in (check_accepted, accept):
        with pytest.raises(Mistake, match="and here keys are for federation"):
            refuse(three.home("north"), other)


def test_a_revocation_is_not_taken_back(three: Federation) -> None:
    three.change(lambda old: with_revoked(old, "south"))
    accept(three.home("north"), three.roster)
    back = replace(three.roster, version=9, revoked=frozenset(), signatures={})
    with pytest.raises(Mistake, match="3 keys"):
        accept(three.home("north"), back)


def test_everybodys_signature_is_as_good_as_an_answer(three: Federation) -> None:
    """All have signed: the new roster is accepted without a question. Without one signature it is not, whosever is missing."""
    west = make_request("west", make_keys(three.folder / "west" / "keys", None))
    new = three.enrol(west)
    keys = {name: three.keys(name) for name in ("east", "north", "south")}
    keys["west"] = Keys.open(three.folder / "west" / "keys")
    whole = new
    for name, key in keys.items():
        whole = whole.signed_by(name, key)
    for missing in keys:
        partial = replace(new, signatures={name: one for name, one in whole.signatures.items() if name != missing})
        with pytest.raises(Mistake, match="is not accepted here, and not every"):
            check_accepted(three.home("north"), partial)
    check_accepted(three.home("north"), whole)
    check_accepted(three.home("north"), new)  # it is the accepted one now


def test_a_roster_with_a_strangers_keys_under_my_name_is_refused(three: Federation) -> None:
    """A request of another came to the operator under north's name. North finds it before it trusts the roster."""
    east, north, south = three.roster.parties
    stranger = replace(north, identity=east.identity[::-1])
    roster = replace(three.roster, version=2, parties=(east, stranger, south), signatures={})
    with pytest.raises(IdentityOfAnotherKey):
        accept(three.home("north"), roster)
    without = replace(three.roster, version=2, parties=(east, south), signatures={})
    with pytest.raises(Mistake, match="there is no member called"):
        accept(three.home("north"), without)


# ---- rotation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("identity", [False, True])
def test_old_keys_serve_until_the_new_roster_is_accepted(three: Federation, identity: bool) -> None:
    before = three.keys("north")
    new = three.enrol(three.rotated("north", identity))
    assert three.keys("north").identity == before.identity
    assert three.keys("north").tls_key_pem == before.tls_key_pem
    accept(three.home("north"), new)
    after = three.keys("north")
    assert (after.identity == before.identity) is not identity
    assert after.tls_key_pem != before.tls_key_pem
    assert (after.folder / CERTIFICATE).read_bytes() == new.member("north").certificate.pem
    assert sorted(path.name for path in (three.home("north") / "keys").iterdir()) == sorted(
        ["first-identity.pem", "identity.pem", "tls.pem", "certificate.pem", "request.toml"]
    )


def test_the_coordinator_rotates(three: Federation) -> None:
    before = three.keys("coordinator")
    three.rotated("coordinator", identity=True)
    new = three.enrol()
    assert three.keys("coordinator").public_identity == new.coordinator.identity != before.public_identity
    assert new.signatures.keys() == {"coordinator"}


@pytest.mark.parametrize("identity", quick([False, True], True))
@pytest.mark.parametrize("ends_at", quick(range(12), 2, 5, 8))
def test_a_crash_while_keys_are_replaced_leaves_one_set(
    three: Federation, monkeypatch: pytest.MonkeyPatch, ends_at: int, identity: bool
) -> None:
    """The process ends before the n-th change of a name on disk. The next check puts everything in its place."""
    new = three.enrol(three.rotated("north", identity))
    moves = iter(range(100))
    kept = Path.replace, Path.unlink

    def move(path: Path, *to: Any, how: Any, **more: Any) -> Any:
        if next(moves) == ends_at:
            raise KeyboardInterrupt
        return how(path, *to, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *given: move(*given, how=kept[0]))
        patch.setattr(Path, "unlink", lambda *given, **more: move(*given, how=kept[1], **more))
        with contextlib.suppress(KeyboardInterrupt):
            accept(three.home("north"), new)
    accept(three.home("north"), new)
    check_accepted(three.home("north"), new)
    keys = three.keys("north")
    assert keys.public_identity == new.member("north").identity
    assert (keys.folder / CERTIFICATE).read_bytes() == new.member("north").certificate.pem
    assert keys.tls_public_key == new.member("north").certificate.public_key


def test_a_crash_between_file_and_home_does_not_stop_the_operator(three: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("securetm.credentials.issuing.accept", ends)
        with pytest.raises(KeyboardInterrupt):
            three.change(lambda old: without_member(old, "east"))
    assert three.change(lambda old: without_member(old, "south")).version == 3
    assert three.roster.members == ("north",)


# ---- published vectors -----------------------------------------------------------------------------------------------------


VECTORS: dict[str, Any] = json.loads(path().read_text("utf-8"))


def test_the_file_is_what_the_code_makes() -> None:
    assert path().read_text("utf-8") == text(), "python -m tests.credentials.make_vectors"


def read_vector(folder: Path, content: str) -> Any:
    (folder / "roster.toml").write_text(content, "utf-8")
    return read_roster(folder / "roster.toml")


@pytest.mark.parametrize("good", VECTORS["good"], ids=lambda one: one["name"])
def test_good_rosters(good: dict[str, str], tmp_path: Path) -> None:
    roster = read_vector(tmp_path, good["toml"])
    assert (roster.digest.hex(), roster.fingerprint) == (good["digest"], good["fingerprint"])
    assert roster_text(roster) == good["toml"]
    assert roster.unsigned == ()


@pytest.mark.parametrize("bad", VECTORS["bad"], ids=lambda one: one["name"])
def test_bad_rosters(bad: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SecuretmError) as refused:
        read_vector(tmp_path, VECTORS["good"][-1]["toml"].replace(bad["find"], bad["put"], 1))
    assert refused.type.__name__ == bad["refusal"]


@pytest.mark.parametrize("one", VECTORS["fingerprints"])
def test_fingerprints(one: dict[str, str]) -> None:
    assert fingerprint(bytes.fromhex(one["sha256"])) == one["fingerprint"]


def test_the_digest_is_that_of_the_specification(tmp_path: Path) -> None:
    """Made here by hand, as protocols/roster.md says it."""
    roster = read_vector(tmp_path, VECTORS["good"][-1]["toml"])
    numbers = (roster.version, len(roster.parties), len(roster.revoked))
    fields = [b"vectors", *(one.to_bytes(8, "big") for one in numbers), b"hub.example.org:7443"]
    for name in ("coordinator", "east", "north", "south"):
        member = roster.member(name)
        fields += [name.encode(), member.identity, member.lasting, member.certificate.der]
    fields += [one.encode() for one in sorted(roster.revoked)]
    whole = (b"securetm credentials 2", b"roster", *fields)
    assert hashlib.sha256(b"".join(len(one).to_bytes(4, "big") + one for one in whole)).digest() == roster.digest


# ---- builds of securetm ----------------------------------------------------------------------------------------------------


OTHER = "0" * 64


@pytest.fixture
def organisations(trial_keys: Path, tmp_path: Path) -> Organisations:  # noqa: F811
    return Organisations.of(trial_keys, tmp_path / "all", PLAN)


def pin(organisations: Organisations, *arguments: str) -> None:
    """The operator writes these builds into the roster, and everybody accepts it."""
    place = organisations.folder / "coordinator"
    where = ("--roster", str(place / "roster.toml"), "--home", str(place / "home"))
    said = securetm("keys", "roster", "builds", *arguments, *where)
    assert said.code == 0, said.err
    for name in NAMES:
        new = read_roster(place / "roster.toml")
        write_roster(organisations.file(name).parent / "roster.toml", new)
        accept(organisations.home(name), new)


def test_a_listed_build_takes_part_and_another_is_named_or_refused(organisations: Organisations) -> None:
    told: list[str] = []
    pin(organisations, OTHER, build_digest(), "--refuse")
    assert organisations.prepared("numpy").warnings == ()
    pin(organisations, OTHER)
    (warning,) = organisations.prepared("numpy").warnings
    assert build_digest() in warning
    pin(organisations, OTHER, "--refuse")
    with pytest.raises(AnotherBuild):
        organisations.prepared("numpy", lambda party, _, __, reason: told.append(f"{party}: {reason}"))
    assert told == ["numpy: AnotherBuild"]
    pin(organisations)
    assert organisations.prepared("numpy").roster.builds == frozenset()


def test_what_a_roster_says_of_builds_is_in_its_digest_and_its_file(organisations: Organisations, tmp_path: Path) -> None:
    plain = read_roster(organisations.folder / "coordinator" / "roster.toml")
    made = [replace(plain, builds=frozenset(one), refuses_others=refused, signatures={}) for one, refused in (
        ((OTHER,), False), ((OTHER,), True), ((OTHER, "f" * 64), True),
    )]  # fmt: skip
    assert len({plain.digest, *(one.digest for one in made)}) == 4
    for one in made:
        write_roster(tmp_path / "roster.toml", one)
        read = read_roster(tmp_path / "roster.toml")
        assert (read.builds, read.refuses_others, read.digest) == (one.builds, one.refuses_others, one.digest)
    for wrong in ({"builds": frozenset({"abc"})}, {"refuses_others": True}):
        with pytest.raises(BadSetting):
            replace(plain, signatures={}, **wrong)


def test_the_version_names_the_build() -> None:
    said = securetm("version", "--verify", "--json")
    assert (said.code, said.json["published"]) == (1, False)  # of a checkout nothing was published
    assert said.json["build"] == build_digest()
    assert re.fullmatch("[0-9a-f]{64}", build_digest())
    names = sources()
    assert {"securetm/version.py", "securetm/_data/protocols/masked.toml"} & set(names) >= {"securetm/version.py"}
    assert not [name for name in names if name.endswith(".pyc")]
    assert build_digest({**names, "securetm/version.py": OTHER}) != build_digest()
