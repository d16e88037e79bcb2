"""A plan that is written says everything: read again it is the same plan, and nothing of it is chosen anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm.errors import BadSetting
from securetm.federation.folder import PLAN, begin, reopen
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_text, recommended, recommended_for
from securetm.plans.rules import WORDS_RULE, rounds_rule
from securetm.plans.schema import decode

from ..federation.conftest import FIVE, texts
from .oracle import tables_of

CASES = [
    ("lda-vi", "dp-distributed", "short", "document"),
    ("lda-vi", "dp-central", "long", "person"),
    ("lda-vi", "dp-distributed", "german", "document"),
    ("prodlda", "masked", "epochs", "document"),
    ("zeroshot-tm", "masked", "long", "document"),
    ("lda", "iftm", "short", "document"),
    ("moments", "dp-central", "short", "document"),
]


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_a_written_plan_is_the_plan(case: tuple[str, str, str, str], tmp_path: Path) -> None:
    found = recommended(tables_of(*case), "a test")
    (tmp_path / "plan.toml").write_text(plan_text(found, {}, ["A head."]), "utf-8")
    again = recommended_for(tmp_path / "plan.toml", {})
    assert again.plan == found.plan
    assert not again.why
    assert decode(json.loads(json.dumps(found.plan.tables())), "run.json") == found.plan
    assert agree(again.plan).digest == agree(found.plan).digest


def test_every_choice_says_why_and_by_which_fit(tmp_path: Path) -> None:
    found = recommended(tables_of("lda-vi", "dp-distributed", "long", "document"), "a test")
    assert found.why["training.rounds"] == rounds_rule(plain=False).why
    assert found.why["vocabulary.max_words"] == WORDS_RULE.why
    assert "python -m lab reproduce settings-rule" in plan_text(found, {})
    assert "training.documents" not in found.why  # it was said


def test_the_folder_of_a_run_holds_the_plan_that_ran(tmp_path: Path) -> None:
    from securetm.corpus.corpus import Corpus

    corpora = {name: Corpus.from_strings(texts(FIVE[name], 130, 1), name=name) for name in FIVE}
    request = {
        "profile": "dp-distributed",
        "model": {"n_topics": 3},
        "training": {"documents": 650},
        "vocabulary": {"file": "english"},
    }
    found = recommended(request, "a test")
    folder = begin(tmp_path / "run", found.plan, corpora, why=found.why)
    text = (tmp_path / "run" / PLAN).read_text("utf-8")
    assert "the least with which epsilon lasts for all rounds of 5 parties" in text
    again = recommended_for(tmp_path / "run" / PLAN, {})
    assert (again.plan, again.why) == (folder.agreement.plan, {})
    assert agree(again.plan).digest == folder.agreement.digest == reopen(tmp_path / "run").agreement.digest


def test_what_is_outside_its_limits_is_refused_with_what_is_allowed() -> None:
    for table, said in (
        ({"training": {"rounds": 0}}, "must be from 1 to 10,000,000"),
        ({"vocabulary": {"max_share": 2}}, "above 0 and at most 1"),
        ({"coordinator": {"listen": "here"}}, "an address and a port"),
        ({"training": {"stop": "late"}}, "must be one of rounds, weights, held_out"),
    ):
        with pytest.raises(BadSetting, match=said):
            decode(table, "a test")


def test_a_plan_of_before_keeps_its_words_and_its_digest(tmp_path: Path) -> None:
    """A plan that says all that older ones do about words, and nothing of markup, is read as it was."""
    older = {"tokeniser": {"lower": True, "numbers": False, "longest": 1000000, "stop_words": "english"}}
    request = {"profile": "masked", "vocabulary": {"file": "english", "max_words": 50}}
    kept, new = recommended({**request, **older}, "a test").plan, recommended(request, "a test").plan
    assert (kept.tokeniser.markup, new.tokeniser.markup) == ("kept", "dropped")
    assert (kept.tokeniser.quotes, new.tokeniser.quotes) == ("kept", "dropped")
    assert kept.tokeniser == decode({}, "run.json").tokeniser  # nor does the record of an older run say anything
    assert agree(kept).digest != agree(new).digest
    named = decode({**request, "tokeniser": {"hashtags": "none"}}, "run.json")
    assert agree(named).digest != agree(decode(request, "run.json")).digest


def test_a_language_chooses_stop_words_list_and_start() -> None:
    """Vectors that are installed are English: another language begins plainly, or with vectors that somebody names."""
    request = {"profile": "dp-distributed", "model": {"n_topics": 3}, "training": {"documents": 2000, "document_length": 30.0}}
    found = recommended({**request, "vocabulary": {"file": "slovenian", "max_words": 50}}, "a test")
    assert (found.plan.tokeniser.stop_words, found.plan.training.start) == ("sl", "plain")
    assert agree(found.plan).vectors is None
    with pytest.raises(BadSetting, match="Slovenian"):
        recommended({**request, "tokeniser": {"stop_words": "sl"}, "training": {"start": "public"}}, "a test")
    assert recommended(request, "a test").plan.training.start == ""
