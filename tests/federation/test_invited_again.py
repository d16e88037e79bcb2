"""Another invitation ends what was begun before it: a round or a set-up of the seat before is carried on by no party."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from securetm.aggregation.masked.messages import HEADER_SIZE, Kind, Place, read_header
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.words import tell_words
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import TRAIN, preparation_identity
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.federation.wire import wire
from securetm.sessions.framing import head

from .played import Played, settled
from .private import PUBLIC, private_plan

MASKED = ("masked", "masked_strict")
ENDED = wire.Refusal("UnknownRound")


class _Site:
    """Real parties after one round of training, and whatever a coordinator says to them by hand afterwards."""

    def __init__(self, folder: RunFolder) -> None:
        self.parties = {name: make_party(folder, name) for name in folder.members}
        self.store, self._plan = CoordinatorStore(folder.coordinator), folder.agreement.plan
        way = InProcess(self.parties)
        self.real = Coordinator(folder.members, folder.agreement, way, self.store, OperatingSystem(), Watch(), folder.keys)
        self.said = Played(folder.agreement.plan, folder.members, session=self.real.session, serial=1)
        self.said.adopt(PUBLIC)
        self.invite_again()
        self.state = self.real.agreement.model.start(PUBLIC, np.random.default_rng(folder.agreement.plan.seed))
        self.real.ask(TRAIN, self.state)

    def close(self) -> None:
        self.real.parties.close()
        self.store.close()

    def invite_again(self) -> None:
        self.real.tell(self.said.invite())
        tell_words(self.real, PUBLIC)

    def question(self, number: int) -> wire.Ask:
        """A number of the training, as a coordinator asks it that keeps to the protocol."""
        self.real.numbers[TRAIN], self.real.serial = number, number
        kept: dict[str, wire.Ask] = {}
        exchange = self.real.exchange

        def instead(cohort: object, terms: object, requests: Mapping[str, bytes]) -> None:
            kept["ask"] = wire.unpack_request(next(iter(requests.values())))[1]  # type: ignore[assignment]
            raise _Stopped

        self.real.exchange = instead  # type: ignore[method-assign, assignment]
        with pytest.raises(_Stopped):
            self.real.ask(TRAIN, self.state)
        self.real.exchange = exchange  # type: ignore[method-assign]
        return kept["ask"]

    def send(self, name: str, body: wire.Body) -> wire.Outcome:
        return self.said.send(self.parties[name], body)


class _Stopped(Exception):
    """The question is known, and nobody is asked it."""


@pytest.fixture
def site(request: pytest.FixtureRequest, five: Mapping[str, Corpus], tmp_path: Path) -> Iterator[_Site]:
    plan = private_plan(tmp_path, request.param, model={"name": "lda", "n_topics": 2}, training__rounds=6)
    made = _Site(begin(tmp_path / "run", plan, five))
    yield made
    made.close()


def advance(site: _Site, ask: wire.Ask, index: int) -> wire.Forward:
    at = Place(site.real.aggregation.memory.relayed.epoch, site.real.aggregation.register.round_tag(ask.round_id), index)
    return wire.Forward(ask.round_id, head(Kind.ADVANCE) + at.body())


@pytest.mark.parametrize("site", MASKED, indirect=True)
def test_a_round_of_before_the_last_invitation_masks_nothing_more(site: _Site) -> None:
    """The old seat would use the prekey that the new one takes for fresh: two vectors of a party under the same masks."""
    one, other = site.question(1), site.question(2)
    name = site.real.members[0]
    site.invite_again()
    hello = site.send(name, one)
    assert isinstance(hello, wire.Accepted)
    assert hello.parcels[0][1] == Kind.HELLO  # nothing is masked before it is known which prekey is fresh
    site.invite_again()
    assert site.send(name, advance(site, one, 1)) == ENDED
    assert isinstance(site.send(name, other), wire.Accepted)
    assert site.send(name, wire.Forward(one.round_id, advance(site, other, 1).parcel)) == ENDED  # of no round but its own
    masked = site.send(name, advance(site, other, 1))
    assert isinstance(masked, wire.Accepted)
    assert read_header(masked.parcels[0], name).at.index == 1
    assert len(masked.parcels[0]) > HEADER_SIZE


@pytest.mark.parametrize("site", MASKED, indirect=True)
def test_a_set_up_of_before_the_last_invitation_is_not_carried_on(site: _Site) -> None:
    name = site.real.members[0]
    prepare = wire.Prepare(preparation_identity(site.real.session, 2, 3), 2, 3)
    begun = site.send(name, prepare)
    assert isinstance(begun, wire.Accepted)
    site.invite_again()
    assert site.send(name, wire.Forward(prepare.exchange, begun.parcels[0])) == ENDED


@pytest.mark.parametrize("site", ["open", "bfv"], indirect=True)
def test_where_nothing_is_masked_a_round_ends_with_the_next_invitation_too(site: _Site) -> None:
    name, ask = site.real.members[0], site.question(1)
    if not ask.state:  # where the parties learn by themselves nobody tells them what from
        assert site.send(name, replace(ask, state={"counts": np.zeros(2)})) == wire.Refusal("BadState")
    answered = site.send(name, ask)
    assert isinstance(answered, wire.Accepted)
    site.invite_again()
    assert (joined := site.parties[name].session) is not None
    assert joined.open_exchange is None
    assert joined.awaited is None
    assert site.send(name, wire.Forward(ask.round_id, b"")) == ENDED


@pytest.mark.parametrize("profile", ["bfv", "ckks"])
def test_a_question_before_the_key_of_the_sums_is_refused_by_name(
    profile: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """The coordinator sent it too early: the party logs a refusal, and no failure of its own."""
    folder = begin(tmp_path / "run", private_plan(tmp_path, profile, model={"name": "lda", "n_topics": 2}), five)
    party, played = make_party(folder, folder.members[0]), Played(folder.agreement.plan, folder.members)
    settled(played, party, PUBLIC)
    assert played.send(party, played.ask(TRAIN, played.fresh())) == wire.Refusal("NoSumKey")
    assert party.store.rows("SELECT * FROM failures") == []
