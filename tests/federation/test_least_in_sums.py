"""What a party demands of an opened sum binds everybody who could open it. The coordinator can neither ignore nor forget it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.contracts import Answer, Cohort, Least, Roster, Terms
from securetm.corpus.corpus import Corpus
from securetm.errors import Refused, TooFewParties
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.questions import TRAIN
from securetm.federation.refusal_errors import TooFewDocumentsPromised
from securetm.federation.wire import wire
from securetm.plans.party_file import PolicyChoice
from securetm.sessions.survivors import TooFewDocuments, TooFewInSum, check_least

from .conftest import small_plan
from .played import Played, make_party, refusals, settled
from .staged import WORDS, Stage
from .test_survivors import Site, begun, site

__all__ = ["site"]
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


def test_a_coordinator_that_promises_and_opens_less_gets_nothing_from_any_party(site: Site) -> None:
    demanding(site, least_parties=5)
    coordinator, state = begun(site)
    site.parties.away = {"north"}
    with pytest.raises((Refused, PartyRefused)):
        forgetful(coordinator).ask(TRAIN, state)
    name = "TooFewInSum" if coordinator.parties_open else "TooFewSurvivors"
    assert any(name in [found for found, _ in refusals(party)] for party in site.parties.inside.parties.values())


def test_a_coordinator_that_promises_less_is_refused_by_who_demands_more(site: Site) -> None:
    demanding(site, least_parties=5)
    coordinator, state = begun(site)
    coordinator._demands.clear()
    with pytest.raises(PartyRefused, match="CohortTooSmall"):
        coordinator.ask(TRAIN, state)


def test_documents_of_the_survivors_are_counted_as_the_roster_announces_them(site: Site) -> None:
    announcing(site)
    demanding(site, least_documents=5 * ANNOUNCED)
    coordinator, state = begun(site)
    assert coordinator.ask(TRAIN, state).survivors == site.folder.members
    site.parties.away = {"north"}
    with pytest.raises(TooFewDocuments, match="4 parties with 200 documents announced is below the 250"):
        coordinator.ask(TRAIN, state)


def test_a_coordinator_that_opens_fewer_documents_gets_nothing_from_any_party(site: Site) -> None:
    announcing(site)
    demanding(site, least_documents=5 * ANNOUNCED)
    coordinator, state = begun(site)
    site.parties.away = {"north"}
    with pytest.raises((Refused, PartyRefused)):
        forgetful(coordinator).ask(TRAIN, state)
    assert any("TooFewDocuments" in [found for found, _ in refusals(party)] for party in site.parties.inside.parties.values())


def test_a_coordinator_that_promises_fewer_documents_is_refused(site: Site) -> None:
    coordinator, state = begun(site)
    demanding(site, least_documents=300)  # the coordinator heard of none
    with pytest.raises(PartyRefused, match=TooFewDocumentsPromised.__name__):
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
    party = make_party("north", plan, corpora, tmp_path)
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
    party.store.close()


def test_what_the_round_promises_is_in_its_id(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan()
    party = make_party("north", plan, corpora, tmp_path)
    stage = Stage(party, Played(plan, tuple(corpora)))
    settled(stage.played, party, WORDS)
    ask = stage.played.ask(TRAIN, stage.played.fresh())
    for changed in ({"least_parties": 1}, {"least_documents": 1}):
        assert stage.says(stage.played.altered(ask, **changed)) == wire.Refusal("WrongRound")
    party.store.close()
