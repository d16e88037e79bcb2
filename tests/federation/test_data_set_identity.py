"""A budget belongs to a data set by the identity that its owner gave it, and to its documents by what is in them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.errors import Mistake, OpenToOthers
from securetm.federation.folder import alone_in
from securetm.federation.party.joining import Joining
from securetm.federation.party.preview import preview
from securetm.federation.party.state import PartyWatch
from securetm.federation.refusal_errors import NotAllowedHere
from securetm.federation.wire import wire

from .conftest import FIVE, texts
from .joined import NAMES, Organisations, trained
from .played import Played
from .private import public_words

PLAN = """
seed = {seed}
profile = "dp-distributed"
[model]
name = "prodlda"
n_topics = 3
hidden = 8
batch = 16
[vocabulary]
source = "file"
file = "{words}"
[origins]
vocabulary = "made up"
[training]
rounds = {rounds}
[privacy]
unit = "document"
epsilon = {epsilon}
"""


@pytest.fixture
def organisations(keys: Path, tmp_path: Path) -> Organisations:
    return Organisations.of(keys, tmp_path / "all", plan_of(tmp_path))


def plan_of(folder: Path, seed: int = 0, epsilon: float = 3.0, rounds: int = 2) -> str:
    return PLAN.format(seed=seed, epsilon=epsilon, rounds=rounds, words=public_words(folder))


def next_plan(organisations: Organisations, folder: Path) -> None:
    """Gives this party another plan. Another data set takes part in no run that was begun."""
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_of(folder, seed=1), "utf-8")


def spend(ready: Joining) -> None:
    """Spends a little of the ledger that this party has."""
    with alone_in(ready.home.data):
        party = ready.party(PartyWatch())
        assert party.ledger is not None
        party.ledger.charge(ready.run_name, Spend(GaussianDpEvent(8.0)), {"unit": "document", "question": "train"})
        party.close()


def spent(ready: Joining) -> float:
    """What the ledger of this party holds once it is opened."""
    with alone_in(ready.home.data):
        party = ready.party(PartyWatch())
        assert party.ledger is not None
        found = party.ledger.spent().epsilon
        party.close()
    return found


def test_another_plan_another_file_and_another_order_of_settings_meet_the_same_ledger(
    organisations: Organisations, tmp_path: Path
) -> None:
    first = organisations.prepared("numpy")
    spend(first)
    before = spent(first)
    assert before > 0
    folder = organisations.file("numpy").parent
    (folder / "plan.toml").write_text(plan_of(tmp_path, seed=1), "utf-8")
    (folder / "documents.jsonl").rename(folder / "moved.jsonl")
    file = organisations.file("numpy")
    file.write_text(file.read_text("utf-8").replace("documents.jsonl", "moved.jsonl"), "utf-8")
    second = organisations.prepared("numpy")
    assert second.home.run(second.agreement) != first.home.run(first.agreement)
    assert spent(second) == before


def test_a_run_that_was_begun_goes_on_with_no_other_data_set(organisations: Organisations) -> None:
    """The coordinator would ask the last question again. The others' kept noise cancels in the difference of the sums."""
    first = organisations.prepared("numpy")
    spend(first)
    before = spent(first)
    for documents in (FIVE["north"], FIVE["south"]):  # the same ones, and others
        organisations.bring("numpy", texts(documents, 40, 0))
        organisations.write("numpy", identity="as-if-new")
        with pytest.raises(Mistake, match="this run was begun with data set"):
            organisations.prepared("numpy").party(PartyWatch())
    organisations.bring("numpy", texts(FIVE["north"], 40, 0))
    organisations.write("numpy")
    assert spent(organisations.prepared("numpy")) == before  # nothing was entered elsewhere


def test_a_copy_under_another_identity_brings_along_what_was_spent(organisations: Organisations, tmp_path: Path) -> None:
    first = organisations.prepared("numpy")
    spend(first)
    before = spent(first)
    next_plan(organisations, tmp_path)
    organisations.write("numpy", identity="as-if-new")
    second = organisations.prepared("numpy")
    assert preview(second)["cost"]["spent_before"] == before
    assert spent(second) >= before
    ended = [path for path in first.home.ledgers.rglob("notes.ledger") if path.is_file()]
    assert [bool(Ledger.read(path).ended) for path in ended] == [True]
    organisations.write("numpy", identity="notes")  # and back again, to the run that it began
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_of(tmp_path), "utf-8")
    assert spent(organisations.prepared("numpy")) >= before


def test_a_part_of_the_documents_among_others_brings_it_along_too(organisations: Organisations, tmp_path: Path) -> None:
    first = organisations.prepared("numpy")
    spend(first)
    before = spent(first)
    next_plan(organisations, tmp_path)
    folder = organisations.file("numpy").parent
    lines = (folder / "documents.jsonl").read_text("utf-8").split("\n")[:3]
    organisations.bring("numpy", texts(FIVE["south"], 60, 77))
    (folder / "documents.jsonl").write_text("\n".join([*(folder / "documents.jsonl").read_text("utf-8").split("\n"), *lines]))
    organisations.write("numpy", identity="others")
    assert spent(organisations.prepared("numpy")) >= before


def test_the_ledger_of_an_identity_goes_on_if_every_text_has_changed(organisations: Organisations, tmp_path: Path) -> None:
    """An export that writes its day into each text would begin a new budget each day."""
    first = organisations.prepared("numpy")
    spend(first)
    before = spent(first)
    next_plan(organisations, tmp_path)
    changed = [f"{text} exported today" for text in texts(FIVE["north"], 40, 0)]
    organisations.bring("numpy", changed)
    second = organisations.prepared("numpy")
    assert preview(second)["cost"]["spent_before"] == before
    assert spent(second) == before
    assert len([path for path in second.home.ledgers.rglob("*.ledger") if path.is_file()]) == 1
    organisations.write("numpy", identity="others")
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_of(tmp_path, seed=2), "utf-8")
    assert spent(organisations.prepared("numpy")) >= before  # these texts are in that ledger now


def test_other_documents_under_another_identity_have_their_own_budget(organisations: Organisations, tmp_path: Path) -> None:
    spend(organisations.prepared("numpy"))
    next_plan(organisations, tmp_path)
    organisations.bring("numpy", texts(FIVE["south"], 60, 77))
    organisations.write("numpy", identity="others")
    assert spent(organisations.prepared("numpy")) == 0


def test_a_ledger_that_is_gone_is_not_begun_anew(organisations: Organisations) -> None:
    ready = organisations.prepared("numpy")
    spend(ready)
    for path in ready.home.ledgers.rglob("notes.ledger*"):
        path.unlink()
    with pytest.raises(Mistake, match="is gone, and it holds what was"):
        ready.party(PartyWatch())


def test_a_ledger_that_others_may_read_is_not_spent_from(organisations: Organisations) -> None:
    ready = organisations.prepared("numpy")
    spend(ready)
    for path in ready.home.ledgers.rglob("notes.ledger"):
        path.chmod(0o644)
    with pytest.raises(OpenToOthers):
        ready.party(PartyWatch())


def test_a_party_that_lost_the_store_of_a_run_cannot_take_part_in_what_it_answered(
    organisations: Organisations, tmp_path: Path
) -> None:
    """The home's ledger outlives the store: without it the party would draw another share of noise under the same number."""
    _, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    ready = organisations.prepared("numpy")
    shutil.rmtree(ready.home.run(ready.agreement))
    with alone_in(ready.home.data):
        party = ready.party(PartyWatch())
        played = Played(ready.agreement.plan, ready.roster.members)
        assert isinstance(played.send(party, played.invite()), wire.Accepted)
        assert ready.agreement.words is not None
        assert isinstance(played.send(party, played.adopt(ready.agreement.words)), wire.Accepted)
        for serial, number in enumerate((0, 1), start=1):
            asked = played.ask("train", played.fresh(), number=number, serial=serial)
            assert played.send(party, asked) == wire.Refusal("CannotTakePart")
        party.close()


def test_the_owner_of_the_data_set_sets_its_budget_and_no_plan_raises_it(organisations: Organisations, tmp_path: Path) -> None:
    organisations.write("numpy", privacy="epsilon = 1.5")
    ready = organisations.prepared("numpy")
    with alone_in(ready.home.data):
        party = ready.party(PartyWatch())
        assert party.ledger is not None
        assert party.ledger.budget.epsilon == 1.5
        party.close()
    organisations.write("numpy", policy='unit = "document"\nmost_epsilon = 2.5')
    with pytest.raises(NotAllowedHere, match="epsilon = 3"):
        organisations.prepared("numpy")


@pytest.mark.slow
def test_runs_over_two_data_sets_of_one_party_are_witnessed_apart(organisations: Organisations, tmp_path: Path) -> None:
    """The others remember the head of each ledger: another data set is no ledger that was replaced."""
    _, joined = trained(organisations, tmp_path / "first")
    assert joined.problems == {}
    report = joined.reports["numpy"]
    assert 0 < report["spent"]["epsilon"] <= 3.0
    assert report["spent"]["answers"] == 2
    organisations.bring("numpy", texts(FIVE["south"], 60, 77))
    organisations.write("numpy", identity="others")
    organisations.plan = plan_of(tmp_path, seed=1, epsilon=1.0)
    for name in NAMES:
        (organisations.file(name).parent / "plan.toml").write_text(organisations.plan, "utf-8")
    for name in NAMES[1:]:
        organisations.write(name, privacy="epsilon = 8")
    _, joined = trained(organisations, tmp_path / "second")
    assert joined.problems == {}
    assert joined.reports["numpy"]["spent"]["all_runs"] <= 1.0
    assert joined.reports["scipy"]["spent"]["all_runs"] > joined.reports["scipy"]["spent"]["epsilon"]


@pytest.mark.slow
def test_a_coordinator_that_begins_the_run_anew_gets_the_same_answers_for_no_other_charge(
    organisations: Organisations, tmp_path: Path
) -> None:
    """Another folder, another session: parties meet their own counters. What was answered last is answered again as it was."""
    organisations.plan = plan_of(tmp_path, rounds=1)
    for name in NAMES:
        (organisations.file(name).parent / "plan.toml").write_text(organisations.plan, "utf-8")
    first, joined = trained(organisations, tmp_path / "first")
    second, again = trained(organisations, tmp_path / "second")
    assert (joined.problems, again.problems) == ({}, {})
    assert all((first.state[name] == second.state[name]).all() for name in first.state)
    assert {name: again.reports[name]["spent"]["answers"] for name in NAMES} == dict.fromkeys(NAMES, 1)
