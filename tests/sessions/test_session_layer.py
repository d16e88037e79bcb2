"""What all aggregations stand on: one framing, one label a purpose, seals between two parties, waves that a carrier ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import permutations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.aggregation.masked.messages import Header, Place, read_header
from securetm.contracts import Roster
from securetm.errors import Duplicate, Malformed, Mistake, NotInCohort, TooFewParties
from securetm.sessions.exchanges import CoordinatorExchange, UnexpectedMessage
from securetm.sessions.framing import RECORDED, VERSION, AnotherVersion, Label, Reader, framed, head, listed, place_bytes
from securetm.sessions.hybrid import SECRET_KEYS, BadKey, check_public_keys, public_keys, receive_secret, send_secret
from securetm.sessions.identities import SIGNATURE, BadSignature, Identity, PinnedRoster, identity_of
from securetm.sessions.sealing import NotSealedForUs, Pair
from securetm.sessions.session_memory import SessionMemory
from securetm.testing.few_documents import EmptyStore

MEMBERS = ("ant", "bee", "cat")
PRIVATE = {m: hashlib.sha256(m.encode()).digest() for m in MEMBERS}


def roster(session: bytes = b"s" * 32, profile: bytes = b"p" * 32) -> Roster:
    keys = {m: Ed25519PrivateKey.from_private_bytes(raw).public_key().public_bytes_raw() for m, raw in PRIVATE.items()}
    return Roster(session, profile, MEMBERS, keys)


def identity(name: str, whole: Roster | None = None) -> Identity:
    return identity_of(name, whole or roster(), EmptyStore({"identity": PRIVATE[name]}))


def test_every_purpose_has_a_label_of_its_own() -> None:
    assert len({label.value for label in Label}) == len(list(Label.__members__)) == len(list(Label))


def test_a_signature_for_one_purpose_is_none_for_another() -> None:
    signed, register = {label: identity("ant").sign(label, b"said") for label in Label}, PinnedRoster(roster())
    for made_for, read_as in permutations(Label, 2):
        with pytest.raises(BadSignature):
            register.opened(0, "ant", signed[made_for], read_as)


@pytest.mark.parametrize("other", [roster(b"t" * 32), roster(profile=b"q" * 32), Roster(b"s" * 32, b"p" * 32, MEMBERS[:2], {})])
def test_a_signature_holds_in_one_session_under_one_profile_among_the_same_people(other: Roster) -> None:
    signed = identity("ant").sign(Label.CONSENT, b"said", b"context")
    register = PinnedRoster(roster())
    assert register.opened(0, "ant", signed, Label.CONSENT, b"context") == b"said"
    with pytest.raises(BadSignature):
        PinnedRoster(Roster(other.session, other.profile, other.members, roster().keys)).opened(0, "ant", signed, Label.CONSENT)
    for place, context in ((1, b"context"), (0, b"another")):
        with pytest.raises(BadSignature):
            register.opened(place, "ant", signed, Label.CONSENT, context)


def test_what_version_2_signed_is_refused() -> None:
    """It framed the protocol's old name, the roster's hash and a context, and put the bare message behind them."""
    register = PinnedRoster(roster())
    old = (b"securetm masked_sum 2", register.hash, b"head of a ledger")
    message = b"".join(len(one).to_bytes(4, "big") + one for one in old) + b"said"
    signature = Ed25519PrivateKey.from_private_bytes(PRIVATE["ant"]).sign(message)
    with pytest.raises(BadSignature):
        register.opened(0, "ant", b"said" + signature, Label.LEDGER_HEAD)


def test_another_version_is_refused_by_its_number() -> None:
    for version in (0, 1, 2, 3, VERSION + 1):
        with pytest.raises(AnotherVersion, match=f"version {version} of the protocol"):
            Reader(bytes([version]) + head(1)[1:], "ant")


def test_no_two_lists_of_fields_have_the_same_bytes() -> None:
    fields = [(), (b"",), (b"", b""), (b"ab",), (b"a", b"b"), (b"", b"ab"), (b"ab", b""), (b"\0\0\0\1a",)]
    made = [framed(label, *some) for some in fields for label in (Label.DEALT, Label.DEALT_ALL)]
    assert len(set(made)) == len(made)


def test_a_list_of_messages_is_in_order_and_names_nobody_twice() -> None:
    whole = [head(1, place) + b"xy" for place in (0, 2)]
    assert Reader(head(2) + listed(whole), "ant").messages(3, 6, 1) == {0: whole[0], 2: whole[1]}
    for wrong in (whole[::-1], whole[:1] * 2, [head(1, 3) + b"xy"], [head(3, 0) + b"xy"]):
        with pytest.raises(Malformed):
            Reader(head(2) + listed(wrong), "ant").messages(3, 6, 1)


def test_what_version_3_recorded_of_a_round_is_read_by_audits_alone() -> None:
    recorded = bytes((3,)) + Header(1, Place(b"e" * 32, b"t" * 32, 2), b"s" * 16, b"v" * 32).body()[1:]
    assert read_header(recorded, "ant", RECORDED).at.index == 2
    with pytest.raises(AnotherVersion):
        read_header(recorded, "ant")
    with pytest.raises(AnotherVersion):
        read_header(bytes((2,)) + recorded[1:], "ant", RECORDED)


# ---- seals -------------------------------------------------------------------------------------------------------------


SECRET = {m: hashlib.shake_256(m.encode()).digest(SECRET_KEYS) for m in MEMBERS}
PUBLIC = {m: public_keys(secret) for m, secret in SECRET.items()}
TOLD, CIPHERTEXT = send_secret(SECRET["ant"], PUBLIC["bee"], "bee")


def pair(secrets: bytes = TOLD, told: bytes = CIPHERTEXT, setup: bytes = b"setup", places: tuple[int, int] = (0, 1)) -> Pair:
    ends = (places[0], PUBLIC["ant"]), (places[1], PUBLIC["bee"])
    return Pair.of(PinnedRoster(roster()), setup, ends, secrets, told)


def test_a_pair_of_one_set_up_is_none_of_another() -> None:
    sealed = pair().within(b"one").seal(Label.SHARE_SEAL, 0, 1, b"secret")
    assert pair().within(b"one").unseal(Label.SHARE_SEAL, 0, 1, sealed) == b"secret"
    for other in (pair(), pair().within(b"two"), pair().within(b"one").within(b"one")):
        with pytest.raises(NotSealedForUs):
            other.unseal(Label.SHARE_SEAL, 0, 1, sealed)


def test_only_the_recipient_opens_what_was_sealed_to_it() -> None:
    sealed = pair().seal(Label.SHARE_SEAL, 0, 1, b"secret")
    received = receive_secret(SECRET["bee"], PUBLIC["ant"], CIPHERTEXT, "ant")
    assert pair(received).unseal(Label.SHARE_SEAL, 0, 1, sealed) == b"secret"
    changed = CIPHERTEXT[:-1] + bytes([CIPHERTEXT[-1] ^ 1])
    for one, label, sender in (
        (pair(receive_secret(SECRET["cat"], PUBLIC["ant"], CIPHERTEXT, "ant")), Label.SHARE_SEAL, 0),
        (pair(receive_secret(SECRET["bee"], PUBLIC["ant"], changed, "ant")), Label.SHARE_SEAL, 0),
        (pair(TOLD[:32] + bytes(32)), Label.SHARE_SEAL, 0),  # whoever has the X25519 secret alone
        (pair(bytes(32) + TOLD[32:]), Label.SHARE_SEAL, 0),  # or that of ML-KEM alone
        (pair(told=changed), Label.SHARE_SEAL, 0),
        (pair(setup=b"another"), Label.SHARE_SEAL, 0),
        (pair(places=(0, 2)), Label.SHARE_SEAL, 0),
        (pair(), Label.SUM_KEY_SEAL, 0),
        (pair(), Label.SHARE_SEAL, 1),
    ):
        with pytest.raises(NotSealedForUs):
            one.unseal(label, sender, 1 - sender, sealed)
    with pytest.raises(NotSealedForUs):
        pair().unseal(Label.SHARE_SEAL, 0, 1, sealed[:-1] + bytes([sealed[-1] ^ 1]))


@pytest.mark.parametrize("public", [bytes(32) + PUBLIC["bee"][32:], PUBLIC["bee"][:32] + b"\xff" * 1_184, b""])
def test_a_public_key_that_no_honest_party_makes_is_refused(public: bytes) -> None:
    """X25519 keys of small order give everybody the same secret; numbers beyond its modulus are no ML-KEM key."""
    for refused in (lambda: send_secret(SECRET["ant"], public, "bee"), lambda: check_public_keys(public, "bee")):
        with pytest.raises(BadKey):
            refused()


# ---- memory and waves ----------------------------------------------------------------------------------------------------


def test_a_memory_finds_nothing_of_another_session_or_set_up() -> None:
    store = EmptyStore({})
    memory = SessionMemory(store, b"one".ljust(32))
    memory.put("key", b"value")
    assert memory.get("key") == b"value"
    assert SessionMemory(store, b"two".ljust(32)).get("key") is None
    assert memory.of(b"set-up".ljust(32)).get("key") is None


def test_the_carrier_ends_a_wave_and_nothing_else_does() -> None:
    def take(place: int, sender: str, message: bytes) -> bytes:
        if message == b"bad":
            raise Malformed(sender, "it is bad")
        return message

    exchange = CoordinatorExchange(PinnedRoster(roster()))
    exchange.ask((0, 1), take, lambda came: exchange.to(dict.fromkeys(came, b"more")), need=1)
    with pytest.raises(Malformed):
        exchange.receive("ant", b"bad")
    assert exchange.receive("ant", b"good") == ()
    for sender, refusal in (("ant", Duplicate), ("cat", UnexpectedMessage), ("eve", NotInCohort)):
        with pytest.raises(refusal):
            exchange.receive(sender, b"good")
    assert exchange.receive("bee", b"good") == ()  # all have spoken, and still the wave is open
    assert exchange.expire(()) == [("ant", b"more"), ("bee", b"more")]
    with pytest.raises(UnexpectedMessage):
        exchange.receive("cat", b"late")
    assert exchange.expire(()) == ()


def test_too_few_messages_end_a_wave_by_name() -> None:
    exchange = CoordinatorExchange(PinnedRoster(roster()))
    exchange.ask((0, 1, 2), lambda *_: None, lambda _: (), need=2)
    exchange.receive("bee", b"")
    with pytest.raises(TooFewParties):
        exchange.expire(("ant", "cat"))


def test_signed_bytes_end_in_a_signature() -> None:
    with pytest.raises(Malformed):
        PinnedRoster(roster()).opened(0, "ant", bytes(SIGNATURE), Label.CONSENT)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b"abc", lambda reader: reader.take(4)),
        (place_bytes(2, 1, 1), lambda reader: reader.places(3)),
        (place_bytes(2, 2, 1), lambda reader: reader.places(3)),
        (place_bytes(1, 3), lambda reader: reader.places(3)),
        (place_bytes(4, 0, 1, 2, 3), lambda reader: reader.places(3)),
        (place_bytes(2), lambda reader: reader.speaks_for(1)),
        (b"abc", lambda reader: reader.end()),
    ],
)
def test_what_is_too_short_too_long_or_another_s_is_refused(body: bytes, read: Callable[[Reader], object]) -> None:
    with pytest.raises(Malformed):
        read(Reader(head(1) + body, "ant"))


def test_only_the_pinned_key_signs() -> None:
    with pytest.raises(Mistake, match="this party's own private key is missing,"):
        identity_of("ant", roster(), EmptyStore({"identity": bytes(32)}))
