"""A question is asked of organisations, not of names: another organisation under an old name is another cohort."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from securetm.accounting.ledger import Ledger
from securetm.answers.route import compile_route
from securetm.contracts import Array, Cohort
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore, read_stored
from securetm.federation.questions import JOINT, TRAIN
from securetm.plans.profiles import cohort_of
from securetm.sessions.identities import public_identity
from securetm.sessions.survivors import SurvivorList, SurvivorsChanged

from ..quick_part import quick
from .test_survivors import Site, begun, site

__all__ = ["site"]
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
