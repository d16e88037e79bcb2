"""A budget of single words: whom it protects, that it is charged once, and that nothing passes beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent

from securetm import profiles
from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting, DeltaTooLarge, DrawnUnpaid, Interrupted, LedgerRolledBack
from securetm.federation.drawn import DrawnOnce
from securetm.federation.folder import RunFolder, Unwatched, begin, reopen
from securetm.federation.paying import bill_of, settled
from securetm.federation.simulation import execute
from securetm.federation.store import COMMON, Drawer

from .conftest import small_plan
from .played import Played
from .private import PUBLIC, paying_parties, public_words
from .toy_words import ToyWordNoise

TOY = """\
name = "iftm"
title = "A toy"
threat_model = "word_occurrences"
aggregation = "plain"
vocabularies = ["file"]

[budget]
unit = "word"
epsilon = 8.0
delta = 1e-9

[[mechanism]]
kind = "laplace_counts"
epsilon = 8.0
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Noise of the tests' own, under the name of the real one."""
    monkeypatch.setitem(profiles.MECHANISMS, "laplace_counts", ToyWordNoise)  # type: ignore[arg-type]
    path = tmp_path / "iftm.toml"
    path.write_text(TOY, "utf-8")
    return str(path)


def plan_of(profile: str, folder: Path, **more: Any) -> Any:
    words = {"vocabulary__source": "file", "vocabulary__file": public_words(folder)}
    return small_plan(profile=profile, **{**words, "training__rounds": 3, **more})


def ran(folder: Path, name: str, plan: Any, corpora: Mapping[str, Corpus]) -> tuple[RunFolder, dict[str, Any]]:
    made = begin(folder / name, plan, corpora)
    return made, execute(made, Unwatched())


def entries(folder: RunFolder, name: str = "north") -> list[Any]:
    with Ledger.read(folder.ledger(name)) as ledger:
        return [entry.content for entry in ledger.entries() if entry.content["kind"] == "spent"]


def test_three_rounds_are_charged_once_and_say_so(profile: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder, result = ran(tmp_path, "run", plan_of(profile, tmp_path), corpora)
    assert (result["rounds"], result["stopped"]) == (3, "rounds")
    for spent in result["spent"]:
        assert (spent["unit"], spent["delta"]) == ("word", 1e-9)
        assert spent["epsilon"] == pytest.approx(8.0)
        assert spent["epsilon"] <= 8.0
        assert len(entries(folder, spent["party"])) == 1
    (entry,) = entries(folder)
    assert entry["unit"] == entry["about"]["unit"] == "word"


def test_what_it_means_for_a_whole_document_is_said_by_the_party(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    _, result = ran(tmp_path, "run", plan_of(profile, tmp_path), corpora)
    for spent in result["spent"]:
        per = spent["per_document"]
        assert 12 <= per["median_words"] <= per["p95_words"] < 30
        assert per["median_epsilon"] == pytest.approx(8.0 * per["median_words"])
        assert per["p95_epsilon"] == pytest.approx(8.0 * per["p95_words"])


def test_another_run_over_the_same_documents_and_words_costs_nothing(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    first, _ = ran(tmp_path, "first", plan_of(profile, tmp_path), corpora)
    folder, result = ran(tmp_path, "second", plan_of(profile, tmp_path, model__n_topics=4), corpora)
    assert folder.ledger("north") == first.ledger("north")
    assert result["rounds"] == 3
    assert len(entries(folder)) == 1
    assert all(spent["epsilon"] == 0 and spent["all_runs"] == pytest.approx(8.0) for spent in result["spent"])


@pytest.mark.parametrize("changed", ["words", "documents", "epsilon"])
def test_other_words_or_documents_are_other_noise_that_is_not_afforded(
    changed: str, profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    ran(tmp_path, "first", plan_of(profile, tmp_path), corpora)
    more: dict[str, Any] = {}
    if changed == "words":
        (tmp_path / "fewer.txt").write_text("\n".join(PUBLIC[:-1]), "utf-8")
        more = {"vocabulary__file": str(tmp_path / "fewer.txt")}
    elif changed == "epsilon":
        more = {"privacy__epsilon": 4.0}
    others = {name: corpus.select(np.arange(len(corpus) - 9)) for name, corpus in corpora.items()}
    folder, result = ran(tmp_path, "second", plan_of(profile, tmp_path, **more), others if changed == "documents" else corpora)
    assert (result["rounds"], result["stopped"]) == (0, "budget")
    assert len(entries(folder)) == 1


def test_a_larger_budget_affords_a_second_list_of_words(profile: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    Path(profile).write_text(TOY.replace("epsilon = 8.0\ndelta", "epsilon = 16.0\ndelta"), "utf-8")
    ran(tmp_path, "first", plan_of(profile, tmp_path), corpora)
    (tmp_path / "fewer.txt").write_text("\n".join(PUBLIC[:-1]), "utf-8")
    fewer = plan_of(profile, tmp_path, vocabulary__file=str(tmp_path / "fewer.txt"))
    folder, result = ran(tmp_path, "second", fewer, corpora)
    assert result["rounds"] == 3
    assert len(entries(folder)) == 2
    assert result["spent"][0]["all_runs"] == pytest.approx(16.0)
    assert result["spent"][0]["per_document"]["median_epsilon"] == pytest.approx(
        16.0 * result["spent"][0]["per_document"]["median_words"]
    )


# ---- killed in between ---------------------------------------------------------------------------------------------


class After(Unwatched):
    """Stops the run after so many rounds, as Ctrl-C does."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def step(self, done: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_run_that_goes_on_uses_the_noise_that_it_drew(profile: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder = begin(tmp_path / "run", plan_of(profile, tmp_path), corpora)
    with pytest.raises(Interrupted):
        execute(folder, After(2))
    result = execute(reopen(folder.path), Unwatched())
    assert (result["rounds"], result["stopped"]) == (3, "rounds")
    assert all(len(entries(folder, name)) == 1 for name in corpora)


def test_a_crash_before_the_noise_was_kept_is_charged_again(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was charged by then is not given back: nobody can be sure that nothing was sent."""
    Path(profile).write_text(TOY.replace("epsilon = 8.0\ndelta", "epsilon = 16.0\ndelta"), "utf-8")
    folder = begin(tmp_path / "run", plan_of(profile, tmp_path), corpora)

    def crash(drawn: DrawnOnce, key: str, value: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DrawnOnce, "put", crash)
        with pytest.raises(Interrupted):
            execute(folder, Unwatched())
    assert len(entries(folder)) == 1
    result = execute(reopen(folder.path), Unwatched())
    assert result["rounds"] == 3
    assert len(entries(folder)) == 2


# ---- what was drawn once -------------------------------------------------------------------------------------------

WORDS = Budget(Unit.WORD, 8.0, 1e-9)


def test_noise_is_kept_only_if_it_was_paid_for_and_only_for_the_ledger_that_paid(tmp_path: Path) -> None:
    drawer = Drawer(tmp_path / "north.others", COMMON)
    with Ledger.open(tmp_path / "north.ledger", "north", WORDS) as ledger:
        drawn = DrawnOnce(drawer, ledger)
        with pytest.raises(DrawnUnpaid):
            drawn.put("noise", b"secret")
        assert drawn.get("noise") is None
        drawn.paid = True
        drawn.put("noise", b"secret")
        assert drawn.get("noise") == b"secret"
    with Ledger.open(tmp_path / "another.ledger", "north", WORDS) as another:
        assert DrawnOnce(drawer, another).get("noise") is None
    drawer.close()


def test_noise_beside_a_ledger_that_was_put_back_is_refused(tmp_path: Path) -> None:
    drawer = Drawer(tmp_path / "north.others", COMMON)
    path = tmp_path / "north.ledger"
    Ledger.open(path, "north", WORDS).close()
    before = path.read_bytes()
    with Ledger.open(path, "north", WORDS) as ledger:
        ledger.record("a run", Spend(GaussianDpEvent(9.0)), {})
        DrawnOnce(drawer, ledger, paid=True).put("noise", b"secret")
    path.write_bytes(before)
    with Ledger.open(path, "north", WORDS) as ledger, pytest.raises(LedgerRolledBack):
        DrawnOnce(drawer, ledger).get("noise")
    drawer.close()


# ---- who is protected ----------------------------------------------------------------------------------------------


def test_a_column_of_persons_does_not_make_it_a_budget_of_persons(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = plan_of(profile, tmp_path, corpus__person="author")
    assert plan.unit is Unit.WORD
    assert settled(plan, 3, Unit.PERSON).unit is Unit.WORD


@pytest.mark.parametrize("unit", ["document", "person"])
def test_a_plan_cannot_turn_words_into_documents(unit: str, profile: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=f"adds noise to single word occurrences, and hides no whole {unit}"):
        plan_of(profile, tmp_path, privacy__unit=unit)


def test_a_plan_cannot_turn_documents_into_words() -> None:
    with pytest.raises(BadSetting, match="protects whole documents, or whole persons"):
        small_plan(profile="dp-local", privacy__unit="word")


def test_epsilon_sets_the_budget_and_the_one_draw_that_it_affords(profile: str, tmp_path: Path) -> None:
    plan = plan_of(profile, tmp_path, privacy__epsilon=4.0)
    made = plan.make_profile()
    assert made.budget == Budget(Unit.WORD, 4.0, 1e-9)
    assert made.mechanisms[0].epsilon == 4.0  # type: ignore[attr-defined]
    assert settled(plan, 3).privacy == plan.privacy
    bill = bill_of(plan, 3)
    assert bill.round is None
    assert len(bill.spends()) == 1
    with pytest.raises(BadSetting, match="this profile has no such number"):
        plan_of(profile, tmp_path, privacy__noise=2.0)


def test_a_delta_is_judged_by_the_number_of_words(profile: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """More than a thousand words in ninety documents: a delta of a thousandth would allow to publish one of them."""
    plan = plan_of(profile, tmp_path, privacy__delta=1e-3)
    assert len(corpora["north"]) * 1e-3 < 1 < corpora["north"].counts.sum() * 1e-3
    with pytest.raises(DeltaTooLarge, match="would allow to publish one word of them"):
        paying_parties(plan, corpora, tmp_path)


@pytest.mark.parametrize("question", ["held_out", "coherence", "words", "frequencies", "joint"])
def test_nothing_is_answered_beside_the_noise(
    question: str, profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    from securetm.federation import wire

    plan = plan_of(profile, tmp_path)
    party = paying_parties(plan, corpora, tmp_path)["north"]
    played = Played(plan, tuple(corpora))
    for body in (played.invite(), played.adopt(PUBLIC)):
        assert isinstance(played.send(party, body), wire.Accepted)
    state = {"top": np.arange(6).reshape(2, 3)} if question == "coherence" else played.fresh()
    ask = wire.Ask(question, 0, 1, tuple(corpora), bytes(32), state)
    assert played.send(party, ask) in (wire.Refusal("NotPaidFor"), wire.Refusal("UnknownQuestion"))
    party.close()


def test_which_documents_are_learned_from_does_not_depend_on_their_words(
    profile: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """Other words at the same places, of one author or of many: the same documents on the same side."""
    plan = plan_of(profile, tmp_path)
    one = corpora["north"].project(PUBLIC)
    assert one.tokens is not None
    words = np.random.default_rng(5).integers(0, len(PUBLIC), len(one.tokens))
    order = {"sentence_ends": one.sentence_ends, "keys": one.keys, "persons": np.arange(len(one)) % 3}
    other = Corpus.from_tokens(words, one.token_ends, PUBLIC, **order)
    found = []
    for corpus in (one, other):
        party = paying_parties(plan, {**corpora, "north": corpus}, tmp_path / str(len(found)))["north"]
        party.documents.adopt(PUBLIC, plan)
        found.append(party.documents.for_question("train"))
        party.close()
    assert 0 < len(found[0]) < len(one)
    assert np.array_equal(found[0].keys, found[1].keys)
    assert np.array_equal(found[0].token_ends, found[1].token_ends)
    assert np.array_equal(found[0].sentence_ends, found[1].sentence_ends)
    assert not np.array_equal(found[0].tokens, found[1].tokens)
