"""Keys that outlast a quantum computer: both halves of a signature count, seals open for one member, rosters move and stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.credentials.diagnosis import check_own
from securetm.credentials.homes import KEYS, accept, announced
from securetm.credentials.hybrid_identity import (
    FORMER,
    FORMER_SIGNATURE,
    ML_DSA_KEY,
    SEALED,
    SIGNATURE,
    NoLastingKeys,
    NotSealedForMember,
    PrivateIdentity,
    PublicIdentity,
    Purpose,
    purposed,
)
from securetm.credentials.key_requests import KeyRequest, write_request
from securetm.credentials.keys import REQUEST
from securetm.credentials.roster import DowngradedRoster, FormerRoster, Member, read_roster, write_roster
from securetm.errors import Mistake
from securetm.sessions.hybrid import BadKey

from ..cli.conftest import securetm
from .made import NOW, Federation, federation

ALICE, BOB = PrivateIdentity(b"a" * 32), PrivateIdentity(b"b" * 32)


def test_both_halves_of_a_signature_have_to_be_right() -> None:
    signed, forged = ALICE.sign(Purpose.REPORT, b"page"), BOB.sign(Purpose.REPORT, b"page")
    assert len(signed) == SIGNATURE
    assert ALICE.public.is_signed(signed, Purpose.REPORT, b"page")
    for wrong in (
        signed[:FORMER_SIGNATURE] + forged[FORMER_SIGNATURE:],
        forged[:FORMER_SIGNATURE] + signed[FORMER_SIGNATURE:],
        signed[:FORMER_SIGNATURE],
        signed[FORMER_SIGNATURE:],
        forged,
    ):
        assert not ALICE.public.is_signed(wrong, Purpose.REPORT, b"page")
    assert not ALICE.public.is_signed(signed, Purpose.LETTER, b"page")
    assert not ALICE.public.is_signed(signed, Purpose.REPORT, b"pa", b"ge")


def test_what_ed25519_signed_alone_counts_only_where_nothing_else_is_known() -> None:
    """It has a label of its own, so that half of a signature is no signature of the former kind."""
    former = PublicIdentity(ALICE.public.ed25519)
    old = Ed25519PrivateKey.from_private_bytes(b"a" * 32).sign(purposed(Purpose.REPORT, b"page", protocol=FORMER))
    assert former.is_signed(old, Purpose.REPORT, b"page")
    assert not ALICE.public.is_signed(old, Purpose.REPORT, b"page")
    assert not former.is_signed(ALICE.sign(Purpose.REPORT, b"page")[:FORMER_SIGNATURE], Purpose.REPORT, b"page")


def test_a_seal_opens_for_its_member_in_its_context() -> None:
    sealed = ALICE.public.seal("alice", b"content", b"run 1", b"from bob")
    assert len(sealed) == len(b"content") + SEALED
    assert ALICE.unseal(sealed, b"run 1", b"from bob") == b"content"
    assert ALICE.public.seal("alice", b"content", b"run 1", b"from bob") != sealed
    for identity, content, context in (
        (BOB, sealed, (b"run 1", b"from bob")),
        (ALICE, sealed, (b"run 1", b"from eve")),
        (ALICE, sealed, (b"run 1from", b" bob")),
        (ALICE, sealed[:-1], (b"run 1", b"from bob")),
        (ALICE, sealed[: SEALED - 1], (b"run 1", b"from bob")),
        (ALICE, b"", (b"run 1", b"from bob")),
        *((ALICE, flipped(sealed, at), (b"run 1", b"from bob")) for at in (0, 40, 1_000, 1_120, len(sealed) - 1)),
    ):
        with pytest.raises(NotSealedForMember):
            identity.unseal(content, *context)
    low_order = bytes(32) + sealed[32:]
    with pytest.raises(BadKey):
        ALICE.unseal(low_order, b"run 1", b"from bob")


def flipped(message: bytes, at: int) -> bytes:
    return message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]


def test_one_of_both_secrets_opens_nothing() -> None:
    """Whoever has a member's X25519 key, or its ML-KEM key, lacks the other."""
    public, other = ALICE.public, BOB.public
    x25519, ml_kem = public.lasting[ML_DSA_KEY : ML_DSA_KEY + 32], public.lasting[ML_DSA_KEY + 32 :]
    mixed = PublicIdentity(public.ed25519, public.lasting[:ML_DSA_KEY] + x25519 + other.lasting[ML_DSA_KEY + 32 :])
    swapped = PublicIdentity(public.ed25519, public.lasting[:ML_DSA_KEY] + other.lasting[ML_DSA_KEY : ML_DSA_KEY + 32] + ml_kem)
    for half in (mixed, swapped):
        with pytest.raises(NotSealedForMember):
            ALICE.unseal(half.seal("alice", b"content"))
    with pytest.raises(NoLastingKeys):
        PublicIdentity(public.ed25519).seal("alice", b"content")


# ---- rosters move from protocol 3 to 4 ----------------------------------------------------------------------------------


def former_request(request: KeyRequest, secret: bytes) -> KeyRequest:
    """The request as the version before wrote it."""
    old = replace(request, lasting=b"", old_lasting=b"")
    signed = purposed(Purpose.REQUEST, *old.signed_fields, protocol=FORMER)
    return replace(old, signature=Ed25519PrivateKey.from_private_bytes(secret).sign(signed))


@pytest.fixture
def former(tmp_path: Path) -> Federation:
    """Two parties and a coordinator with homes and a roster as the version before left them."""
    made = federation(tmp_path, "east", "north")
    for name in ("coordinator", "east", "north"):
        folder, keys = made.home(name) / KEYS, made.keys(name)
        own = made.requests.get(name) or made.operator._own_request()
        write_request(folder / REQUEST, former_request(own, keys.identity))
    entries = {one.name: replace(one, lasting=b"") for one in made.roster.everybody}
    made.roster = replace(made.roster, coordinator=entries.pop("coordinator"), parties=tuple(entries.values()), signatures={})
    write_roster(tmp_path / "roster.toml", made.roster)
    (made.home("coordinator") / "roster.toml").unlink()
    accept(made.home("coordinator"), made.roster)
    return made.accepted_by_all()


def test_a_roster_of_the_former_protocol_is_read_and_begins_no_run(former: Federation) -> None:
    read = read_roster(former.folder / "roster.toml")
    assert (read.protocol, read.digest) == (3, former.roster.digest)
    with pytest.raises(FormerRoster):
        check_own("east", former.keys("east"), read, NOW)
    said = securetm("keys", "roster", "check", str(former.folder / "roster.toml"))
    assert (said.code, "Fine" in said.out, "`securetm keys issue *.request`" in " ".join(said.err.split())) == (2, False, True)


def test_a_roster_moves_by_one_command_and_not_back(former: Federation) -> None:
    old, requests = former.roster, [announced(former.home(name), None, None) for name in ("east", "north")]
    moved = former.enrol(*requests)
    assert (moved.protocol, moved.version, set(moved.signatures)) == (4, 2, {"coordinator"})
    assert not moved.revoked
    for name in moved.members:
        accept(former.home(name), moved)
        assert check_own(name, former.keys(name), moved, NOW).lasting == former.keys(name).public.lasting
    back = replace(old, version=3)
    for name in ("east", "coordinator"):
        with pytest.raises(DowngradedRoster):
            accept(former.home(name), back)


def test_a_roster_moves_from_the_command_line(former: Federation) -> None:
    for name in ("east", "north"):
        request = former.folder / f"{name}.request"
        assert securetm("keys", "request", "--home", str(former.home(name)), "--request", str(request)).code == 0
    files = [str(former.folder / f"{name}.request") for name in ("east", "north")]
    there = ("--roster", str(former.folder / "roster.toml"), "--home", str(former.home("coordinator")))
    assert securetm("keys", "issue", *files, *there).code == 0
    moved = read_roster(former.folder / "roster.toml")
    accepting = ("keys", "accept", str(former.folder / "roster.toml"), "--fingerprint", moved.fingerprint)
    told = securetm(*accepting, "--home", str(former.home("east")))
    assert (told.code, moved.protocol) == (0, 4)
    assert "lasting keys" in told.out
    former.roster = replace(former.roster, version=3)
    write_roster(former.folder / "roster.toml", former.roster)
    back = securetm("keys", "accept", str(former.folder / "roster.toml"), "--home", str(former.home("east")))
    assert back.code != 0
    assert "one of protocol 4 was accepted here before" in " ".join(back.err.split())


def test_all_members_move_together(former: Federation) -> None:
    with pytest.raises(Mistake, match="no key of north"):
        former.enrol(announced(former.home("east"), None, None))
    assert read_roster(former.folder / "roster.toml").version == 1


def test_other_lasting_keys_under_one_identity_are_refused(former: Federation) -> None:
    """Whoever forges Ed25519 cannot bring ML-DSA keys of its own, nor come without."""
    requests = [announced(former.home(name), None, None) for name in ("east", "north")]
    former.enrol(*requests)
    keys = former.keys("east")
    theirs = replace(requests[0], lasting=BOB.public.lasting)
    for request in (theirs, former_request(requests[0], keys.identity)):
        with pytest.raises(Mistake, match="another identity"):
            former.enrol(request)


def test_a_new_identity_has_new_lasting_keys(former: Federation) -> None:
    former.enrol(*(announced(former.home(name), None, None) for name in ("east", "north")))
    former.accepted_by_all()
    before: Member = former.roster.member("east")
    rotated = former.enrol(former.rotated("east", identity=True))
    assert rotated.member("east").lasting not in (b"", before.lasting)
    former.accepted_by_all()
    assert former.keys("east").public == rotated.member("east").public
