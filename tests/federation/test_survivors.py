"""A party that was in a sum cannot be taken out of it by asking again: neither by a lie nor by an honest new start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.coordinator.training import start
from securetm.federation.coordinator.words import new_words, tell_words, words_of_before
from securetm.federation.folder import RunFolder, begin
from securetm.federation.questions import HELD_OUT, JOINT, TRAIN
from securetm.federation.simulation.simulation import InProcess, make_party
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.federation.wire.wire import Accepted, Invite, pack_reply, unpack_reply
from securetm.sessions.survivors import SurvivorsMissing

from ..quick_part import quick
from .conftest import SHARED, SUBJECTS, small_plan


class _Killed(Exception):
    """The coordinator's end, in the middle of what it did."""


@dataclass
class _Reached:
    """The real parties, of which some are out of reach."""

    inside: InProcess
    away: set[str] = field(default_factory=set)
    cut: bool = False  # whether the last byte of every message of theirs is lost
    dies_at: int = -1  # so many times it is heard of everybody; then two parties hear of it, and it is gone

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        if self.dies_at == 0:
            dict(self.inside.ask(dict(list(requests.items())[:2]), most))
            raise _Killed()
        self.dies_at -= 1
        replies = self.inside.ask({name: message for name, message in requests.items() if name not in self.away}, most)
        return ((name, _cut(reply, name)) for name, reply in replies) if self.cut else replies

    def present(self) -> frozenset[str]:
        return self.inside.present() - self.away

    def close(self) -> None:
        self.inside.close()


def _cut(reply: bytes, sender: str) -> bytes:
    session, said = unpack_reply(reply, sender)
    assert isinstance(said, Accepted)
    return pack_reply(session, Accepted(tuple(parcel[:-1] for parcel in said.parcels)))


@dataclass
class Site:
    """A coordinator that may be started again while the parties go on."""

    folder: RunFolder
    parties: _Reached
    store: CoordinatorStore

    def coordinator(self) -> Coordinator:
        """A new start: it invites to a new session, as one that was killed does."""
        profile, folder = self.folder.agreement.profile, self.folder
        made = folder.members, folder.agreement, self.parties, self.store, OperatingSystem(), Watch(), folder.keys
        started = Coordinator(*made, holds=folder.holds)
        for name in folder.members:
            self.parties.inside.parties[name].session = None  # as after a restart of theirs
        started.tell(Invite(folder.agreement.digest, profile.digest, folder.members, 0))
        return started


@pytest.fixture(params=quick(["masked", "masked_strict", "bfv", "ckks"], "masked", "masked_strict", "bfv"))
def site(request: pytest.FixtureRequest, five: Mapping[str, Corpus], tmp_path: Path) -> Iterator[Site]:
    words = tmp_path / "words.txt"
    words.write_text("\n".join(sorted({*SHARED, *(w for subject in SUBJECTS.values() for w in subject)})), "utf-8")
    public = (
        {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": str(words)}
        if request.param in ("bfv", "ckks")
        else {}
    )
    folder = begin(tmp_path / "run", small_plan(profile=request.param, model__batch=34, **public), five)
    parties = _Reached(InProcess({name: make_party(folder, name) for name in folder.members}))
    store = CoordinatorStore(folder.coordinator)
    yield Site(folder, parties, store)
    parties.close()
    store.close()


def begun(site: Site) -> tuple[Coordinator, dict[str, np.ndarray]]:
    """A coordinator that has agreed on words, and the state it starts from."""
    coordinator = site.coordinator()
    known = (site.store.folder / "vocabulary.txt").exists()  # what was agreed before a new start holds
    tell_words(coordinator, words_of_before(coordinator) if known else new_words(coordinator))
    state = start(coordinator, coordinator.questions.vocabulary)
    return coordinator, dict(state)


def test_a_round_that_was_opened_is_opened_again_over_the_same_parties_only(site: Site) -> None:
    first, state = begun(site)
    opened = first.ask(TRAIN, state)
    again, _ = begun(site)
    same = again.ask(TRAIN, state)
    assert same.survivors == opened.survivors == site.folder.members
    if same.total is not None and opened.total is not None:
        assert all(np.array_equal(same.total[name], opened.total[name]) for name in same.total)
    site.parties.away = {site.folder.members[0]}
    third, _ = begun(site)
    with pytest.raises(SurvivorsMissing, match="begun before with north, from which"):
        third.ask(TRAIN, state)
    site.parties.away = set()
    assert begun(site)[0].ask(TRAIN, state).survivors == site.folder.members  # when it is there again, the run goes on


def test_who_was_missing_then_is_left_out_again(site: Site) -> None:
    first, state = begun(site)
    site.parties.away = {site.folder.members[0]}
    left = first.ask(TRAIN, state)
    assert left.survivors == site.folder.members[1:]
    site.parties.away = set()
    again, _ = begun(site)
    assert again.ask(TRAIN, state).survivors == site.folder.members[1:]
    assert again.ask(TRAIN, state).survivors == site.folder.members  # and is in the next round


def test_a_list_that_reached_only_some_parties_binds_all_of_them(site: Site) -> None:
    """The coordinator was killed while it named the list: whoever did not hear of it is no reason to make another."""
    first, state = begun(site)
    if first.aggregation.prepared < 1:
        first.prepare()
    site.parties.dies_at = 1  # its requests come first; then it names who survived
    with pytest.raises(_Killed):
        first.ask(TRAIN, state)
    site.parties.dies_at = -1
    site.parties.away = {site.folder.members[0]}
    with pytest.raises(SurvivorsMissing):
        begun(site)[0].ask(TRAIN, state)
    site.parties.away = set()
    assert begun(site)[0].ask(TRAIN, state).survivors == site.folder.members


def test_a_coordinator_that_forgets_its_list_is_refused(site: Site) -> None:
    first, state = begun(site)
    first.ask(TRAIN, state)
    site.store.now("DELETE FROM store WHERE key LIKE 'survivors %'")
    site.parties.away = {site.folder.members[0]}
    with pytest.raises(PartyRefused, match="SurvivorsChanged"):
        begun(site)[0].ask(TRAIN, state)


def test_how_good_a_model_is_is_told_over_one_list_too(site: Site) -> None:
    coordinator, state = begun(site)
    coordinator.ask(HELD_OUT, state)
    again, _ = begun(site)
    site.parties.away = {site.folder.members[0]}
    with pytest.raises(SurvivorsMissing):
        again.ask(HELD_OUT, state)


@pytest.mark.parametrize("number", quick([0, 1], 1))
def test_the_words_in_common_are_found_over_one_list(number: int, site: Site) -> None:
    """A question about the corpus alone is the same question at every number."""
    if site.folder.agreement.plan.vocabulary.source != JOINT:
        pytest.skip("under this profile the words are public")
    coordinator = site.coordinator()
    coordinator.ask(JOINT, {})
    site.parties.away, coordinator.numbers[JOINT] = {site.folder.members[0]}, number
    with pytest.raises(SurvivorsMissing):
        coordinator.ask(JOINT, {})
