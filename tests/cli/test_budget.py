"""`securetm budget`: the figures of the literature, persons first, plans, ledgers and series, and every documented option."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent
from typer.main import get_command

from securetm.accounting.calculator.persons import grown
from securetm.accounting.calculator.series import MOST
from securetm.accounting.composition import total
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.accounting.spends import Spend
from securetm.cli.application import application
from securetm.cli.budget_plan import PlanQuestion
from securetm.cli.budget_profile import ProfileQuestion
from securetm.cli.budget_runs import one_run
from securetm.contracts import Budget, Unit
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched

from ..accounting_grid import COARSE, FINE, use_grid
from ..federation.conftest import keys as trial_keys  # noqa: F401 - a fixture
from ..federation.joined import NAMES, PLAN, Organisations, trained
from .calculated import budget, by, found, write_ledger
from .conftest import Said, securetm

COMMANDS = ("dp-sgd", "solve", "laplace", "distributed", "compare", "profile", "forecast", "plan", "ledger", "series")
KNOWN = "--documents 100000 --batch 1000 --epochs 10 --noise 1 --delta 1e-5"  # rate 0.01, 1,000 steps


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Said, str]:
    """The setting whose epsilon everybody knows, and its page."""
    page = tmp_path_factory.mktemp("page") / "budget.html"
    said = budget(f"dp-sgd {KNOWN} --tokens 213 --json --html {page}")
    assert said.code == 0, said.err
    return said, page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shuffled() -> Any:
    return found("dp-sgd --documents 100000 --batch 100 --epochs 1 --noise 0.6 --delta 1e-6 --sampling shuffled")


@pytest.fixture(scope="module")
def words() -> Any:
    return found("laplace --epsilon-per-word 8 --words 60 --words 213")


@pytest.fixture(scope="module")
def shares() -> Any:
    return found("distributed --parties 10 --threshold 8 --colluding 2 --noise 1 --rate 0.01 --rounds 200 --delta 1e-6")


# ---- help ----------------------------------------------------------------------------------------------------------


def test_budget_alone_is_its_help_and_names_every_command() -> None:
    alone = budget("")
    assert alone == budget("--help")
    assert alone.code == 0
    assert re.findall(r"^  ([a-z][a-z-]+)  ", alone.out, re.MULTILINE) == list(COMMANDS)
    assert "(GDP) is not offered" in " ".join(alone.out.split())


def example_of(command: str) -> str:
    lines = [line.strip() for line in budget(f"{command} --help").out.strip().splitlines()]
    last = next(place for place in reversed(range(len(lines))) if lines[place].startswith("Example: "))
    return " ".join(lines[last:]).removeprefix("Example: securetm budget ")


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("dp-sgd", "solve", "compare", "profile", "plan")]


@pytest.mark.parametrize("command", [*("laplace", "distributed", "ledger"), *SLOW])
def test_every_example_does_what_it_says(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_ledger(tmp_path / "north.ledger", "first")
    said = budget(example_of(command))
    assert said.code == 0, said.err
    assert "epsilon = " in said.out


# ---- what every answer holds ---------------------------------------------------------------------------------------


def test_the_figures_are_those_of_the_literature(known: tuple[Said, str]) -> None:
    result = known[0].json
    assert result["epsilon"] == pytest.approx(1.828, rel=0.01)
    assert by(result) == {"PLD": pytest.approx(1.828, rel=0.01), "RDP": pytest.approx(2.101, rel=0.005)}
    assert result["settings"]["steps"] == 1000
    assert result["settings"]["rate"] == 0.01


def test_the_sentence_can_be_quoted(known: tuple[Said, str]) -> None:
    said = known[0].json["statement"]
    for part in (
        "Against anyone who sees the model",
        "whether any one document was trained with",
        "add or remove one document",
        "per document with delta = 1e-05",
        "Poisson sample",
        "nobody learns the coins",
        "whoever adds the noise is honest",
    ):
        assert part in said
    assert re.match(r"[A-Z].*[^.]\.$", said)


def test_the_page_holds_all_of_it(known: tuple[Said, str]) -> None:
    said, page = known
    assert re.search(r"epsilon = 1\.8\d+ per document", page)
    assert "<svg" in page
    assert "2.102" in page
    assert all(warning.split(":")[0] in page for warning in said.json["warnings"])


def sentences(result: Any) -> list[str]:
    tables = [cell for table in result["tables"] for cell in (table["title"], table["caption"], *table["columns"])]
    return [result["title"], result["statement"], *result["warnings"], *result["notes"], *tables]


def test_an_epsilon_is_never_told_without_its_unit(known: tuple[Said, str], shuffled: Any, words: Any, shares: Any) -> None:
    for result in (known[0].json, shuffled, words, shares):
        for sentence in sentences(result):
            assert not re.search(r"epsilon = (?![\d.,]+ per )", sentence), sentence


# ---- warnings ------------------------------------------------------------------------------------------------------


def test_shuffled_batches_get_no_amplification_and_a_warning(shuffled: Any) -> None:
    assert shuffled["sampling"] == "shuffled"
    assert shuffled["epsilon"] == pytest.approx(total([Spend(GaussianDpEvent(0.6))], 1e-6).epsilon)
    known = shuffled["shuffled"]
    assert known["poisson"] < known["at_least"] <= shuffled["epsilon"]
    (warning,) = shuffled["warnings"]
    assert f"{known['at_least']:.2f}" in warning
    assert "no amplification" in warning


def test_a_large_delta_and_a_large_epsilon_are_warned_of() -> None:
    result = found("dp-sgd --documents 100 --batch 100 --epochs 1 --noise 0.33 --delta 0.01")
    delta, epsilon = result["warnings"]
    assert "delta = 0.01 is not below 1 / documents" in delta
    assert "per document is above 10" in epsilon


# ---- the other commands --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_least_noise_is_that_of_the_literature() -> None:
    use_grid(FINE)
    try:
        result = found("solve --for noise --epsilon 1 --documents 100000 --batch 1000 --epochs 10 --delta 1e-5")
    finally:
        use_grid(COARSE)
    assert result["solved"]["value"] == pytest.approx(1.415, rel=0.002)
    assert result["epsilon"] <= 1


def test_a_word_budget_says_what_it_is_for_a_document(words: Any) -> None:
    assert (words["epsilon"], words["unit"], words["delta"]) == (8, "word occurrence", 0)
    assert [row["epsilon"] for row in words["documents"]] == [480, 1704]
    assert [row["replaced"] for row in words["documents"]] == [960, 3408]
    (warning,) = words["warnings"]
    assert "epsilon = 8 per word occurrence is epsilon = 480 per document of 60 words and 1,704 per document of 213" in warning
    assert "epsilon = 16 per word occurrence" in words["notes"][0]
    assert words["true_positive_rate"]["rate"] > 0.99


def test_dropout_and_collusion_have_a_price(shares: Any) -> None:
    cases = {case["case"]: case for case in shares["cases"]}
    assert [case["honest_shares"] for case in shares["cases"]] == [6, 8, 8, 10]
    assert cases["guaranteed"]["epsilon"] == shares["epsilon"] > cases["neither"]["epsilon"]
    assert cases["guaranteed"]["noise"] == 1
    assert cases["neither"]["noise_in_sum"] == pytest.approx((10 / 8) ** 0.5)
    assert "2 colluding parties" in shares["statement"]
    assert "at least 8 of the 10 parties" in shares["statement"]
    assert by(shares).keys() == {"PLD", "RDP"}


def test_mechanisms_side_by_side() -> None:
    result = found("compare --documents 1000 --batch 100 --epochs 0.5 --noise 2 --delta 1e-6 --parties 4 --threshold 3")
    central, local, thin, ideal, sized = result["mechanisms"]
    assert central["coordinator"] is None
    assert central["reader"] == local["coordinator"] == result["epsilon"]
    assert (central["noise_in_sum"], local["noise_in_sum"], thin["noise_in_sum"]) == (2, 4, 2)
    assert thin["coordinator"] > result["epsilon"] > local["reader"]
    assert ideal["noise_in_sum"] == 2
    assert sized["noise_in_sum"] == 2  # nobody is missing, and nobody is feared: what was there for them is taken off
    assert result["epsilon"] <= ideal["coordinator"] < 1.5 * result["epsilon"]


def test_a_profile_is_billed_by_its_own_parts() -> None:
    result = found("profile dp-distributed --model prodlda --rounds 3 --vocabulary-size 500 --documents 5000")
    assert (result["unit"], result["sampling"]) == ("document", "poisson")
    assert 0 < result["epsilon"] <= result["budget"]["epsilon"]
    assert result["budget"]["lasts_rounds"] > 3
    assert "Against the coordinator" in result["statement"]
    assert "sums over at least 4 of the 5 parties" in result["statement"]
    (note,) = (note for note in result["notes"] if "asks all documents in every round" in note)
    assert "a round costs it more" in note  # these rounds are not its own: no coin keeps a document out of them


def test_a_run_is_billed_as_far_as_its_budget_lasts() -> None:
    result = found("profile dp-distributed --rounds 100000 --vocabulary-size 500")
    assert result["rounds"] == result["budget"]["lasts_rounds"] < 100_000
    assert result["epsilon"] <= result["budget"]["epsilon"]
    assert "the ledger ends the run there, before the 100,000 rounds" in result["warnings"][0]


@pytest.mark.slow
def test_central_noise_is_not_told_to_protect_from_the_coordinator() -> None:
    """Selected words are noised at the party, the sums of training are not: the weakest part decides."""
    asked = ProfileQuestion("dp-central", 5, 10, 500, "prodlda").question(Unwatched())
    assert asked.promise.against.startswith("any other party")
    assert "the coordinator" not in asked.promise.against
    assert "anyone who gets the model" in asked.promise.against
    assert asked.promise.assumptions[-1] == "whoever opens the sums adds the noise and keeps both to itself"
    every = ProfileQuestion("dp-central", 5, 10, 500, "lda").question(Unwatched())
    assert (asked.sampling, every.sampling) == ("poisson", "none")  # all documents are asked, so no coin helps
    local = ProfileQuestion("dp-local", 5, 10, 500).question(Unwatched())
    assert local.promise.against.startswith("the coordinator with 4 colluding parties")


@pytest.mark.parametrize(
    "asked",
    [
        "dp-sgd --documents 1 --batch 1 --epochs 1 --noise 1 --delta 1e-5",
        "distributed --parties 4 --threshold 3 --colluding 2 --noise 1 --rounds 1 --delta 1e-6",
        "laplace --epsilon-per-word 8 --words 1 --releases 1",
    ],
)
def test_one_thing_is_not_told_as_several(asked: str) -> None:
    said = budget(asked).out
    assert re.search(r"\b1 (document|round|word)\b", said)
    assert not re.search(r"(?<![\d.,])1 (honest )?(documents|rounds|epochs|words|parties|shares)\b", said)


# ---- persons ---------------------------------------------------------------------------------------------------------------


SGD = "--documents 1000 --batch 100 --epochs 1 --delta 1e-5"
PROFILE = "profile dp-central --vocabulary-size 500 --vocabulary english --documents 100000"


def test_a_budget_of_documents_says_what_a_person_is_promised() -> None:
    result = found(f"dp-sgd {SGD} --noise 4 --unit document --documents-per-person 5")
    rows = {row["rows"]: row for row in result["persons"]["rows"]}
    by_events, theorem = rows["a row for each document"], rows["the same, by k x epsilon"]
    assert result["unit"] == "document"
    assert rows["a row for each person"]["epsilon"] == result["epsilon"]
    assert theorem["epsilon"] == pytest.approx(5 * result["epsilon"])
    assert theorem["delta"] == pytest.approx(grown(result["epsilon"], 1e-5, 5).delta)
    assert theorem["delta"] > 5e-5
    assert by_events["delta"] == 1e-5
    assert result["tables"][0]["title"] == "What a person with 5 documents is promised"
    assert any("A person with 5 of them has epsilon = " in warning for warning in result["warnings"])


def test_delta_is_judged_by_persons() -> None:
    result = found("dp-sgd --documents 100000 --batch 1000 --epochs 1 --noise 4 --delta 1e-4 --persons 9000")
    assert not any("is not below" in warning for warning in result["warnings"])
    result = found("dp-sgd --documents 100000 --batch 1000 --epochs 1 --noise 4 --delta 1e-4 --persons 20000")
    assert "delta = 0.0001 is not below 1 / persons" in result["warnings"][0]


def test_a_profile_asks_what_a_run_asks() -> None:
    """Rounds and noise that nobody gives are those of a run, by the number of persons where the rows are theirs."""
    result = found(f"{PROFILE} --persons 500 --parties 4")
    plan = plan_from_tables(
        {
            "profile": "dp-central",
            "vocabulary": {"source": "file", "file": "english", "max_words": 500},
            "model": {"name": "lda-vi"},
            "training": {"documents": 500},
        },
        "the test",
    )
    assert result["settings"]["rounds"] == result["rounds"] == plan.training.rounds
    assert result["unit"] == "person"
    assert result["noise"] == result["suggested"]["noise"]
    assert result["budget"]["lasts_rounds"] >= result["rounds"]
    assert 0.99 * 8 < result["epsilon"] <= 8


@pytest.mark.slow
def test_a_profile_takes_the_numbers_that_a_plan_takes() -> None:
    result = found(f"{PROFILE} --rounds 3 --epsilon 2 --delta 1e-7 --unit person")
    assert (result["rounds"], result["delta"], result["budget"]["epsilon"]) == (3, 1e-7, 2)
    assert 1.9 < result["epsilon"] <= 2
    noisier = found(f"{PROFILE} --rounds 3 --noise 40 --unit person")
    assert noisier["noise"] == 40
    assert noisier["epsilon"] < 1


@pytest.mark.slow
def test_noise_is_found_for_an_epsilon_and_shown_in_shares() -> None:
    result = found(f"dp-sgd {SGD} --epsilon 2 --parties 10 --missing 2 --colluding 3")
    assert result["solved"]["target"] == 2
    shares = result["tables"][-1]
    assert shares["title"] == "The noise in shares"
    assert "8 of 10 parties must remain" in shares["caption"]
    assert found(f"compare {SGD} --epsilon 2 --parties 10 --missing 2")["epsilon"] <= 2


@pytest.mark.slow
def test_a_corpus_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    rows = [{"text": "a cough in the chest", "patient": n % 4} for n in range(18)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    result = found(f"dp-sgd --corpus {path} --person patient --batch 9 --epochs 1 --noise 8 --delta 1e-3")
    assert (result["people"]["documents"], result["people"]["persons"]) == (18, 4)
    assert result["people"]["documents_per_person"] == 5
    assert any("counted in your corpus" in note for note in result["notes"])
    for more, said in {
        "--documents 3": "cannot be given beside --corpus",
        "--unit person": "has no column called person",
    }.items():
        refused = budget(f"dp-sgd --corpus {path} --batch 9 --epochs 1 --noise 8 --delta 1e-3 {more}")
        assert refused.code == 2
        assert said in refused.err


# ---- plans -----------------------------------------------------------------------------------------------------------------


SMALL = "plan --profile dp-central --words public --vocabulary-size 100 --rounds 2"


def test_a_real_ledger_admits_the_planned_runs_and_no_more(tmp_path: Path) -> None:
    question = PlanQuestion(profile="dp-central", words="once", vocabulary_size=100, rounds=2, years=3, unit="person")
    *_, planned = one_run(question)
    noise = planned.least_noise(3)
    assert planned.spending.first  # the first run pays for its words
    with Ledger.open(tmp_path / "north.ledger", "north", planned.budget) as ledger:
        for run in range(3):
            spends = (*(planned.spending.first if run == 0 else ()), *planned.spending.at(noise))
            for spend in spends:
                ledger.charge(f"run {run}", spend, {"profile": "dp-central"})
            assert ledger.spent().epsilon == pytest.approx(planned.after(run + 1, noise).spent().epsilon)
        (once,) = planned.spending.at(noise)
        with pytest.raises(BudgetExhausted):
            ledger.charge("run 3", replace(once, count=1), {"profile": "dp-central"})
        assert ledger.spent().epsilon > 0.98 * planned.budget.epsilon  # no more noise than the ledger asks for


@pytest.mark.slow
def test_runs_share_a_budget_better_than_by_dividing_it() -> None:
    result = found(f"{SMALL} --years 4 --epsilon 4 --delta 1e-6 --documents 50000 --persons 10000 --missing 0")
    assert (result["unit"], result["lasts_runs"], len(result["runs"])) == ("person", 4, 4)
    assert result["epsilon_per_run"] > 4 / 4
    spent, fixed = ([run[name] for run in result["runs"]] for name in ("spent", "fixed_in_advance"))
    assert spent == sorted(spent)
    assert all(later <= held for later, held in zip(fixed, spent, strict=True))
    assert spent[-1] <= 4
    assert fixed[-1] == pytest.approx(result["epsilon"])
    assert "the runs over the same documents are the 4 planned" in result["statement"]
    assert result["plots"][0]["lines"][2]["name"] == "budget"


def test_given_what_a_run_spends_the_plan_says_when_the_budget_ends() -> None:
    result = found(f"{SMALL} --years 6 --epsilon 4 --delta 1e-6 --noise 3")
    lasts = result["lasts_runs"]
    assert 0 < lasts < 6
    assert [run["admitted"] for run in result["runs"]] == [True] * lasts + [False] * (6 - lasts)
    assert f"in year {lasts + 1}" in result["warnings"][0]
    assert found(f"{SMALL} --years {lasts} --epsilon 4 --delta 1e-6")["noise"] <= 3


def test_audits_that_train_count_as_runs_and_others_do_not() -> None:
    alone, recorded = PlanQuestion(years=2), PlanQuestion(years=2, audits_per_year=4)
    assert recorded.in_one_ledger == alone.in_one_ledger == 2
    trained = PlanQuestion(years=2, audits_per_year=1, runs_per_audit=3)
    assert [run["purpose"] for run in trained.runs()] == ["training", *["audit that trains"] * 3] * 2


def test_retired_documents_make_room_for_others() -> None:
    schedule = PlanQuestion(years=5, retire_after=2)
    assert schedule.in_one_ledger == 2
    assert [(run["data_set"], run["number"]) for run in schedule.runs()] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]


def test_a_plan_goes_on_from_what_a_ledger_holds(tmp_path: Path) -> None:
    write_ledger(tmp_path / "north.ledger", "first")
    result = found(f"{SMALL} --years 2 --ledger {tmp_path / 'north.ledger'}")
    assert result["budget"] == {"epsilon": 3.0, "delta": 1e-5}
    fresh = found(f"{SMALL} --years 2 --epsilon 3 --delta 1e-5")
    assert result["noise"] > fresh["noise"]


@pytest.mark.slow
def test_how_often_one_can_train_and_still_have_a_model_of_use_follows_from_the_size_of_the_corpus() -> None:
    """The forecast is asked for each number of runs: with more of them each has less of the budget."""
    most = {}
    asked = "plan --profile dp-central --words public --vocabulary-size 250"
    for documents in (4_000, 6_000):
        result = found(f"{asked} --documents {documents} --document-length 60 --years 60")
        often, rows = result["how_often"], result["tables"][0]["rows"]
        most[documents] = often["of_use"]
        assert 1 <= often["of_use"] < often["planned"] == 60 <= often["may_be"] <= often["most_asked"]
        verdicts = {int(row[0].replace(",", "")): row[2].partition(" (")[0] for row in rows}
        assert verdicts[often["of_use"]] == "of use"
        assert verdicts[often["of_use"] + 1] == verdicts[60] == "cannot say"
        assert any(f"up to {often['of_use']} trainings" in one for one in result["warnings"])
    assert most[6_000] > most[4_000]
    unknown = found(f"{asked} --documents 6000 --years 2")
    assert unknown["how_often"]["of_use"] < most[6_000]  # of documents of a known length more can be said
    silent = found(f"{SMALL} --years 2")
    assert silent["how_often"] is None
    assert any("how often you can train, is said if you give --documents" in one for one in silent["notes"])


def test_a_file_says_the_same_as_options(tmp_path: Path) -> None:
    path = tmp_path / "years.toml"
    path.write_text('profile = "dp-central"\nwords = "public"\nvocabulary_size = 100\nrounds = 2\nyears = 2\n', "utf-8")
    assert found(f"plan {path} --epsilon 4")["noise"] == found(f"{SMALL} --years 2 --epsilon 4")["noise"]
    path.write_text('profil = "dp-central"\n', "utf-8")
    said = budget(f"plan {path}")
    assert said.code == 2
    assert "profil" in said.err
    assert "profile" in said.err


# ---- ledgers ---------------------------------------------------------------------------------------------------------------


def test_a_ledger_says_what_was_spent_run_by_run(tmp_path: Path) -> None:
    path = tmp_path / "north.ledger"
    write_ledger(path, "first", "second")
    with Ledger.open(path, "north", Budget(Unit.DOCUMENT, 3.0, 1e-5), "news") as ledger:
        ledger.witness(*ledger.head, {"south": b"signed", "west": b"signed"})
    before = path.read_bytes()
    result = found(f"ledger {path}")
    with Ledger.read(path) as ledger:
        assert result["epsilon"] == ledger.spent().epsilon
        assert result["ledger"]["head"] == ledger.head[1].hex()
    assert path.read_bytes() == before
    assert [run["run"] for run in result["runs"]] == ["first", "second"]
    assert result["ledger"]["budget"] == 3
    assert result["ledger"]["countersigned"] == 2
    assert (result["unit"], result["delta"], result["sampling"]) == ("document", 1e-5, "poisson")
    spent, limit = result["plots"][0]["lines"]
    assert spent["points"][-1] == [12, pytest.approx(result["epsilon"])]
    assert {y for _, y in limit["points"]} == {3}


def test_a_party_allows_more_by_an_entry_in_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "north.ledger"
    Ledger.open(path, "north", Budget(Unit.DOCUMENT, 3.0, 1e-5)).close()
    assert found(f"ledger {path} --allow 5")["ledger"]["budget"] == 5.0
    with Ledger.read(path) as ledger:
        assert [entry.content["kind"] for entry in ledger.entries()] == ["opened", "budget"]
    assert budget(f"ledger {path} --allow -1").code == 2
    assert budget(f"ledger {tmp_path / 'absent.ledger'} --allow 5").code in (2, 3)
    assert not (tmp_path / "absent.ledger").exists()


# ---- series ----------------------------------------------------------------------------------------------------------------


ABOUT = {"profile": "dp-central", "digest": "00"}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger after five yearly runs."""
    made = tmp_path / "notes.ledger"
    for year in range(2026, 2031):
        monkeypatch.setattr("securetm.accounting.ledger.ledger._now", lambda year=year: f"{year}-03-01T00:00:00+00:00")
        with Ledger.open(made, "hospital-a", Budget(Unit.PERSON, 8.0, 1e-6)) as ledger:
            ledger.charge(f"oncology {year}", Spend(GaussianDpEvent(6.0)), ABOUT)
    return made


def test_the_sixth_run_is_seen_to_fit_or_not(path: Path, tmp_path: Path) -> None:
    said = securetm("budget", "series", str(path), "--json", "--html", str(tmp_path / "series.html"))
    assert said.code == 0, said.err
    (one,) = said.json["series"]
    assert [run["run"] for run in one["runs"]] == [f"oncology {year}" for year in range(2026, 2031)]
    together = [run["together"] for run in one["runs"]]
    assert together == sorted(together)
    assert one["left"] == pytest.approx(8.0 - together[-1])
    assert one["ends"].startswith(str(2030 + one["further_runs"] + 1))
    with Ledger.open(path, "hospital-a", Budget(Unit.PERSON, 8.0, 1e-6)) as ledger:
        admitted = 0
        while ledger.fits("later", Spend(GaussianDpEvent(6.0)), admitted + 1):
            admitted += 1
    assert one["further_runs"] == admitted  # the ledger itself counts so
    assert "is left after 5 runs" in (tmp_path / "series.html").read_text("utf-8")


def test_a_raised_budget_is_counted_by_the_filter_that_the_ledger_began_with(path: Path) -> None:
    raised = Budget(Unit.PERSON, 40.0, 1e-6)
    with Ledger.open(path, "hospital-a", raised) as ledger:
        spent, admitted = ledger.spent().epsilon, 0
        while ledger.fits("later", Spend(GaussianDpEvent(6.0)), admitted + 1):
            admitted += 1
    (one,) = securetm("budget", "series", str(path), "--json").json["series"]
    assert one["runs"][-1]["together"] == spent
    assert one["left"] == pytest.approx(40.0 - spent)
    assert one["further_runs"] == min(admitted, MOST)


def test_a_pace_may_be_said_and_a_run_without_a_bound_ends_the_count(path: Path) -> None:
    twice = securetm("budget", "series", str(path), "--per-year", "2", "--json").json["series"][0]
    assert twice["days_between_runs"] == pytest.approx(182.625)
    with Ledger.open(path, "hospital-a", None) as ledger:
        ledger.release("oncology open", "nothing bounds it", {"profile": "masked", "digest": "01"})
    after = securetm("budget", "series", str(path), "--json").json["series"][0]
    assert (after["further_runs"], after["runs"][-1]["together"]) == (None, None)
    assert "oncology open had no bound" in after["said"]


def test_of_a_home_the_quality_of_each_run_is_shown(trial_keys: Path, tmp_path: Path) -> None:  # noqa: F811
    made = Organisations.of(trial_keys, tmp_path / "all", PLAN)
    _, joined = trained(made, tmp_path / "coordinator")
    quality = joined.reports[NAMES[0]]["quality"]
    said = securetm("budget", "series", str(made.home(NAMES[0])), "--json")
    (run,) = said.json["series"][0]["runs"]
    assert (run["perplexity"], run["npmi"]) == (quality["held_out"], quality["npmi"])
    shown = " ".join(securetm("budget", "series", str(made.home(NAMES[0]))).out.split())
    assert f"{quality['held_out']:,.1f}" in shown


# ---- every documented option -----------------------------------------------------------------------------------------------


PEOPLE = "--documents 30000 --persons 6000 --documents-per-person 9 --unit person"
COUNTED = "--corpus FOLDER/notes.csv --person patient"
SOME = "--batch 300 --epochs 2 --delta 1e-6"
TRIALS: Mapping[str, tuple[str, ...]] = {
    "": (
        f"--html FOLDER/page.html {PEOPLE} --delta 1e-6 --noise 4 --rounds 4 --parties 6 --missing 1 --colluding 1 --json",
        "--html FOLDER/page.html --epsilon 3",
    ),
    "dp-sgd": (
        f"{SOME} --noise 2 {PEOPLE} --sampling poisson --tokens 300 --parties 5 --missing 1 --colluding 1 --json",
        f"--batch 20 --epochs 2 --delta 1e-4 --epsilon 3 {COUNTED} --parties 5 --threshold 4 --html FOLDER/page.html",
    ),
    "solve": (
        f"--for noise --epsilon 3 {SOME} {PEOPLE} --sampling poisson --tokens 300 --parties 5 --missing 1 --colluding 1 --json",
        f"--for epochs --epsilon 3 --batch 20 --delta 1e-4 --noise 3 {COUNTED} --parties 5 --threshold 4",
        "--for noise --epsilon 3 --batch 20 --epochs 2 --delta 1e-4 --documents 900 --html FOLDER/page.html",
    ),
    "laplace": (
        "--epsilon-per-word 8 --releases 2 --words 60 --delta 1e-6 --json",
        "--scale 0.5 --words 60 --html FOLDER/page.html",
    ),
    "distributed": (
        f"--parties 5 --noise 2 --rounds 3 --delta 1e-6 --missing 1 --colluding 1 --rate 1 --dimension 1000 --l2 4096 {PEOPLE}"
        " --distribution skellam --json",
        f"--parties 5 --noise 9 --rounds 3 --delta 1e-4 --threshold 4 {COUNTED} --html FOLDER/page.html",
    ),
    "compare": (
        f"{SOME} --noise 2 --parties 5 --missing 1 --colluding 1 --dimension 1000 --l2 4096 {PEOPLE} --json",
        f"--batch 20 --epochs 2 --delta 1e-4 --epsilon 3 --threshold 4 {COUNTED} --html FOLDER/page.html",
    ),
    "profile": (
        f"dp-central --rounds 2 --vocabulary-size 200 --model lda-vi --parties 5 --vocabulary english --document-length 30"
        f" {PEOPLE} --epsilon 3 --delta 1e-6 --missing 0 --start plain --json",
        "dp-distributed --documents 30000 --rounds 2 --noise 5 --delta 1e-6 --missing 1 --colluding 2",
        f"dp-central --delta 1e-4 {COUNTED} --html FOLDER/page.html",
    ),
    "forecast": (
        f"{PEOPLE} --profile dp-central --epsilon 3 --delta 1e-6 --parties 5 --model lda-vi --start plain --words 500"
        " --topics 20 --rounds 3 --length 30 --vocabulary english --json",
        "--documents 30000 --document-length 30 --general-list",
        "--documents 30000",
    ),
    "plan": (
        f"--profile dp-central --years 2 --runs-per-year 1 --audits-per-year 1 --runs-per-audit 1 --retire-after 1"
        f" --words public --epsilon 8 --delta 1e-6 --rounds 2 --model lda-vi --vocabulary-size 200 {PEOPLE} --parties 5"
        " --missing 0 --document-length 30 --json",
        "--profile dp-distributed --years 1 --noise 9 --words public --rounds 1 --vocabulary-size 200 --colluding 2"
        " --delta 1e-6 --html FOLDER/page.html",
        "--profile dp-central --years 1 --words public --rounds 1 --vocabulary-size 200 --ledger FOLDER/north.ledger",
    ),
    "series": ("FOLDER/north.ledger --per-year 2 --json --html FOLDER/page.html",),
    "ledger": ("FOLDER/north.ledger --json --html FOLDER/page.html", "FOLDER/north.ledger --allow 9"),
}
COMPOSING = ("compare", "solve", "dp-sgd", "distributed", "plan", "profile")  # which compose many sampled rounds
LINES = [(command, line) for command, lines in TRIALS.items() for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ledger, and a corpus with a column of persons."""
    write_ledger(tmp_path / "north.ledger", "one")
    rows = [f"fever and cough of the left lung {n},p{n // 3}" for n in range(90)]
    (tmp_path / "notes.csv").write_text("text,patient\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def documented() -> dict[str, set[str]]:
    """The options of each command, one spelling of each, as the commands themselves have them."""
    group = get_command(application()).commands["budget"]  # type: ignore[attr-defined]
    commands = {"": group, **group.commands}
    options = {name: [p for p in command.params if p.param_type_name == "option"] for name, command in commands.items()}
    return {name: {"/".join(sorted(p.opts)) for p in known if p.opts != ["--help"]} for name, known in options.items()}


def test_every_documented_option_is_tried() -> None:
    for command, options in documented().items():
        tried = set(re.findall(r"--[\w-]+", " ".join(TRIALS[command])))
        assert {one for one in options if not tried & set(one.split("/"))} == set(), command


@pytest.mark.parametrize(
    ("command", "line"),
    [
        pytest.param(command, line, id=f"{command or 'page'}-{n}", marks=[pytest.mark.slow] * (command in COMPOSING))
        for n, (command, line) in enumerate(LINES)
    ],
)
def test_the_option_does_what_it_says_or_refuses_by_name(command: str, line: str, folder: Path) -> None:
    said = budget(f"{command} {line}".replace("FOLDER", shlex.quote(str(folder))))
    assert said.code == 0, said.err
    assert "unexpected" not in said.err
