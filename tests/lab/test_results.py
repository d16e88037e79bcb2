"""What was committed as measured is whole, names its peers, and can be measured again by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lab
from lab.__main__ import BENCHES, REPRODUCTIONS
from lab.bench.neural import VOCABULARIES
from lab.bench.scale import PEERS, SIZES
from lab.bench.scale_cases import ENGINES_OF, MODELS, ROUND
from lab.fits.committed_figures import lists, shown
from lab.measuring import committed
from lab.papers.experiment import HOLDS, IN_PART, NOT_HERE
from lab.papers.written import as_csv
from lab.peers.other_packages import TOMOTOPY
from securetm.plans.profiles import profile_names
from securetm.reports import committed_costs
from securetm.reports.committed_costs import frontier_says
from securetm.reports.profiles import explain

RESULTS = sorted((Path(lab.__file__).parent / "results").glob("*/*.json"))


BY_PERPLEXITY = {"adapted-ngrams": {"everybody"}, "together-and-alone": {"everybody_shared", "everybody_best_alone"}}
BY_LIKELIHOOD = {
    **dict.fromkeys(("rounds-rule", "rounds-without-vectors", "start-rule"), frozenset({"held_out", "rounds", "given_up"})),
    "settings-rule": frozenset({"held_out", "frequencies", "covered"}),
    "usefulness-forecast": frozenset({"held_out", "frequencies", "f1"}),
    "chosen-plans": frozenset({"ratio", "f1", "found"}),
    "word-sources": frozenset({"gain", "f1", "covered", "source", "found"}),
    "documents-curve": frozenset({"held_out", "true_topics", "documents", "away_from_truth"}),
}
BY_LABELS = {"semantic-rounds": {"nmi", "rounds", "given_up"}}
BY_WORDS = {
    "common-vocabulary": {"words", "of_curator"},
    "word-policies": {"words", "policy", "epsilon"},
    "column-matching": {"columns", "named_by_ranks", "named_by_pairs", "epsilon"},
}
BY_ATTACKS = {
    "use-and-leakage": {"right", "judged", "use", "use_low", "use_high", "megabytes"},
    "private-lists": {"words", "right", "judged", "by_list", "by_model", "by_counts"},
}
BY_BOUNDS = {"one-run-audits": {"share", "noise", "canaries"}}  # a run that ended before its first round has no bound


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_committed_result_is_whole(path: Path) -> None:
    result = json.loads(path.read_text("utf-8"))
    kind, known = ("bench", BENCHES) if "bench" in result else ("reproduction", REPRODUCTIONS)
    assert result[kind] in known
    if result.get("bench") != "scale":  # there, it names the peers that do not come to an end
        assert result.get("missing", []) == []
    assert result["rows"]
    if "claims" in result:
        assert path.stem == f"{result['reproduction']}-{result['scale']}"
        assert all(set(claim.values()) & {HOLDS, IN_PART, NOT_HERE} and claim["why"] for claim in result["claims"])
        assert path.with_suffix(".csv").read_text("utf-8") == as_csv(result)
        return
    for row in result["rows"]:
        judged = (BY_PERPLEXITY | BY_LIKELIHOOD | BY_LABELS | BY_WORDS | BY_BOUNDS | BY_ATTACKS).get(
            result[kind], {"npmi", "diversity"}
        )
        assert row.keys() >= ({"case", "ours", "unit"} if kind == "bench" else judged)
        assert ("peer" in row) == ("theirs" in row)


def test_the_best_private_model_reaches_its_goals_on_20_newsgroups() -> None:
    """Those of the model that is recommended; what is not reached stands in the same table and on the pages."""
    result = committed("reproduce-private-frontier")
    goals = {goal["goal"]: goal["held"] for goal in result["tables"]["Goals"]}
    mine = [held for goal, held in goals.items() if "20 topics, central" in goal and "public start" in goal]
    assert mine == [True] * 6
    assert not all(goals.values())
    assert all(run["spent"] <= run["epsilon"] * (1 + 1e-9) for run in result["runs"] if run.get("spent") and run["epsilon"])


def test_a_selected_list_tells_fewer_members_and_costs_no_use() -> None:
    rows = {(row["list"], row["epsilon"]): row for row in committed("reproduce-private-lists")["rows"]}
    exact, selected = rows["all words", None], rows["selected", 3.0]
    assert min(exact[by] for by in ("by_list", "by_model", "by_counts")) > 0.5
    assert max(selected[by] for by in ("by_list", "by_model", "by_counts")) < 0.05
    assert selected["right"] > exact["right"]
    page = (Path(lab.__file__).parents[1] / "docs" / "research" / "models.md").read_text("utf-8")
    for row in rows.values():  # as the page says
        shares = f"{row['by_model']:.1%} | {row['by_counts']:.1%} | {row['right'] / row['judged']:.0%}".replace("%", " %")
        assert f"| {row['words']:,} | {row['by_list']:.0%} | ".replace("%", " %") + shares in page


# ---- each keeps what it is quoted for --------------------------------------------------------------------------------


def test_the_committed_steps_keep_their_bars() -> None:
    rows = committed("bench-dp")["rows"]
    bound = [row for row in rows if "limit" in row]
    assert len(bound) == 6
    assert all(row["of_limit"] <= 1 for row in bound)
    against_opacus = [row for row in rows if row["peer"].startswith("Opacus")]
    assert len(against_opacus) == 4
    assert all(row["ratio"] > 1 for row in against_opacus)


def test_lda_is_no_worse_than_its_peers() -> None:
    result = committed("bench-lda")
    assert result["missing"] == []
    against = [row for row in result["rows"] if row["peer"].startswith(TOMOTOPY)]
    likelihoods = [row for row in against if row["case"].startswith("held-out")]
    speeds = [row for row in against if row["case"].startswith("tokens")]
    assert {row["case"].split(": ")[1].split(",")[0] for row in against} == {"K = 50", "K = 200"}
    assert len(likelihoods) == 12
    assert len(speeds) == 6
    assert all(row["ratio"] >= 1 for row in speeds)
    assert all(row["ratio"] >= 1 for row in likelihoods)


def test_combined_topic_models_are_four_times_faster_and_no_less_coherent() -> None:
    rows = committed("bench-neural")["rows"]
    speed = [row for row in rows if row["unit"] == "s per epoch"]
    assert len(speed) == len(VOCABULARIES)
    assert all(row["ratio"] >= 4 for row in speed)
    means = [row for row in rows if "mean of 3 seeds" in row["case"]]
    assert len(means) == 2
    assert all(row["difference"] >= 0 for row in means)


def test_every_size_was_measured_and_reaches_its_goals() -> None:
    result = committed("bench-scale")
    rows = [row for row in result["measured"] if row.get("what") == ROUND]
    assert {(row["documents"], row["model"]) for row in rows} == {(size, model) for size in SIZES for model in MODELS}
    assert all(goal["held"] for goal in result["tables"]["Goals"])
    for size in SIZES:
        assert len({row["sha256"] for row in rows if row["model"] == "lda" and row["documents"] == size}) == 1
    named = json.dumps([*result["missing"], *result["measured"]])
    assert all(name in named for name in (*PEERS, *ENGINES_OF))


# ---- what the product says of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["dp-central", "dp-distributed", "dp-local"])
def test_the_recommendation_has_the_figures_of_the_result(profile: str) -> None:
    rows = [
        row
        for row in committed("reproduce-private-frontier")["rows"]
        if (row["corpus"], row["topics"], row["judging"]) == ("20 Newsgroups", 20, 0.1)
    ]
    said = explain(profile)["recommended"]
    mine = [row for row in rows if (row["model"], row["profile"]) == ("lda-vi, public start", profile) and row["epsilon"] >= 1]
    assert len(mine) == 3
    assert all(f"{row['f1']:.2f} at epsilon {row['epsilon']:g}" in said for row in mine)
    control = next(row for row in rows if row["model"] == "public start, no document")
    assert f"{control['f1']:.2f} on topics that no document made" in said


def test_a_profile_that_was_not_tried_has_no_figures() -> None:
    tried = {"dp-central", "dp-distributed", "dp-local"}
    assert {name for name in profile_names() if frontier_says(name)} == tried


def test_what_the_product_shows_is_what_was_committed() -> None:
    data = Path(committed_costs.__file__).with_name("data")
    for file, rows in (("committed_figures.json", shown()), ("committed_lists.json", lists())):
        assert json.loads((data / file).read_text("utf-8")) == rows
