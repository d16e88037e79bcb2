"""A budget belongs to a data set by its owner's name for it, and to its documents; delta is judged by those of all parties."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.corpus.corpus import Corpus
from securetm.credentials.homes import announced as announce
from securetm.credentials.key_requests import read_request, write_request
from securetm.errors import Mistake, OpenToOthers
from securetm.federation.doctor import examined
from securetm.federation.document_minimum import DeltaTooLarge, others_hold, units_of
from securetm.federation.folder import alone_in, begin
from securetm.federation.party.joining import Joining
from securetm.federation.party.preview import preview
from securetm.federation.party.state import PartyWatch
from securetm.federation.refusal_errors import NotAllowedHere
from securetm.plans.agreement import agree

from ..cli.conftest import securetm
from .conftest import FIVE, texts
from .joined import NAMES, Organisations, trained
from .private import paying_parties, private_plan, public_words

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
    with pytest.raises(Mistake, match="is gone, and it holds what was"):
        organisations.prepared("numpy")
    assert "is gone, and it holds what was" in bad_ledgers(ready)


def bad_ledgers(ready: Joining) -> str:
    """What `securetm doctor` says of ledgers that are not good."""
    said = next(one for one in examined(ready.home.path, None) if one.what == "ledgers")
    assert (said.verdict, bool(said.to_do)) == ("bad", True)
    return said.found


@pytest.mark.parametrize(
    ("owner", "kept", "looked"),
    [
        ("numpy", "is another ledger than the one", "is another ledger than the one"),
        ("pandas", "is another ledger than the one", "is the ledger of pandas, and this is the home of numpy"),
    ],
)
def test_another_ledger_does_not_pass_for_that_of_these_documents(
    organisations: Organisations, owner: str, kept: str, looked: str
) -> None:
    ready = organisations.prepared("numpy")
    spend(ready)
    (path,) = ready.home.ledgers.glob("*/notes.ledger")
    assert ready.agreement.budget is not None
    for one in path.parent.glob("notes.ledger*"):
        one.unlink()
    Ledger.open(path, owner, ready.agreement.budget).close()
    with pytest.raises(Mistake, match=kept):
        organisations.prepared("numpy")
    with pytest.raises(Mistake, match=kept):
        ready.party(PartyWatch())
    assert looked in bad_ledgers(ready)


def test_ledgers_without_the_list_of_their_documents_are_not_read(organisations: Organisations) -> None:
    ready = organisations.prepared("numpy")
    spend(ready)
    (ready.home.ledgers / "documents.sqlite").unlink()
    with pytest.raises(Mistake, match="no list of the documents"):
        organisations.prepared("numpy")
    assert "no list of the documents" in bad_ledgers(ready)


def test_a_ledger_that_others_may_read_is_not_spent_from(organisations: Organisations) -> None:
    ready = organisations.prepared("numpy")
    spend(ready)
    for path in ready.home.ledgers.rglob("notes.ledger"):
        path.chmod(0o644)
    with pytest.raises(OpenToOthers):
        ready.party(PartyWatch())


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


# ---- the documents of all parties ------------------------------------------------------------------------------------------


def test_a_delta_that_each_party_would_accept_is_refused_for_all_of_them(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Five of 300 accepted .003, one of 1,500 documents whole."""
    all_units = sum(len(corpus) for corpus in five.values())
    delta = 1.5 / all_units
    assert all(delta * len(corpus) < 1 for corpus in five.values())
    with pytest.raises(DeltaTooLarge, match=f"all parties together.*not below 1 / {all_units}"):
        begin(tmp_path / "run", private_plan(tmp_path, "dp-local", privacy__delta=delta), five, ledgers=tmp_path / "ledgers")
    assert not (tmp_path / "ledgers").exists()


def test_persons_are_counted_where_they_are_protected(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    persons = {name: corpus.replace(persons=np.arange(len(corpus)) // 10) for name, corpus in five.items()}
    delta = 1.5 / sum(len(corpus) for corpus in five.values())
    begin(tmp_path / "run", private_plan(tmp_path, "dp-local", privacy__delta=delta), persons)  # a tenth as many of them


def test_above_a_tenth_it_is_told(tmp_path: Path) -> None:
    assert sentence_delta(1e-5, 10_000) is None
    told = sentence_delta(1.01e-5, 10_000)
    assert told is not None
    assert "above 1 / (10 N)" in told
    refused = sentence_delta(1e-4, 10_000)
    assert refused is not None
    assert "is not below 1 / documents" in refused


@pytest.mark.slow
def test_the_command_tells_it_before_it_trains(tmp_path: Path) -> None:
    rows = [{"text": text, "party": name} for n, name in enumerate(FIVE) for text in texts(FIVE[name], 60, n)]
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    common = ("--corpus", str(tmp_path / "notes.jsonl"), "--partition", "column", "--profile", "dp-local", "--vocabulary")
    more = ("english", "--rounds", "1", "--topics", "2", "--no-comparison", "--set")
    told = securetm("run", *common, *more, "privacy.delta=0.0005", "--out", str(tmp_path / "told"))
    assert "above 1 / (10 N) = 0.000333 for N = 300 documents" in " ".join(told.err.split())
    refused = securetm("run", *common, *more, "privacy.delta=0.004", "--out", str(tmp_path / "refused"))
    assert refused.code == 2
    assert "not below 1 / 300" in " ".join(refused.err.split())


# ---- what a roster announces -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def announced(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys of five parties that each say that they hold forty documents at least."""
    folder = tmp_path_factory.mktemp("announced") / "trial"
    shutil.copytree(keys, folder)
    requests = []
    for name in NAMES:
        home = folder / "parties" / name / "home"
        made = announce(home, 40, None)
        write_request(folder / f"{name}.request", made)
        assert read_request(folder / f"{name}.request").holds == 40
        requests.append(str(folder / f"{name}.request"))
    roster = folder / "coordinator" / "roster.toml"
    issued = securetm("keys", "issue", *requests, "--roster", str(roster), "--home", str(roster.parent / "home"), "--json")
    assert issued.code == 0, issued.err
    for name in NAMES:
        home = folder / "parties" / name / "home"
        told = ("--home", str(home), "--fingerprint", issued.json["fingerprint"], "--json")
        accepted = securetm("keys", "accept", str(roster), *told)
        assert accepted.code == 0, accepted.err
        assert {line["name"]: line["holds"] for line in accepted.json["changes"]} == {
            "coordinator": 0,
            **dict.fromkeys(NAMES, 40),
        }
        (folder / "parties" / name / "roster.toml").write_bytes(roster.read_bytes())
    return folder


@pytest.mark.slow
def test_a_party_judges_delta_by_what_all_say_that_they_hold(announced: Path, tmp_path: Path) -> None:
    organisations = Organisations.of(announced, tmp_path / "all", plan_of(tmp_path))
    assert organisations.prepared("numpy").roster.holds == dict.fromkeys(NAMES, 40)
    delta = 1.5 / 200
    assert delta * 40 < 1
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_with_delta(organisations.plan, delta), "utf-8")
    with pytest.raises(DeltaTooLarge, match="not below 1 / 200"):
        organisations.prepared("numpy")
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_with_delta(organisations.plan, 0.0009), "utf-8")
    joining = organisations.prepared("numpy")
    (told,) = joining.warnings
    assert "N = 200 documents" in told
    slovenian = tmp_path / "posts.csv"
    slovenian.write_text("text\n" + "Občina bo letos obnovila cesto med šolo in muzejem ker je že zelo slaba\n" * 5, "utf-8")
    theirs = replace(joining.file, data=replace(joining.file.data, source=str(slovenian)))
    assert "read as Slovenian" in replace(joining, file=theirs).warnings[-1]  # who holds them is told, and nobody else


def test_the_coordinator_refuses_it_before_it_invites_anybody(announced: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    roster = announced / "coordinator" / "roster.toml"
    settings = {"roster": roster, "keys": roster.parent / "home" / "keys", "listen": "127.0.0.1:0", "out": tmp_path / "out"}
    own = "[coordinator]\n" + "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    plan.write_text(plan_with_delta(plan_of(tmp_path), 1.5 / 200) + own, "utf-8")
    refused = securetm("serve", str(plan))
    assert refused.code == 2, refused.err
    assert "the roster: a delta of 0.0075 is not below 1 / 200" in " ".join(refused.err.split())


def plan_with_delta(plan: str, delta: float) -> str:
    assert "[privacy]\n" in plan
    lines = [line for line in plan.splitlines() if not line.startswith("delta")]
    return "\n".join(lines).replace("[privacy]", f"[privacy]\ndelta = {delta}") + "\n"


def test_a_party_that_holds_less_than_it_says_does_not_start(announced: Path, tmp_path: Path) -> None:
    organisations = Organisations.of(announced, tmp_path / "all", plan_of(tmp_path))
    organisations.bring("numpy", texts(FIVE["south"], 39, 1))
    with pytest.raises(Mistake, match="fewer than the 40"):
        organisations.prepared("numpy")


def test_without_announcements_the_minimum_of_the_profile_is_known_of_each(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Under dp-distributed every party brings its part of the 100 documents that each sum has to have."""
    profile = agree(private_plan(tmp_path, "dp-distributed")).profile
    least = others_hold("north", {}, profile, tuple(five))
    assert least == 4 * 25  # four of five stay in a sum at least
    assert others_hold("north", {"south": 60}, profile, tuple(five)) == 60 + 3 * 25
    party = next(iter(paying_parties(private_plan(tmp_path, "dp-distributed"), five, tmp_path).values()))
    assert units_of(party.corpus, agree(private_plan(tmp_path, "dp-distributed")).unit) == len(five["north"])
