"""Each end that may not connect is refused by name, and the party says the same name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from securetm.credentials.certificates import CertificateExpired, CertificateNotYetValid, NotTheCoordinator
from securetm.credentials.diagnosis import now_utc
from securetm.credentials.keys import make_keys
from securetm.errors import Malformed, SecuretmError
from securetm.federation.network import handshake
from securetm.federation.network import network_pb2 as pb
from securetm.federation.network.events import (
    Agreed,
    AlreadyConnected,
    AnotherCertificate,
    AnotherPlan,
    AnotherProfile,
    AnotherRoster,
    Declined,
    OldVersion,
    OtherFederation,
    UnknownParty,
    WrongHello,
)
from securetm.federation.network.frames import packed, unpacked
from securetm.federation.network.handshake import CertificateNotAccepted
from securetm.federation.network.hub import Hub

from .meeting import AGREED, PATIENCE, Events, Meeting, Parties

pytestmark = pytest.mark.own_draws  # threads draw at once, and the stream of a test serves one of them


def answer(request: bytes) -> bytes:
    return request


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def hub(meeting: Meeting, events: Events) -> Iterator[Hub]:
    opened = meeting.hub(events)
    opened.start()
    yield opened
    opened.close()


def raised(meeting: Meeting, name: str = "north", agreed: Agreed = AGREED) -> SecuretmError:
    """What a party's dialer raises."""
    with pytest.raises(SecuretmError) as caught:
        meeting.dialer(name, agreed=agreed).run(answer, threading.Event())
    return caught.value


def test_another_plan(hub: Hub, meeting: Meeting, events: Events) -> None:
    assert isinstance(raised(meeting, agreed=replace(AGREED, agreement=bytes(32))), AnotherPlan)
    assert events.wait("refused", "north") == "AnotherPlan"


def test_another_profile(hub: Hub, meeting: Meeting, events: Events) -> None:
    assert isinstance(raised(meeting, agreed=replace(AGREED, profile=bytes(32))), AnotherProfile)
    assert events.wait("refused", "north") == "AnotherProfile"


def test_a_party_that_does_not_take_part_says_why_and_signs_it(hub: Hub, meeting: Meeting, events: Events) -> None:
    """Whatever plan it holds, since that may be the reason."""
    nothing = replace(AGREED, agreement=bytes(32), profile=bytes(32))
    assert meeting.dialer("north", agreed=nothing).decline("PolicyAgainstProfile")
    assert events.wait("refused", "north") == "PolicyAgainstProfile"
    hello = handshake.make_hello("north", meeting.keys["north"], meeting.roster, AGREED, bytes(32), bytes(32), "OutOfBudget")
    with pytest.raises(Declined):
        handshake.check_hello(hello, meeting.roster, AGREED, bytes(32))
    hello.declines = "PolicyAgainstModel"
    with pytest.raises(WrongHello):
        handshake.check_hello(hello, meeting.roster, AGREED, bytes(32))


def test_a_reason_that_nobody_knows_is_malformed() -> None:
    hello = pb.Hello(versions=[1], name="north", federation="clinics", declines="<b>because</b>")
    for name in ("roster", "agreement", "profile", "nonce"):
        setattr(hello, name, bytes(32))
    hello.signature = bytes(64)
    with pytest.raises(Malformed, match="none that is known"):
        unpacked(packed(hello=hello), "a party", "hello")


def test_another_roster(hub: Hub, meeting: Meeting, events: Events) -> None:
    newer = replace(meeting, roster=replace(meeting.roster, version=2))
    assert isinstance(raised(newer), AnotherRoster)


def test_another_federation(hub: Hub, meeting: Meeting, events: Events) -> None:
    assert isinstance(raised(replace(meeting, roster=replace(meeting.roster, federation="others"))), OtherFederation)


def test_an_old_version(hub: Hub, meeting: Meeting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "VERSIONS", (3, 4))  # both ends run in this process, and speak these
    hello = handshake.make_hello("north", meeting.keys["north"], meeting.roster, AGREED, bytes(32), bytes(32))
    monkeypatch.setattr(handshake, "VERSIONS", (2,))
    with pytest.raises(OldVersion):
        handshake.check_hello(hello, meeting.roster, AGREED, bytes(32))


def test_a_hello_of_the_version_before_is_refused_by_name(meeting: Meeting) -> None:
    """Ed25519 signed it alone. Whatever it says, nothing but this refusal follows."""
    hello = handshake.make_hello("north", meeting.keys["north"], meeting.roster, AGREED, bytes(32), bytes(32))
    del hello.versions[:]
    hello.versions.append(1)
    hello.signature = hello.signature[:64]
    with pytest.raises(OldVersion):
        handshake.check_hello(hello, meeting.roster, AGREED, bytes(32))
    hello.versions.append(2)
    with pytest.raises(WrongHello):  # half of a signature is none
        handshake.check_hello(hello, meeting.roster, AGREED, bytes(32))


def test_a_hello_of_another_stream(meeting: Meeting) -> None:
    """A replay: the challenge of every stream is new."""
    hello = handshake.make_hello("north", meeting.keys["north"], meeting.roster, AGREED, bytes(32), bytes(32))
    assert handshake.check_hello(hello, meeting.roster, AGREED, bytes(32)) == 2
    with pytest.raises(WrongHello):
        handshake.check_hello(hello, meeting.roster, AGREED, bytes([1]) * 32)


def test_a_hello_by_another_identity(hub: Hub, meeting: Meeting, events: Events) -> None:
    """Somebody who has the TLS key of a party, and not its identity."""
    thief = make_keys(meeting.home / "thief", None, tls=meeting.keys["north"].tls_key_pem)
    stolen = replace(meeting, keys={**meeting.keys, "north": thief})
    entry = replace(meeting.roster.member("north"), identity=thief.public_identity, lasting=thief.public.lasting)
    assert isinstance(raised(stolen.with_member(entry)), WrongHello)


def test_a_party_that_calls_itself_otherwise(hub: Hub, meeting: Meeting, events: Events) -> None:
    """It has a certificate of its own, and shows it under another member's name."""
    posing = replace(meeting.roster.member("north"), name="south")
    parties = tuple(one for one in meeting.roster.parties if one.name not in ("north", "south"))
    roster = replace(meeting.roster, parties=(*parties, posing))
    keys = {**meeting.keys, "south": meeting.keys["north"]}
    assert isinstance(raised(replace(meeting, roster=roster, keys=keys), "south"), AnotherCertificate)


def test_a_name_that_nobody_has(hub: Hub, meeting: Meeting, events: Events) -> None:
    unknown = replace(meeting.roster.member("north"), name="nobody")
    parties = tuple(one for one in meeting.roster.parties if one.name != "north")
    roster = replace(meeting.roster, parties=(*parties, unknown))
    keys = {**meeting.keys, "nobody": meeting.keys["north"]}
    assert isinstance(raised(replace(meeting, roster=roster, keys=keys), "nobody"), UnknownParty)


def test_a_party_twice(hub: Hub, meeting: Meeting, events: Events) -> None:
    with Parties() as parties:
        parties.run(meeting.dialer("north"), answer)
        events.wait("connected", "north")
        second, heard = meeting.dialer("north"), Events()
        second.events = heard
        parties.run(second, answer)
        assert heard.wait("refused", "coordinator") == AlreadyConnected.__name__
        assert hub.present() == {"north"}
        assert list(hub.parties(PATIENCE).ask({"north": b"still there"}, 100)) == [("north", b"still there")]


def test_a_certificate_that_was_revoked(meeting: Meeting, events: Events) -> None:
    """The coordinator's roster has a newer certificate of the party, and revokes the one that it shows."""
    renewed = meeting.entry(meeting.authority, "north", meeting.keys["north"])
    ours = meeting.with_member(renewed)
    old = meeting.roster.member("north").certificate.fingerprint
    ours = replace(ours, roster=replace(ours.roster, revoked=frozenset({old})))
    hub = ours.hub(events)
    hub.start()
    try:
        problem = raised(meeting)
        assert problem.facts()["reason"] == events.wait("refused", "north") == "CertificateRevoked"
    finally:
        hub.close()


def test_a_certificate_that_ended(meeting: Meeting, events: Events) -> None:
    """The party sees it before it dials anybody."""
    then = now_utc() - timedelta(days=40)
    expired = meeting.with_member(meeting.entry(meeting.authority, "north", meeting.keys["north"], then, 30))
    assert isinstance(raised(expired), CertificateExpired)
    later = now_utc() + timedelta(days=2)
    early = meeting.with_member(meeting.entry(meeting.authority, "north", meeting.keys["north"], later))
    assert isinstance(raised(early), CertificateNotYetValid)


def test_another_coordinator_answers(hub: Hub, meeting: Meeting) -> None:
    """It has a certificate of the same authority, and the roster pins another."""
    other = meeting.entry(meeting.authority, "coordinator", make_keys(meeting.home / "other", None))
    misled = replace(meeting, roster=replace(meeting.roster, coordinator=other))
    assert isinstance(raised(misled), NotTheCoordinator)


def test_a_coordinator_without_its_identity(meeting: Meeting, events: Events) -> None:
    """Somebody who has the TLS key of the coordinator, and not its identity."""
    thief = make_keys(meeting.home / "false", None, tls=meeting.keys["coordinator"].tls_key_pem)
    hub = replace(meeting, keys={**meeting.keys, "coordinator": thief}).hub(events)
    hub.start()
    try:
        assert "did not prove that it is the one of the roster" in str(raised(meeting))
    finally:
        hub.close()


def test_a_certificate_that_ended_at_the_coordinators_clock(meeting: Meeting, events: Events, monkeypatch) -> None:
    """The party's clock is late, so that it dials; TLS at the coordinator ends the handshake."""
    from securetm.federation.network import dialing

    then = now_utc() - timedelta(days=40)
    expired = meeting.with_member(meeting.entry(meeting.authority, "north", meeting.keys["north"], then, 30))
    monkeypatch.setattr(dialing, "now_utc", lambda: then + timedelta(days=1))
    hub = expired.hub(events)
    hub.start()
    try:
        assert isinstance(raised(expired), CertificateNotAccepted)
    finally:
        hub.close()
