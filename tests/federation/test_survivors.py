"""Which parties are in a sum: nobody is taken out of it by asking again, and it holds no fewer than anybody demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.accounting.ledger import Ledger
from securetm.answers.route import compile_route
from securetm.contracts import Answer, Array, Cohort, Least, Roster, Terms
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.errors import BadSetting, Refused, TooFewParties
from securetm.federation.budget.prices import bill_of, calibrated
from securetm.federation.coordinator import rounds
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.coordinator.training import start
from securetm.federation.coordinator.words import new_words, tell_words, words_of_before
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore, read_stored
from securetm.federation.questions import HELD_OUT, JOINT, TRAIN, asked_of
from securetm.federation.refusal_errors import TooFewDocumentsPromised
from securetm.federation.simulation.simulation import InProcess, execute, make_party
from securetm.federation.soundness import agreed_apart
from securetm.federation.store import CoordinatorStore, read_arrays
from securetm.federation.transcript import Watch
from securetm.federation.wire import wire
from securetm.federation.wire.wire import Accepted, Invite, pack_reply, unpack_reply
from securetm.plans.agreement import agree
from securetm.plans.party_file import PolicyChoice
from securetm.plans.profiles import cohort_of
from securetm.plans.schema import Plan
from securetm.sessions.identities import public_identity
from securetm.sessions.survivors import (
    SurvivorList,
    SurvivorsChanged,
    SurvivorsMissing,
    TooFewDocuments,
    TooFewInSum,
    check_least,
)
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import SHARED, SUBJECTS, small_plan
from .killed_run import ended
from .played import Played, refusals, settled
from .played import make_party as lone_party
from .private import paid, private_plan
from .staged import WORDS, Stage


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


@pytest.fixture(params=quick(["masked", "masked_strict", "bfv", "ckks"], "masked_strict"))
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


# ---- another organisation under an old name --------------------------------------------------------------------------------


PUPPET = "water river lake boat " * 3


def replaced(site: Site, name: str, folder: Path) -> None:
    """Another organisation, which the coordinator owns, takes over a name in the roster of all others."""
    members, old = site.folder.members, site.parties.inside.parties[name]
    store = PartyStore(folder)
    keys = {**site.folder.keys, name: public_identity(store, OperatingSystem())}
    corpus = Corpus.from_strings([PUPPET] * 60, name=name)
    ledger = Ledger.open(folder / "ledger", name, None)
    puppet = Party(name, members, old.agreement, corpus, store, OperatingSystem(), keys, ledger, run=old.run)
    site.parties.inside.parties = {**site.parties.inside.parties, name: puppet}
    for party in site.parties.inside.parties.values():
        party.keys = keys
    site.folder = replace(site.folder, keys=keys)
    site.store.now("DELETE FROM store WHERE key LIKE 'survivors %'")  # this coordinator remembers what suits it


def table_of(party: Party) -> Array:
    """The table of words that a party answered, before it was masked."""
    terms = party.questions.make(JOINT, {}).terms
    profile = party.agreement.profile
    admitted = compile_route(terms, profile, cohort_of(profile, party.members)).terms
    ((vector,),) = party.store.rows("SELECT vector FROM answered WHERE question = ?", JOINT)
    return read_stored(bytes(vector), admitted, party.name)["cells"].astype(np.int64)


@pytest.mark.parametrize("site", quick(["masked", "masked_strict"], "masked"), indirect=True)
@pytest.mark.parametrize("bound", ["names", "identities"])
def test_a_party_under_an_old_name_does_not_show_the_vector_of_the_old_one(
    site: Site, tmp_path: Path, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sum with the old party, one with a puppet under its name. Where only names are bound, they differ in its vector."""
    if bound == "names":
        monkeypatch.setattr(Cohort, "who", property(lambda cohort: cohort.members))
    old = site.parties.inside.parties["west"]
    with_it = site.coordinator().ask(JOINT, {})
    replaced(site, "west", tmp_path / "puppet")
    again = site.coordinator()
    if bound == "identities":
        with pytest.raises(PartyRefused, match="AlreadyAnswered"):
            again.ask(JOINT, {})
        return
    without_it = again.ask(JOINT, {})
    assert with_it.total is not None
    assert without_it.total is not None
    own = table_of(site.parties.inside.parties["west"])  # the coordinator's puppet
    found = with_it.total["cells"].astype(np.int64) - without_it.total["cells"].astype(np.int64) + own
    assert np.array_equal(found, table_of(old))
    assert found.any()


@pytest.mark.parametrize("site", quick(["masked", "masked_strict", "bfv"], "masked", "bfv"), indirect=True)
def test_a_number_is_not_asked_again_of_a_party_under_an_old_name(site: Site, tmp_path: Path) -> None:
    first, state = begun(site)
    first.ask(TRAIN, state)
    replaced(site, "west", tmp_path / "puppet")
    again, _ = begun(site)
    with pytest.raises(PartyRefused, match="AnotherCohort"):
        again.ask(TRAIN, state)


def test_the_list_of_survivors_is_one_of_organisations(site: Site) -> None:
    """A party that kept a list opens the question over no list with another organisation under one of its names."""
    party = site.parties.inside.parties["north"]
    coordinator = site.coordinator()
    keys = tuple(site.folder.keys[name] for name in site.folder.members)
    cohort = Cohort(b"round", 0, site.folder.members, question=b"a question", identities=keys)
    roster = coordinator.aggregation.register.roster
    SurvivorList(party.store, roster, cohort).hold(site.folder.members)
    other = replace(cohort, identities=(*keys[:-1], bytes(32)))
    with pytest.raises(SurvivorsChanged):
        SurvivorList(party.store, roster, other).hold(site.folder.members)


# ---- what a party demands of a sum -----------------------------------------------------------------------------------------


ANNOUNCED = 50  # documents of each party
OPENING = (TooFewParties, TooFewInSum)


def demanding(site: Site, **policy: Any) -> None:
    """One of the parties demands something; the others demand nothing."""
    site.parties.inside.parties["west"].policy = PolicyChoice(**policy)


def announcing(site: Site) -> None:
    """A roster that says of each party how many documents it has at least."""
    told = dict.fromkeys(site.folder.members, ANNOUNCED)
    site.folder = replace(site.folder, holds=told)
    for party in site.parties.inside.parties.values():
        party.holds = told


def forgetful(coordinator: Coordinator) -> Coordinator:
    """A coordinator that promises the parties what they demand, and opens whatever it gets."""
    honest = coordinator.exchange

    def exchange(cohort: Cohort, terms: Terms, requests: Mapping[str, bytes]) -> tuple[Answer, tuple[int, int]]:
        return honest(replace(cohort, least=Least()), terms, requests)

    coordinator.exchange = exchange  # type: ignore[method-assign]
    return coordinator


def test_an_honest_coordinator_opens_no_smaller_sum_than_one_party_demands(site: Site) -> None:
    demanding(site, least_parties=5)
    coordinator, state = begun(site)
    site.parties.away = {"north"}
    with pytest.raises(OPENING):
        coordinator.ask(TRAIN, state)


@pytest.mark.parametrize("policy", [{"least_parties": 5}, {"least_documents": 5 * ANNOUNCED}], ids=str)
def test_a_coordinator_that_promises_and_opens_less_gets_nothing_from_any_party(policy: dict[str, int], site: Site) -> None:
    announcing(site)
    demanding(site, **policy)
    coordinator, state = begun(site)
    site.parties.away = {"north"}
    with pytest.raises((Refused, PartyRefused)):
        forgetful(coordinator).ask(TRAIN, state)
    few = "TooFewInSum" if coordinator.parties_open else "TooFewSurvivors"
    name = few if "least_parties" in policy else "TooFewDocuments"
    assert any(name in [found for found, _ in refusals(party)] for party in site.parties.inside.parties.values())


@pytest.mark.parametrize(
    ("policy", "name"), [({"least_parties": 5}, "CohortTooSmall"), ({"least_documents": 300}, TooFewDocumentsPromised.__name__)]
)
def test_a_coordinator_that_promises_less_is_refused_by_who_demands_more(policy: dict[str, int], name: str, site: Site) -> None:
    coordinator, state = begun(site)
    demanding(site, **policy)  # the coordinator heard of none
    with pytest.raises(PartyRefused, match=name):
        coordinator.ask(TRAIN, state)


def test_documents_of_the_survivors_are_counted_as_the_roster_announces_them(site: Site) -> None:
    announcing(site)
    demanding(site, least_documents=5 * ANNOUNCED)
    coordinator, state = begun(site)
    assert coordinator.ask(TRAIN, state).survivors == site.folder.members
    site.parties.away = {"north"}
    with pytest.raises(TooFewDocuments, match="4 parties with 200 documents announced is below the 250"):
        coordinator.ask(TRAIN, state)


def test_a_list_of_fewer_parties_than_the_round_promises_is_no_sum() -> None:
    """Also where the threshold of the aggregation would be content."""
    cohort = Cohort(bytes(32), 0, ("a", "b", "c", "d"), threshold=2, least=Least(parties=3))
    check_least(Roster(b"", b"", cohort.members), cohort, ("a", "b", "c"))
    with pytest.raises(TooFewInSum):
        check_least(Roster(b"", b"", cohort.members), cohort, ("a", "b"))


@pytest.mark.parametrize(
    ("policy", "name"), [({"least_parties": 2}, "CohortTooSmall"), ({"least_documents": 51}, "TooFewDocuments")]
)
def test_under_a_plain_sum_each_answer_is_a_sum_over_one_party(
    policy: dict[str, int], name: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = small_plan()
    party = lone_party("north", plan, corpora, tmp_path)
    party.policy = PolicyChoice(**policy)
    stage = Stage(party, Played(plan, tuple(corpora)))
    played = stage.played
    accepted = played.send(party, played.invite())
    assert isinstance(accepted, wire.Accepted)
    assert (accepted.least_parties, accepted.least_documents) == (
        policy.get("least_parties", 0),
        policy.get("least_documents", 0),
    )
    played.send(party, played.adopt(WORDS))
    least = {"least_parties": accepted.least_parties, "least_documents": accepted.least_documents}
    assert stage.says(played.ask(TRAIN, played.fresh(), **least)) == wire.Refusal(name)


def test_what_the_round_promises_is_in_its_id(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan()
    party = lone_party("north", plan, corpora, tmp_path)
    stage = Stage(party, Played(plan, tuple(corpora)))
    settled(stage.played, party, WORDS)
    ask = stage.played.ask(TRAIN, stage.played.fresh())
    for changed in ({"least_parties": 1}, {"least_documents": 1}):
        assert stage.says(stage.played.altered(ask, **changed)) == wire.Refusal("WrongRound")


# ---- rounds that are asked of some parties only ----------------------------------------------------------------------------


ROUNDS = 6


def sampled(profile: str, cohort: int, **more: object) -> Plan:
    return small_plan(profile=profile, federation__cohort=cohort, training__rounds=ROUNDS, model__batch=32, **more)


def trained_by(folder: Path) -> list[tuple[str, ...]]:
    """Who answered each training round."""
    store = CoordinatorStore(folder / "coordinator")
    rows = store.rows("SELECT survivors FROM rounds WHERE question = ? ORDER BY number", TRAIN)
    store.close()
    return [tuple(survivors.split()) for (survivors,) in rows]


@pytest.mark.parametrize(("profile", "cohort"), [("open", 2), ("masked", 4)])
def test_each_round_is_answered_by_the_parties_that_the_seed_draws(
    profile: str, cohort: int, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """All parties answer every other question."""
    plan = sampled(profile, cohort)
    execute(begin(tmp_path / "run", plan, five), Unwatched(), comparison=False)
    drawn = [asked_of(tuple(five), agree(plan), TRAIN, number) for number in range(ROUNDS)]
    assert trained_by(tmp_path / "run") == drawn
    assert {len(members) for members in drawn} == {cohort}
    assert len(set(drawn)) > 1
    store = CoordinatorStore(tmp_path / "run" / "coordinator")
    others = store.rows("SELECT survivors FROM rounds WHERE question != ?", TRAIN)
    store.close()
    assert others
    assert {survivors for (survivors,) in others} == {" ".join(five)}


@pytest.mark.slow
def test_a_killed_run_ends_as_if_it_had_not_been(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = sampled("masked", 4)
    for name in ("unbroken", "broken"):
        begin(tmp_path / name, plan, five)
    execute(reopen(tmp_path / "unbroken"), Unwatched(), comparison=False)
    assert ended(tmp_path / "broken", "resume", "round", 3) != 0
    execute(reopen(tmp_path / "broken"), Unwatched(), comparison=False)
    models = [read_arrays(tmp_path / name / "release" / "model.safetensors", bare=True)[0] for name in ("unbroken", "broken")]
    assert all(np.array_equal(models[0][key], models[1][key]) for key in models[0])


@pytest.mark.slow
def test_a_party_pays_for_the_rounds_that_it_answers_and_the_bill_counts_all(
    five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, "dp-distributed", federation__cohort=4, training__rounds=ROUNDS, privacy__epsilon=20.0)
    agreement = calibrated(agree(plan), len(five))
    assert bill_of(agreement, len(five)).rounds == ROUNDS  # no smaller loss is claimed because some parties are left out
    folder = begin(tmp_path / "run", plan, five)
    execute(folder, Unwatched(), comparison=False)
    answered = [asked_of(tuple(five), folder.agreement, TRAIN, number) for number in range(ROUNDS)]
    for name in five:
        assert len(paid(folder.ledger(name))) == sum(name in who for who in answered)


def test_a_party_refuses_another_sample(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = sampled("open", 2)
    party = lone_party("north", plan, corpora, tmp_path)
    stage = Stage(party, Played(plan, tuple(corpora)))
    settled(stage.played, party, WORDS)
    right = next(n for n in range(ROUNDS) if "north" in asked_of(tuple(corpora), agree(plan), TRAIN, n))
    drawn = asked_of(tuple(corpora), agree(plan), TRAIN, right)
    other = tuple(m for m in corpora if m == "north" or m not in drawn)
    for members in (other, tuple(corpora)):
        assert stage.says(stage.played.ask(TRAIN, stage.played.fresh(), number=right, members=members)) == wire.Refusal(
            "AnotherSample"
        )
    assert isinstance(stage.says(stage.played.ask(TRAIN, stage.played.fresh(), number=right, members=drawn)), wire.Accepted)


@pytest.mark.parametrize(
    ("profile", "cohort", "why"),
    [
        ("masked", 3, "is below 4"),
        ("bfv", 4, "trains from every answer"),
        ("masked_strict", 4, "solves the sums for each party's own"),
        ("fortress", 4, "solves the sums for each party's own"),
    ],
)
def test_too_small_a_sample_is_refused_before_documents_are_read(
    profile: str, cohort: int, why: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, profile, federation__cohort=cohort)
    with pytest.raises(BadSetting, match=why):
        begin(tmp_path / "run", plan, five)
    assert not (tmp_path / "run" / "parties").exists()


@pytest.mark.parametrize(("profile", "privacy"), [("masked_strict", {}), ("fortress", {"privacy__unit": "document"})])
def test_a_party_refuses_a_plan_whose_sample_breaks_what_its_profile_promises(
    profile: str, privacy: dict[str, str], five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = private_plan(tmp_path, profile, federation__cohort=4, **privacy)
    with pytest.raises(BadSetting, match="solves the sums for each party's own"):
        agreed_apart(plan, tuple(five))


@pytest.mark.parametrize("site", ["masked_strict"], indirect=True)
def test_where_a_coordinator_may_break_the_rules_a_party_answers_for_no_part_of_the_members(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator, state = begun(site)
    monkeypatch.setattr(rounds, "asked_of", lambda members, *_: members[:4])
    with pytest.raises(PartyRefused, match="AnotherSample"):
        coordinator.ask(TRAIN, state)


def test_a_plan_without_a_sample_keeps_its_hash() -> None:
    assert agree(small_plan()).digest == agree(small_plan(federation__cohort=0)).digest
    assert agree(small_plan()).digest != agree(small_plan(federation__cohort=2)).digest
