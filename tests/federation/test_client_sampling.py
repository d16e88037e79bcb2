"""Training rounds that are asked of some parties only: whom the seed draws, what they pay, what a lying coordinator gets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting
from securetm.federation.budget.prices import bill_of, calibrated
from securetm.federation.coordinator import rounds
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.folder import begin, reopen
from securetm.federation.questions import TRAIN, asked_of
from securetm.federation.simulation.simulation import execute
from securetm.federation.soundness import agreed_apart
from securetm.federation.store import CoordinatorStore, read_arrays
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from .conftest import small_plan
from .killed_run import ended
from .played import Played, make_party, settled
from .private import paid, private_plan
from .staged import WORDS, Stage
from .test_survivors import Site, begun, site

__all__ = ["site"]

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
    party = make_party("north", plan, corpora, tmp_path)
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
    party.store.close()


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
