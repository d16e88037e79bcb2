"""What parties must refuse: sums below the least number of documents, and each lie of a coordinator, by its name."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.accounts import RunAccount
from securetm.aggregation.masked import round as masked_round
from securetm.aggregation.masked.memory import Prekeys
from securetm.aggregation.masked.round import MaskedPartyRound, vector_hash
from securetm.answers.block_sums import PartialSum
from securetm.auditing.evidence import evidence_folder, refusals_of
from securetm.auditing.record import RefusalRecord
from securetm.auditing.refusals import tried_below_minimum, tried_violations
from securetm.auditing.runs import Demonstrations
from securetm.federation.budget.guard import BudgetGuard
from securetm.federation.budget.signing import LedgerWitness
from securetm.federation.party import state as party_state
from securetm.federation.party.failure_log import FailureLog
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.refusal_errors import BadState
from securetm.reports.audits.wording import refusal_in_words
from securetm.stages import Unwatched

from .conftest import PARTIES
from .tried import source

PROFILES = ("masked", "masked_strict", "dp-distributed", "ckks")
SWAPPED = "another vector behind what a party signed, put there on the way"
AGAIN = "a question that was answered, about other weights after another invitation"
CARRIED_ON = "a round from before the last invitation, carried on"
ALIKE = "weights of 3e38 for some words: a reply that tells whose documents have them"
PUT_BACK = "a ledger that was put back and spent from elsewhere until it is longer"
APART = "another list of survivors for one party than for the others"
UNCLAIMED = "the profile does not claim that a coordinator cannot show parties different cohorts"


@pytest.fixture
def settings(documents_file: Path) -> dict[str, Any]:
    return {**source(documents_file), "vocabulary.min_documents": 1}


def tried(profile: str, settings: dict[str, Any], place: Path) -> dict[str, RefusalRecord]:
    found = tried_violations(profile, Demonstrations(place, Unwatched()), settings)
    assert len({one.attempt for one in found}) == len(found)
    assert [one.refused for one in found] == sorted(one.refused for one in found)  # what was answered stands first
    assert {one.profile for one in found} == {profile}
    return {one.attempt: one for one in found}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_lie_is_refused_by_its_name_or_said_to_be_answered(
    profile: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """As the kept results say, which people read."""
    found, kept = tried(profile, settings, tmp_path), refusals_of(profile, evidence_folder())
    assert kept is not None
    assert {attempt: one.reason for attempt, one in found.items()} == {
        one.attempt: one.reason for one in kept.refusals if not one.minimum
    }
    assert {one.attempt: one.reason for one in found.values() if not one.refused}.items() <= {(APART, UNCLAIMED)}
    by = {attempt: one.by for attempt, one in found.items() if one.refused}
    others = {SWAPPED: ("coordinator",), ALIKE: ("every party",)}
    assert all(one in others.get(attempt, PARTIES) for attempt, one in by.items())


OTHER = "other weights for one party than for the others in the same round"
BLIND = "securetm.federation.questions.state_digest"


def not_held(one: RefusalRecord) -> bool:
    return (one.refused, one.by, refusal_in_words(one)) == (False, "", "NOT HELD: the party answered")


@pytest.mark.slow
def test_parties_that_do_not_look_at_the_weights_are_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BLIND, lambda *_: b"")
    assert not_held(tried("masked_strict", settings, tmp_path)[OTHER])


def test_parties_that_do_not_look_at_signatures_are_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MaskedPartyRound, "_check_signatures", lambda _, __, reader: reader.rest())
    found = tried("masked_strict", settings, tmp_path)
    assert not_held(found["the real list with nobody's signature"])
    assert not_held(found[APART])


class AnyHash(bytes):
    """A hash that a party sends as it is, and that equals every other one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


def test_a_coordinator_that_does_not_look_at_the_vector_is_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masked_round, "vector_hash", lambda vector: AnyHash(vector_hash(vector)))
    assert not_held(tried("masked", settings, tmp_path)[SWAPPED])


@pytest.mark.slow
def test_parties_that_answer_a_number_about_anything_are_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PartyStore, "check_asked", lambda *_: None)
    assert not_held(tried("masked", settings, tmp_path)[AGAIN])


@pytest.mark.slow
def test_parties_that_keep_a_round_over_an_invitation_are_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join = Party._join

    def keeping(party: Party, *invited: Any) -> tuple[bytes, ...]:
        kept = party.session.open_exchange if party.session is not None else None
        said = join(party, *invited)
        assert party.session is not None
        party.session.open_exchange = kept
        return said

    monkeypatch.setattr(Party, "_join", keeping)
    monkeypatch.setattr(Prekeys, "check_current", lambda *_: None)
    assert not_held(tried("masked_strict", settings, tmp_path)[CARRIED_ON])


def test_parties_that_refuse_what_is_not_finite_are_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they did once: whose documents had the word was then told by a name."""
    finite = PartialSum.finite

    def refusing(whole: PartialSum) -> PartialSum:
        if finite(whole).lost:
            raise BadState("it is not finite")
        return whole

    monkeypatch.setattr(PartialSum, "finite", refusing)
    monkeypatch.setattr(FailureLog, "logged", lambda _: nullcontext())
    assert not_held(tried("masked", settings, tmp_path)[ALIKE])


@pytest.mark.slow
def test_a_budget_that_nobody_keeps_is_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BudgetGuard, "_allowed", lambda *_: 1)
    monkeypatch.setattr(Ledger, "_check_affordable", lambda *_: None)
    monkeypatch.setattr(RunAccount, "paid_for", lambda *_: None)
    assert not_held(tried("dp-local", settings, tmp_path)["one question more than the budget reaches"])


@pytest.mark.slow
def test_parties_that_do_not_look_at_links_are_found_out(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They look at lengths only: the longer ledger is the newer one."""
    monkeypatch.setattr(LedgerWitness, "_follows", lambda _, head, known, __: head.count > known.count)
    assert not_held(tried("dp-distributed", settings, tmp_path)[PUT_BACK])


# ---- below the least number of documents -----------------------------------------------------------------------------


@pytest.fixture
def few_settings(settings: dict[str, Any]) -> dict[str, Any]:
    words = {"vocabulary.max_share": 1.0, "vocabulary.most_candidates": 1000}
    return {**settings, **words, "model.n_topics": 5, "model.hidden": 16}


def test_both_runs_are_refused_by_name(few_settings: dict[str, Any], tmp_path: Path) -> None:
    batches, documents = tried_below_minimum("masked", Demonstrations(tmp_path, Unwatched()), few_settings)
    assert (batches.refused, batches.reason) == (True, "BelowMinimum")
    assert (documents.refused, documents.reason) == (True, "TooFewToTakePart")
    for refusal in (batches, documents):
        assert refusal.by in PARTIES
        assert (refusal.documents, refusal.minimum) == (96, 100)  # of all five it would be 120
        assert refusal.attempt.startswith("24 documents of each of 5 parties")
        assert refusal.attempt.endswith("96 in a sum over 4 of them")


def test_a_run_that_goes_on_is_said_to_go_on(
    few_settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With parties that do not look how many documents they have."""
    monkeypatch.setattr(party_state, "check_share", lambda *_: None)
    batches, documents = tried_below_minimum("masked", Demonstrations(tmp_path, Unwatched()), few_settings)
    assert batches.refused
    assert (documents.refused, documents.by, documents.reason) == (False, "", "")


def test_where_any_sum_is_large_enough_nothing_is_begun(few_settings: dict[str, Any], tmp_path: Path) -> None:
    assert tried_below_minimum("open", Demonstrations(tmp_path / "none", Unwatched()), few_settings) == ()
    assert not (tmp_path / "none").exists()


def test_a_profile_that_admits_only_a_public_list_gets_one(few_settings: dict[str, Any], tmp_path: Path) -> None:
    found = tried_below_minimum("ckks", Demonstrations(tmp_path, Unwatched()), few_settings)
    assert [one.reason for one in found] == ["BelowMinimum", "TooFewToTakePart"]
    assert all(one.refused for one in found)
