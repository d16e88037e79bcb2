"""Words that the coordinator should never see: guesses looked up in a recorded run, and columns matched to other text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks import attack_called
from securetm.auditing.attacks.hidden_words import NAMED, RIGHT, TOLD, look_up
from securetm.auditing.parts.column_matching import by_pairs, by_ranks
from securetm.auditing.plans import AuditPlan, read_audit_plan
from securetm.auditing.recorded import claims, columns_of, view_of, vocabulary_of
from securetm.auditing.runner import audit
from securetm.auditing.views import REQUEST, AdversaryView, NotTestable
from securetm.contracts import Adversary
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.folder import RunFolder
from securetm.federation.soundness import check_plan
from securetm.models.questions.hidden_words import KEY
from securetm.plans.profiles import NO_WORD
from securetm.plans.recommend import plan_from_tables

from .conftest import PARTIES, made_run, plan_tables
from .tried import EYES, tried

EFFORT = {"rounds": 1, "words": 400}
MATCHING = {"rounds": 1, "columns": 60}
DICTIONARY = attack_called("word_dictionary")


def tables(source: str, profile: str = "masked", model: str = "lda") -> dict[str, object]:
    made = plan_tables(profile, {"name": model, "n_topics": 4}, 1, held_out=0.5)
    return {**made, "vocabulary": {**made["vocabulary"], "source": source, "max_words": 60}}


@pytest.fixture(scope="module")
def documents() -> Mapping[str, Corpus]:
    """Documents of a few of twelve subjects, so that each word keeps a company of its own."""
    rng = np.random.default_rng(0)
    words = np.array(["".join(chr(97 + (n // 26**place) % 26) for place in range(3)) + "ing" for n in range(160)])
    subjects = rng.gamma(0.5, size=(12, len(words))) / np.arange(1, len(words) + 1)
    subjects /= subjects.sum(axis=1, keepdims=True)
    made = {}
    for name in PARTIES:
        shares = rng.dirichlet(np.full(12, 0.1), 400) @ subjects
        made[name] = Corpus.from_strings([" ".join(rng.choice(words, 25, p=share)) for share in shares], name=name)
    return made


@pytest.fixture(scope="module")
def runs(documents: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, RunFolder]:
    place = tmp_path_factory.mktemp("hidden")
    wanted = {
        "union": tables("union", "open"),
        "joint": tables("joint"),
        "blind": tables("blind"),
        "blind pairs": tables("blind", model="moments"),
    }
    return {name: made_run(place / name.replace(" ", "-"), documents, said) for name, said in wanted.items()}


@pytest.mark.parametrize("source", ["union", "joint"])
def test_a_list_that_the_coordinator_makes_is_told_whole(source: str, runs: Mapping[str, RunFolder]) -> None:
    found = tried(runs[source], "word_dictionary", EFFORT)
    assert found.share(TOLD) == found.share(RIGHT) == 1.0


def test_guesses_find_nothing_of_a_blind_list_unless_a_party_helps(runs: Mapping[str, RunFolder]) -> None:
    alone, helped = (tried(runs["blind"], "word_dictionary", EFFORT, helpers=helpers) for helpers in (0, 1))
    assert alone.hits(TOLD) == 0
    assert helped.share(TOLD) == 1.0
    assert helped.share(RIGHT) > 0.9
    assert claims(runs["blind"], NO_WORD, "coordinator")
    assert not claims(runs["blind"], NO_WORD, "coordinator", helpers=1)
    assert not claims(runs["joint"], NO_WORD, "coordinator")


@pytest.mark.slow
def test_guesses_find_nothing_in_ciphertexts(documents: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Where the parties open the sums, the coordinator does not even see where the columns lie."""
    folder = made_run(tmp_path / "run", documents, tables("blind", "bfv"))
    assert tried(folder, "word_dictionary", EFFORT).hits(TOLD) == 0
    assert vocabulary_of(folder) != columns_of(folder)
    with pytest.raises(NotTestable, match="ciphertext"):
        tried(folder, "column_frequencies", MATCHING)


@pytest.mark.slow
def test_a_key_that_can_be_guessed_gives_the_columns_away(
    documents: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OperatingSystem.bytes
    monkeypatch.setattr(OperatingSystem, "bytes", lambda self, n: bytes(n) if n == KEY else real(self, n))
    folder = made_run(tmp_path / "run", documents, tables("blind"))
    monkeypatch.undo()
    assert tried(folder, "word_dictionary", EFFORT).share(TOLD) > 0.2  # the words of columns


def test_a_hash_without_a_key_is_found_in_any_message(runs: Mapping[str, RunFolder]) -> None:
    words = ("abacuses", "balconies", "cathedral", "dromedary", "estuaries")
    view = replace(view_of(runs["blind"], EYES, DICTIONARY, 1), question=words)
    assert not look_up(view, EFFORT).any()
    hidden = (
        hashlib.sha256(b"abacuses").digest()[:10],
        hashlib.md5(b"balconies").hexdigest().encode(),
        b"\x01cathedral\x02",
        hashlib.blake2b(b"dromedary", digest_size=24).digest(),
    )
    for place, said in enumerate(hidden):
        told = look_up(_with(view, b"\x00\x01\x02" + said), EFFORT)
        assert np.flatnonzero(told).tolist() == [place]


def _with(view: AdversaryView, said: bytes) -> AdversaryView:
    sealed = view.messages("sealed")
    return replace(view, seen={**view.seen, "sealed": (*sealed, replace(sealed[0], serial=-1, content=said))})


def test_the_judge_reads_columns_as_the_parties_do_and_the_attacker_does_not(runs: Mapping[str, RunFolder]) -> None:
    folder = runs["blind"]
    words, columns = vocabulary_of(folder), columns_of(folder)
    assert len(words) == len(columns) > 40
    assert not set(words) & set(columns)
    found = tried(folder, "column_frequencies", MATCHING)
    assert found.view.vocabulary() == columns
    assert found.truth.vocabulary == words
    assert sum(int(held.sum()) for held in found.truth.held.values()) > 1000
    reader = Adversary("model reader", "honest-but-curious", (REQUEST, "vocabulary", "total"))
    assert view_of(folder, reader, DICTIONARY, 1).vocabulary() == words


def test_the_same_pairs_name_every_column() -> None:
    rng = np.random.default_rng(0)
    held = rng.random((500, 80)) < 0.3 / np.arange(1, 81) ** 0.5
    table, order = (held.T.astype(float) @ held), rng.permutation(80)
    assert (order[by_pairs(table, table[np.ix_(order, order)])] == np.arange(80)).all()
    assert (order[by_ranks(np.arange(80), np.arange(80)[order])] == np.arange(80)).all()


def test_columns_are_named_better_than_by_chance_from_other_documents(runs: Mapping[str, RunFolder]) -> None:
    for name in ("column_frequencies", "column_pairs"):
        found = tried(runs["blind pairs"], name, MATCHING)
        assert found.share(NAMED) > 0.15, name
        assert found.share(NAMED, by_chance=True) < 0.1
    assert tried(runs["joint"], "column_pairs", MATCHING).share(NAMED) == 1.0  # the names are words


@pytest.mark.slow
def test_an_audit_of_a_blind_run_says_what_remains(runs: Mapping[str, RunFolder], tmp_path: Path) -> None:
    counts = read_audit_plan("counts")
    plan = AuditPlan("hidden", "A test", tuple(one for one in counts.trials if one.threat_model == "hidden_words"))
    found = audit(plan, runs["blind"].path)
    own = {(one.attempt.attack, one.attempt.helpers): one for one in found.findings if not one.attempt.baseline}
    assert all(one.outcome.verdict == "refuted" for one in found.findings if one.attempt.baseline)
    assert own["word_dictionary", 0].standing == "held"
    assert own["word_dictionary", 0].about.claimed
    helped = own["word_dictionary", 1]
    assert helped.standing == "open"
    assert "one party that helps the coordinator reveals the frequency of every bucket" in helped.about.accepted
    assert "asks for no pairs" in own["column_pairs", 0].outcome.why
    assert found.refuted_claims == ()


def test_a_plan_with_a_blind_list_promises_that_no_word_is_seen() -> None:
    blind, joint = (check_plan(plan_from_tables(tables(source), "a test"), "hidden_words", 5) for source in ("blind", "joint"))
    assert blind == []
    assert [gap["claim"] for gap in joint] == [NO_WORD]
    told = tables("blind")
    told["vocabulary"] = {**told["vocabulary"], "told_at_the_end": True}  # type: ignore[dict-item]
    assert [gap["claim"] for gap in check_plan(plan_from_tables(told, "a test"), "hidden_words", 5)] == [NO_WORD]
