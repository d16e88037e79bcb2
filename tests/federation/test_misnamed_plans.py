"""Plans that name what is not there, or ask for what a profile refuses: said before documents are read or budgets charged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, Mistake, NeedsSum
from securetm.federation.folder import RUN, begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.soundness import check_answerable
from securetm.federation.store import read_arrays
from securetm.plans.agreement import agree
from securetm.plans.profiles import read_profile
from securetm.plans.recommend import plan_from_tables
from securetm.resources import data_folder
from securetm.stages import Unwatched

from .conftest import small_plan

MATCHED: Mapping[str, Any] = {"name": "lda", "form": "matched", "n_topics": 3, "sweeps": 2}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"name": "lda", "form": "martched"}, "must be aligned or matched"),
        ({"name": "lda-vi", "form": "matched"}, "lda-vi has one form only"),
        ({"name": "lda-matched", "form": "aligned"}, "lda-matched has one form only"),
        ({**MATCHED, "topics_at": "3"}, "topics_at.NAME=value"),
        ({**MATCHED, "topics_at": {"north": "2.5"}}, "`topics_at.north` in .* is '2.5'; it must be a whole number"),
        ({**MATCHED, "topics_at": {"north": 0}}, "1 to 65536 topics"),
    ],
)
def test_a_form_or_a_number_of_topics_that_cannot_be(model: Mapping[str, Any], said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        plan_from_tables({"profile": "open", "model": model}, "a test")


def test_a_party_trains_alone_with_as_many_topics_as_it_has_in_the_federation(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = small_plan(model={**MATCHED, "topics_at": {"north": 5, "west": 1}}, training__rounds=2)
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched())
    assert {name: len(topics) for name, topics in result["topics_alone"].items()} == {"north": 5, "south": 3, "west": 1}
    own = read_arrays(next((tmp_path / "run/parties").glob("*-west")) / "alone.safetensors")[0]
    assert int(own["held"][0]) == 1


def test_what_a_profile_refuses_is_said_before_documents_are_settled(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(profile="masked", model=MATCHED)
    with pytest.raises(NeedsSum):
        check_answerable(agree(plan), 4)
    with pytest.raises(NeedsSum):
        begin(tmp_path / "run", plan, five)
    assert not (tmp_path / "run" / RUN).exists()
    check_answerable(agree(small_plan(profile="masked", model={"name": "lda", "n_topics": 1})), 4)


@pytest.mark.parametrize("profile", ["open", "iftm"])
def test_a_list_without_a_word_of_anybodys_is_refused_before_it_is_paid_for(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("zebra\ngiraffe\n", "utf-8")
    listed = {"source": "file", "file": str(tmp_path / "words.txt")}
    with pytest.raises(Mistake, match="no document has a word of"):
        begin(
            tmp_path / "run",
            small_plan(profile=profile, model={"name": "lda"}, vocabulary=listed, origins__vocabulary="made up"),
            corpora,
        )
    assert not (tmp_path / "ledgers").exists()


def test_a_budget_below_what_is_drawn_at_once(tmp_path: Path) -> None:
    text = (data_folder("protocols") / "profiles/iftm.toml").read_text("utf-8")
    (tmp_path / "iftm.toml").write_text(text.replace("epsilon = 8.0\ndelta", "epsilon = 4.0\ndelta"), "utf-8")
    with pytest.raises(BadSetting, match="less than the 8 that laplace_counts draws at once"):
        read_profile(str(tmp_path / "iftm.toml"))
    assert read_profile(str(tmp_path / "iftm.toml"), {"epsilon": 2.0}).budget == Budget(Unit.WORD, 2.0, 1e-9)
