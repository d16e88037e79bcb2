"""A roster changes by versions: who comes, who leaves, who rotates; and which version a member trusts."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.credentials.certificates import IdentityOfAnotherKey
from securetm.credentials.homes import accept, check_accepted
from securetm.credentials.issuing import Issuing, with_revoked, without_member
from securetm.credentials.key_requests import make_request
from securetm.credentials.keys import Keys, fingerprint_of, make_keys
from securetm.credentials.roster import write_roster
from securetm.errors import BadSetting, Mistake

from ..quick_part import quick
from .made import NOW, Federation, signed_federation


@pytest.fixture
def three(tmp_path: Path) -> Federation:
    return signed_federation(tmp_path)


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
    assert after.certificate_pem == new.member("north").certificate.pem
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
@pytest.mark.parametrize("ends_at", range(12))
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
    assert keys.certificate_pem == new.member("north").certificate.pem
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
