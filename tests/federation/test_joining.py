"""A party that joins out of its own files: the same model, its own results, and all that is refused before it connects."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from securetm.credentials.roster import changes
from securetm.errors import Failed, Mistake, OpenToOthers
from securetm.federation.coordinator.coordinator import Trained
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.folder import NotARun, RunBusy, alone_in
from securetm.federation.party.joining import join
from securetm.federation.party.preview import preview
from securetm.federation.party.result import REPORT
from securetm.federation.party.state import PartyWatch
from securetm.federation.refusal_errors import NotAllowedHere
from securetm.federation.store import DamagedStore, read_json
from securetm.federation.topic_labels import TopicLabels
from securetm.federation.wire import wire
from securetm.models.stored_model import write_model
from securetm.reports.topic_page import shown_topics, topic_page
from securetm.runs.finished import FinishedRun, load
from securetm.runs.kept_runs import PARTY, delete, found_run, runs_in

from .conftest import FIVE, texts
from .joined import NAMES, PLAN, Joined, Organisations, trained
from .played import Played, settled
from .staged import WORDS


@pytest.fixture
def organisations(keys: Path, tmp_path: Path) -> Organisations:
    return Organisations.of(keys, tmp_path / "all", PLAN)


@pytest.fixture(scope="module")
def landed(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Organisations, Trained, Joined]:
    """Organisations that have trained together, for tests that change nothing of theirs."""
    folder = tmp_path_factory.mktemp("landed")
    made = Organisations.of(keys, folder / "all", PLAN)
    return made, *trained(made, folder / "coordinator")


Landed = tuple[Organisations, Trained, Joined]


@pytest.fixture
def after(landed: Landed, tmp_path: Path) -> tuple[Organisations, dict[str, Path]]:
    """A copy of organisations that have trained together, and where each has its result."""
    shutil.copytree(landed[0].folder, tmp_path / "all")
    where = {name: Path(report["directory"]).relative_to(landed[0].folder) for name, report in landed[2].reports.items()}
    return Organisations(tmp_path / "all", PLAN), {name: tmp_path / "all" / where[name] for name in NAMES}


def test_model_words_figures_and_report_land_at_every_party(landed: Landed) -> None:
    _, result, joined = landed
    assert joined.problems == {}
    for name in NAMES:
        report = joined.reports[name]
        model = load(Path(report["directory"]) / "release/model.safetensors")
        assert model.vocabulary == result.vocabulary
        assert all(np.array_equal(model.state[part], result.state[part]) for part in result.state)
        assert report["rounds"] == 2
        assert report["answered"] == {"joint": 1, "train": 2, "coherence": 1, "held_out": 1}
        assert {"npmi", "held_out", "diversity"} <= set(report["quality"])
        assert read_json(Path(report["directory"]) / REPORT) == report


@pytest.mark.slow
def test_a_federation_goes_on_from_the_model_that_each_party_has(
    landed: Landed, after: tuple[Organisations, dict[str, Path]], tmp_path: Path
) -> None:
    organisations, results = after
    TopicLabels({1: "water"}).write(results["torch"])
    for seed, (name, subject) in enumerate(zip(NAMES, FIVE, strict=True)):  # a year later, with other documents
        organisations.write(name, identity="next-year")
        organisations.bring(name, texts(FIVE[subject], 40, 90 + seed))
    plans = {name: _going_on_from(folder / "release/model.safetensors") for name, folder in results.items()}
    for name, plan in plans.items():
        (organisations.file(name).parent / "plan.toml").write_text(plan, "utf-8")
    organisations.plan = plans["numpy"]
    assert len({organisations.prepared(name).agreement.digest for name in NAMES}) == 1  # wherever each has its file
    second, joined = trained(organisations, tmp_path / "next coordinator")
    assert joined.problems == {}
    assert second.vocabulary == landed[1].vocabulary
    report = joined.reports["torch"]
    assert report["answered"]["train"] == 2
    assert "joint" not in report["answered"]  # the words came with the model
    assert [row["topic"] for row in report["moved"]] == [0, 1, 2]
    assert all(row["distance"] < 0.5 for row in report["moved"])
    finished = FinishedRun.open(Path(report["directory"]))
    assert finished.labels().texts == {1: "water"}
    assert finished.moved() == report["moved"]


def test_a_party_with_another_earlier_model_takes_no_part(after: tuple[Organisations, dict[str, Path]], tmp_path: Path) -> None:
    organisations, results = after
    theirs = load(results["numpy"])
    other = {**theirs.state, "counts": theirs.state["counts"][::-1].copy()}
    write_model(tmp_path / "other.safetensors", theirs.model, other, theirs.vocabulary)
    theirs.save(tmp_path / "same.safetensors")
    plans = {name: _going_on_from(tmp_path / "same.safetensors") for name in NAMES}
    plans["torch"] = _going_on_from(tmp_path / "other.safetensors")
    for name, plan in plans.items():
        (organisations.file(name).parent / "plan.toml").write_text(plan, "utf-8")
    digests = {name: organisations.prepared(name).agreement.digest for name in NAMES}
    assert [name for name in NAMES if digests[name] != digests["numpy"]] == ["torch"]
    organisations.plan = plans["numpy"]
    with pytest.raises(PartyRefused, match="torch refused"):
        trained(organisations, tmp_path / "next coordinator")


def test_a_party_deletes_its_results_and_keeps_what_it_has_to_remember(
    landed: Landed, after: tuple[Organisations, dict[str, Path]]
) -> None:
    organisations, results = after
    home = organisations.home("torch")
    (run,) = runs_in(home)
    assert (run.kind, run.model, run.rounds, run.finished) == (PARTY, "lda", 2, True)
    assert run.perplexity == landed[2].reports["torch"]["quality"]["held_out"]
    assert Path(run.directory) == found_run(run.name, home) == results["torch"]
    left = delete(results["torch"])
    assert any(name.endswith(".sqlite") for name in left)  # its counters: the same question would be answered twice without
    assert not {REPORT, "release", "vocabulary.txt"} & set(left)
    assert runs_in(home) == []


def _going_on_from(model: Path) -> str:
    """The plan of a training that goes on from this file."""
    words = PLAN[PLAN.index("[vocabulary]") : PLAN.index("[training]")]
    return PLAN.replace(words, "") + f'continue_from = "{model}"\nearlier_weight = 2.0\n'


def test_the_partys_folder_is_read_like_a_run(landed: Landed, tmp_path: Path) -> None:
    _, _, joined = landed
    folder = tmp_path / "copy"
    shutil.copytree(joined.reports["torch"]["directory"], folder)
    finished = FinishedRun.open(folder)
    assert finished.topics(5) == [words[:5] for words in joined.reports["torch"]["topics"]]
    new = tmp_path / "new.jsonl"
    new.write_text('{"text": "river water lake boat fish"}\n', "utf-8")
    assert finished.transform(finished.read(new, None)).shape == (1, 3)
    (folder / "release/model.safetensors").unlink()
    with pytest.raises(NotARun):
        FinishedRun.open(folder)


def test_the_partys_page_shows_its_own_documents_and_knows_no_other_party(landed: Landed, tmp_path: Path) -> None:
    organisations, _, joined = landed
    shutil.copytree(joined.reports["torch"]["directory"], tmp_path / "copy")
    finished = FinishedRun.open(tmp_path / "copy")
    alone = shown_topics(finished)
    assert alone.shares is None
    assert dict(alone.facts)["Trained by"] == f"torch in federation {joined.reports['torch']['federation']}, 2 rounds"
    assert "follows from the model alone" in topic_page(alone)
    mine = organisations.file("torch").parent / "documents.jsonl"
    own = shown_topics(finished, documents={"torch": finished.read(mine, None)}, quoted=True)
    assert own.shares_of == "the documents of torch"
    assert own.behind is not None
    assert any(own.behind.topics)
    assert np.sum(own.shares) == pytest.approx(1)
    assert "numpy" not in topic_page(own)
    (finished.folder / REPORT).write_text('{"party": "torch"}', "utf-8")
    with pytest.raises(DamagedStore):
        shown_topics(finished)


# ---- what the party's own file forbids -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "what", "told"),
    [
        ('profiles = ["open"]', "profile", "Profile"),
        (f'profiles = ["{"0" * 64}"]', "profile", "Profile"),
        ('models = ["prodlda"]', "model", "Model"),
        ("least_parties = 6", "a sum over", "Parties"),
        ('questions = ["train"]', "the question", "Question"),
        ('questions = ["joint", "coherence"]', "the question", "Question"),
        (f'coordinators = ["{"1" * 60}"]', "a coordinator", "Coordinator"),
    ],
)
def test_a_plan_that_the_policy_does_not_allow_is_refused_before_documents_are_read(
    policy: str, what: str, told: str, organisations: Organisations
) -> None:
    organisations.write("numpy", policy=policy)
    (organisations.file("numpy").parent / "documents.jsonl").unlink()
    heard: list[str] = []  # what the coordinator is told
    with pytest.raises(NotAllowedHere, match=what):
        organisations.prepared("numpy", lambda party, keys, roster, reason: heard.append(reason))
    assert heard == [f"PolicyAgainst{told}"]


def plan_under(profile: str) -> str:
    """The plan under another profile, with public words, and documents as what a budget protects."""
    plan = PLAN.replace('"masked"', f'"{profile}"').replace("[vocabulary]", '[vocabulary]\nfile = "english"\nsource = "file"')
    return plan + ('[privacy]\nunit = "document"\n' if profile.startswith("dp-") else "")


BUDGET = 'unit = "{unit}"\nmost_epsilon = {most}'


@pytest.mark.parametrize(
    ("profile", "own", "what"),
    [
        ("masked", {"policy": BUDGET.format(unit="document", most=1)}, "releases without a bound, of profile masked"),
        ("open", {"policy": 'unit = "person"'}, "releases without a bound, of profile open"),
        ("masked", {"privacy": "epsilon = 8.0"}, "releases without a bound, of profile masked"),
        ("masked", {"policy": 'unit = "document"\nprofiles = ["open", "masked"]'}, ""),
        ("iftm", {"policy": BUDGET.format(unit="document", most=8)}, "a budget for each word"),  # 8 a word is not 8
        ("iftm", {"privacy": "epsilon = 8.0"}, "a budget for each word"),
        ("iftm", {"policy": BUDGET.format(unit="word", most=8)}, ""),
        ("iftm", {"policy": BUDGET.format(unit="word", most=7)}, "epsilon = 8 for each word"),
        ("dp-local", {"policy": BUDGET.format(unit="person", most=8)}, "a budget for each document"),
        ("dp-local", {"policy": BUDGET.format(unit="document", most=7.9)}, "epsilon = 8 for each document"),
        ("dp-local", {"policy": BUDGET.format(unit="document", most=8)}, ""),
    ],
)
def test_a_policy_says_of_which_unit_and_allows_what_has_no_bound_by_its_name_only(
    profile: str, own: dict[str, str], what: str, organisations: Organisations
) -> None:
    organisations.write("numpy", **own)
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_under(profile), "utf-8")
    if what:
        (organisations.file("numpy").parent / "documents.jsonl").unlink()  # it is refused before documents are read
        with pytest.raises(NotAllowedHere, match=what):
            organisations.prepared("numpy")
    else:
        organisations.prepared("numpy")


def test_a_run_without_a_bound_is_in_the_ledger_of_the_data_set(
    landed: Landed, after: tuple[Organisations, dict[str, Path]]
) -> None:
    organisations, spent = after[0], landed[2].reports["numpy"]["spent"]
    assert (spent["epsilon"], spent["all_runs"]) == (None, None)
    assert "profile 'masked' has no bound" in spent["unbounded_because"]
    (organisations.file("numpy").parent / "plan.toml").write_text(plan_under("dp-local"), "utf-8")
    cost = preview(organisations.prepared("numpy"))["cost"]
    assert cost["unbounded_because"] == spent["unbounded_because"]
    assert (cost["spent_before"], cost["budget"]) == (0.0, 8.0)


def test_a_profile_is_allowed_by_its_digest_and_a_coordinator_by_its_fingerprint(organisations: Organisations) -> None:
    ready = organisations.prepared("numpy")
    digest = ready.agreement.profile.digest.hex()
    shown = "".join(preview(ready)["coordinator"]["fingerprint"].split())
    (accepted,) = [one for one in changes(None, ready.roster) if one.name == "coordinator"]
    assert shown == "".join(accepted.identity.split())  # what `keys accept` and `keys roster show` print
    organisations.write("numpy", policy=f'profiles = ["{digest}"]\ncoordinators = ["{shown}"]')
    assert organisations.prepared("numpy").agreement.digest == ready.agreement.digest


def test_a_question_that_the_policy_leaves_out_is_not_answered_and_the_run_ends_without_that_figure(
    organisations: Organisations, tmp_path: Path
) -> None:
    organisations.write("scipy", policy='questions = ["joint", "train", "held_out"]')
    result, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    assert result.rounds == 2
    assert np.isnan(result.quality["npmi"])
    assert joined.reports["scipy"]["refused"] == {"QuestionNotAllowed": 1}
    assert "coherence" not in joined.reports["scipy"]["answered"]


def lied_to(organisations: Organisations, body_of: Callable[[Played], wire.Body]) -> wire.Outcome:
    """What a party with this policy says to a coordinator that ignores it. Its documents cannot be read."""
    ready = organisations.prepared("numpy")
    with alone_in(ready.home.data):
        party = ready.party(PartyWatch())
        played = Played(ready.agreement.plan, ready.roster.members, keys=ready.roster.keys)
        settled(played, party, WORDS)
        party.documents.train = party.documents.agreed = None
        said = played.send(party, body_of(played))
        party.close()
    return said


def test_a_lying_coordinator_gets_no_answer_that_the_policy_forbids(organisations: Organisations) -> None:
    organisations.write("numpy", policy='questions = ["joint", "train"]')
    top = {"top": np.arange(6).reshape(2, 3)}
    assert lied_to(organisations, lambda played: played.ask("coherence", top)) == wire.Refusal("QuestionNotAllowed")


def test_a_lying_coordinator_gets_no_sum_over_fewer_than_the_policy_says(organisations: Organisations) -> None:
    organisations.write("numpy", policy="least_parties = 5")
    fewer = lied_to(organisations, lambda played: played.ask("train", played.fresh(), members=NAMES[:4]))
    assert fewer == wire.Refusal("CohortTooSmall")


# ---- the data set and its identity -----------------------------------------------------------------------------------


def test_a_data_set_is_worked_on_by_one_process(organisations: Organisations) -> None:
    ready = organisations.prepared("numpy")
    with alone_in(ready.home.data), pytest.raises(RunBusy, match="notes"):
        join(ready, lambda _: _Nobody(), PartyWatch(), threading.Event())


class _Nobody:
    def run(self, handle: object, stop: threading.Event) -> bool:
        return False


def test_other_documents_under_the_same_identity_and_plan_are_refused(organisations: Organisations) -> None:
    with pytest.raises(Failed, match="this party left before the run had ended"):
        join(organisations.prepared("numpy"), lambda _: _Nobody(), PartyWatch(), threading.Event())
    organisations.bring("numpy", texts(FIVE["south"], 40, 8), "elsewhere.jsonl")
    organisations.file("numpy").write_text(
        organisations.file("numpy").read_text("utf-8").replace("documents.jsonl", "elsewhere.jsonl"), "utf-8"
    )
    with pytest.raises(Mistake, match="are not those that this run began with"):
        join(organisations.prepared("numpy"), lambda _: _Nobody(), PartyWatch(), threading.Event())
    shutil.copy(organisations.file("numpy").parent / "documents.jsonl", organisations.file("numpy").parent / "elsewhere.jsonl")
    with pytest.raises(
        Failed, match="this party left before the run had ended"
    ):  # the same documents from another file are the same data set
        join(organisations.prepared("numpy"), lambda _: _Nobody(), PartyWatch(), threading.Event())


def test_a_home_that_others_may_read_is_refused(organisations: Organisations) -> None:
    organisations.home("numpy").chmod(0o755)
    with pytest.raises(OpenToOthers):
        organisations.prepared("numpy")


def test_everything_in_a_home_is_its_owners_alone_and_no_store_holds_the_key(landed: Landed) -> None:
    organisations = landed[0]
    secret = organisations.prepared("numpy").keys.identity
    for path in organisations.home("numpy").rglob("*"):
        if path.name != "roster.toml":  # everybody has it
            assert path.stat().st_mode & 0o077 == 0, path
        if path.is_file() and path.parent.name != "keys":
            assert secret not in path.read_bytes(), path


# ---- before anything is sent -----------------------------------------------------------------------------------------


def test_the_dry_run_says_what_would_be_sent_and_sends_and_writes_nothing(organisations: Organisations) -> None:
    ready = organisations.prepared("numpy")
    shown = preview(ready)
    assert [(one["question"], one["times"]) for one in shown["leaves_home"]] == [
        ("joint", 1), ("train", 2), ("coherence", 1), ("held_out", 1)
    ]  # fmt: skip
    assert all(one["bytes"] > 0 and one["allowed"] for one in shown["leaves_home"])
    assert shown["cost"] is None
    assert shown["documents"] == 40
    assert not ready.home.run(ready.agreement).exists()
