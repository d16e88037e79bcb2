"""`securetm budget`: the figures of the literature, and sentences that can be quoted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.cli.budget_profile import ProfileQuestion
from securetm.stages import Unwatched

from .calculated import budget, by, found, write_ledger
from .conftest import Said

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
    result = found("solve --for noise --epsilon 1 --documents 100000 --batch 1000 --epochs 10 --delta 1e-5")
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
