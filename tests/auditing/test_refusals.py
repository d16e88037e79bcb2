"""What parties must refuse, each lie by its name; kept refusals are bound to what they speak of, beside their claims."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace as with_changes
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from securetm.aggregation.masked import round as masked_round
from securetm.aggregation.masked.round import MaskedPartyRound, vector_hash
from securetm.answers.block_sums import PartialSum
from securetm.auditing import evidence as kept_results
from securetm.auditing import runner
from securetm.auditing.bindings import refusals_bound_to
from securetm.auditing.evidence import (
    KeptRefusals,
    due_refusals,
    evidence_folder,
    read_all_evidence,
    read_all_refusals,
    record,
    refusals_of,
    stale_refusals,
    write_refusals,
)
from securetm.auditing.plans import AuditPlan, read_audit_plan
from securetm.auditing.record import RefusalRecord
from securetm.auditing.refusals import tried_below_minimum, tried_violations
from securetm.auditing.runner import audit
from securetm.auditing.runs import Demonstrations
from securetm.federation.party import state as party_state
from securetm.federation.party.failure_log import FailureLog
from securetm.federation.refusal_errors import BadState
from securetm.reports.audits.records import read_record
from securetm.reports.audits.threats import LIES, threats_of
from securetm.reports.audits.wording import headline, refusal_in_words
from securetm.stages import Unwatched

from ..cli.conftest import securetm
from ..quick_part import quick
from .conftest import PARTIES
from .copied_source import CopiedSource
from .tried import source

PROFILES = ("masked", "masked_strict", "dp-distributed", "ckks")
SWAPPED = "another vector behind what a party signed, put there on the way"
ALIKE = "weights of 3e38 for some words: a reply that tells whose documents have them"
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


@pytest.mark.parametrize("profile", quick(PROFILES, "masked_strict", "ckks"))
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


def not_held(one: RefusalRecord) -> bool:
    return (one.refused, one.by, refusal_in_words(one)) == (False, "", "NOT HELD: the party answered")


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


# ---- kept refusals ---------------------------------------------------------------------------------------------------------


LIE, BELOW = RefusalRecord("masked_strict", "a lie", 0, 0, True, "south", "WrongRound"), "24 documents of each of 5 parties"
FEW = RefusalRecord("masked_strict", BELOW, 96, 100, True, "south", "BelowMinimum")
ANSWERED = replace(LIE, attempt="another lie", refused=False, by="", reason="")
NOT_CLAIMED = replace(ANSWERED, reason="the profile does not claim that a coordinator cannot show parties different cohorts")
PLAN = with_changes(read_audit_plan("quick"), name="small", trials=(), refusals=("masked",), moves=("masked", "masked_strict"))


def made(*found: RefusalRecord, profile: str = "masked_strict", plan: str = "full") -> KeptRefusals:
    own, bound = tuple(replace(one, profile=profile) for one in found), refusals_bound_to(profile)
    return KeptRefusals(profile, plan, ("refusals", "moves"), own, 1.0, "2026-11-21", "3.11.7", bound)


def kept(folder: Path, *found: RefusalRecord, **changes: Any) -> Path:
    write_refusals(made(*found, **changes), folder)
    return folder


# ---- made, kept, made again ----------------------------------------------------------------------------------------


@pytest.fixture
def small(documents_file: Path, monkeypatch: pytest.MonkeyPatch) -> AuditPlan:
    """The runs are over few documents."""
    words: dict[str, Any] = {
        "vocabulary.min_documents": 1,
        "vocabulary.max_share": 1.0,
        "vocabulary.most_candidates": 1000,
        "model.n_topics": 5,
        "model.hidden": 16,
    }
    below, lies = runner.tried_below_minimum, runner.tried_violations
    monkeypatch.setattr(runner, "tried_below_minimum", partial(below, settings={**source(documents_file), **words}))
    tried = partial(lies, settings={**source(documents_file), "vocabulary.min_documents": 1})
    monkeypatch.setattr(runner, "tried_violations", tried)
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: PLAN)
    return PLAN


def renewed(plan: AuditPlan, folder: Path) -> tuple[str, ...]:
    """The profiles whose refusals were tried now."""
    return tuple(dict.fromkeys(one.profile for one in audit(plan, evidence=folder).refusals if not one.kept))


def test_what_was_refused_is_kept_and_made_again_only_where_it_is_stale(small: AuditPlan, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    assert due_refusals(small, folder) == ("masked", "masked_strict")
    assert renewed(small, folder) == ("masked", "masked_strict")
    masked, strict = read_all_refusals(folder)
    assert (masked.tried, strict.tried) == (("refusals", "moves"), ("moves",))
    assert [one.minimum for one in masked.refusals] == [100, 100] + [0] * (len(masked.refusals) - 2)
    assert all(one.refused for one in strict.refusals)
    assert [one.reason for one in masked.refusals if not one.refused] == [NOT_CLAIMED.reason]
    assert len(strict.refusals) > len(masked.refusals) > 15
    assert (stale_refusals(masked), stale_refusals(strict), read_all_evidence(folder)) == ((), (), ())
    assert renewed(small, folder) == ()
    write_refusals(replace(strict, bound={**strict.bound, "federation": "0" * 64}), folder)
    assert renewed(small, folder) == ("masked_strict",)
    assert read_all_refusals(folder)[1].refusals == strict.refusals
    assert [stale_refusals(one) for one in read_all_refusals(folder)] == [(), ()]


def test_what_a_plan_names_no_more_is_thrown_away_and_another_plan_s_stays(tmp_path: Path) -> None:
    kept(tmp_path, LIE, plan="small", profile="ckks")
    kept(tmp_path, LIE, plan="other", profile="bfv")
    none = with_changes(PLAN, refusals=(), moves=())
    assert renewed(none, tmp_path) == ()
    assert [one.profile for one in read_all_refusals(tmp_path)] == ["bfv"]


# ---- to what they are bound ----------------------------------------------------------------------------------------


ROLES = "what parties and the coordinator do"
_FEDERATION = "party/party party/answering store document_minimum questions wire/wire coordinator/rounds budget/witness".split()
MAKES_STALE = {
    **{f"federation/{name}.py": ROLES for name in _FEDERATION},
    "aggregation/masked/round.py": "the aggregation of the profile dp-distributed",
    "mechanisms/sampling.py": "a mechanism of the profile dp-distributed",
    "accounting/composition.py": "the accounting of the epsilon of dp-distributed",
    "auditing/refusals.py": "what tries the parties' refusals",
    "auditing/runs.py": "what tries the parties' refusals",
    "auditing/runner.py": "",
    "reports/audits/wording.py": "",
}


@pytest.mark.slow  # test_evidence.py shows quickly that a changed file has its name
@pytest.mark.parametrize("changed", MAKES_STALE)
def test_what_a_changed_file_makes_stale(copied: CopiedSource, changed: str) -> None:
    before, said = made(LIE, profile="dp-distributed"), MAKES_STALE[changed]
    assert stale_refusals(before) == ()
    copied.change(changed)
    assert (f"{said} changed since" in stale_refusals(before)) if said else not stale_refusals(before)


# ---- an audit that goes on -----------------------------------------------------------------------------------------


def test_a_whole_audit_shows_kept_refusals_as_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = with_changes(PLAN, refusals=("masked_strict",), moves=("masked_strict", "masked"))
    monkeypatch.setattr(kept_results, "read_audit_plan", lambda name: plan)
    kept(tmp_path, FEW, LIE, ANSWERED, plan="small")
    monkeypatch.setattr(runner, "tried_violations", lambda name, _: (replace(LIE, profile=name),))
    found = audit(plan, evidence=tmp_path)
    assert [(one.profile, one.attempt) for one in found.refusals] == [
        ("masked_strict", BELOW),
        ("masked_strict", "a lie"),
        ("masked_strict", "another lie"),
        ("masked", "a lie"),
    ]
    assert [bool(one.kept) for one in found.refusals] == [True, True, True, False]
    assert refusal_in_words(found.refusals[1]) == "refused by the party “south” (WrongRound); kept since 2026-11-21"
    assert [one.attempt for one in found.broken_promises] == ["another lie"]
    assert headline(found).startswith("NOT HELD: parties should have refused another lie (profile masked_strict). ")
    assert found.made > "2026-11-21"  # what was tried now
    (tmp_path / "audit.json").write_text(json.dumps(record(found, 0)), "utf-8")
    assert read_record(tmp_path / "audit.json").refusals == found.refusals


# ---- beside the claims that rest on them ---------------------------------------------------------------------------


def on_claims(folder: Path, profile: str = "masked_strict") -> dict[str, Any]:
    facts = threats_of(profile, folder=folder)
    (coordinator,) = (one for one in facts["threat_models"][0]["adversaries"] if one["adversary"] == "coordinator")
    return {one["claim"]: one for one in coordinator["required"]}


RESTING = ("cannot speak for a party", "cannot show parties different cohorts")


def test_claims_that_rest_on_refusing_show_how_many_lies_were_refused(tmp_path: Path) -> None:
    found = on_claims(kept(tmp_path, FEW, LIE, replace(LIE, attempt="a second lie")))
    for claim in RESTING:
        (lies,) = found[claim]["lies"]
        assert (lies["attempt"], lies["verdict"], lies["refused"], lies["tried"]) == (LIES, "not refuted", 2, 2)
        assert (lies["date"], lies["stale"], found[claim]["planned"]) == ("2026-11-21", [], [])
        assert found[claim]["result"] == "not refuted"
    assert found["sees only sums"]["lies"] == []
    said = " ".join(securetm("threats", "masked_strict", "--evidence", str(tmp_path)).out.split())
    assert "2 of 3 were tried, some of them with fewer helpers than are feared, none broken" in said
    assert "minimum of 100: 1 of 1 refused, 2026-11-21" in said


def test_a_broken_promise_is_said_and_exits_1(tmp_path: Path) -> None:
    kept(tmp_path, FEW, LIE, ANSWERED)
    assert {on_claims(tmp_path)[claim]["result"] for claim in RESTING} == {"refuted"}
    said = securetm("threats", "masked_strict", "--evidence", str(tmp_path), "--json")
    assert said.code == 1
    assert said.json["refusals"]["not_held"] == ["another lie"]
    assert said.json["refusals"]["lies"] == {"tried": 2, "refused": 1}
    assert "NOT HELD: parties should have refused another lie." in " ".join(said.err.split())


def test_a_lie_that_is_answered_and_not_claimed_to_be_refused_breaks_nothing(tmp_path: Path) -> None:
    kept(tmp_path, LIE, NOT_CLAIMED)
    found = on_claims(tmp_path)
    assert [found[claim]["result"] for claim in RESTING] == ["not refuted", "refuted"]
    kept(tmp_path, LIE, NOT_CLAIMED, profile="masked")
    said = securetm("threats", "masked", "--evidence", str(tmp_path), "--json")
    assert (said.code, said.json["refusals"]["not_held"]) == (0, [])
    words = " ".join(said.err.split())
    assert "Lies told to parties: 1 of 2 lies refused" in words
    assert "the profile does not claim that a coordinator cannot show parties different cohorts" in words


def test_stale_lies_are_said_to_be_and_count_as_not_tried(tmp_path: Path) -> None:
    one = made(LIE)
    write_refusals(replace(one, bound={**one.bound, "federation": "0" * 64}), tmp_path)
    found = on_claims(tmp_path)
    assert [found[claim]["result"] for claim in RESTING] == ["never tried", "never tried"]
    assert found[RESTING[0]]["lies"][0]["stale"] == ["what parties and the coordinator do changed since"]
    assert "stale: what parties and the coordinator" in " ".join(
        securetm("threats", "masked_strict", "--evidence", str(tmp_path)).out.replace("│", " ").split()
    )
