"""A budget of single words: whom it protects, that it is charged once, that nothing passes beside it, and who knows of it."""

from __future__ import annotations

import io
import json
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from rich.console import Console

from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.accounting.calculator.budget_report import report
from securetm.accounting.calculator.ledger_report import ledger_report
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger import ledger as clocks
from securetm.accounting.ledger.ledger_file import LedgerRolledBack
from securetm.accounting.spends import Spend
from securetm.cli.budget_profile import ProfileQuestion
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.corpus.tokeniser import Tokeniser
from securetm.entropy import OperatingSystem, Seeded
from securetm.errors import BadSetting, Failed, Mismatch
from securetm.federation.budget.prices import bill_of, calibrated
from securetm.federation.document_minimum import DeltaTooLarge
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party.state import KeptNoise
from securetm.federation.simulation.simulation import execute
from securetm.federation.soundness import check
from securetm.federation.sources import named_for
from securetm.federation.store import COMMON, SqliteStore
from securetm.federation.transcript import Transcript
from securetm.mechanisms.slot_noise import SlotNoise
from securetm.models.stored_model import StoredModel
from securetm.plans.agreement import agree
from securetm.plans.profiles import model_class
from securetm.plans.schema import Plan
from securetm.reports.budget import show_report
from securetm.reports.profiles import explain, show_explanation
from securetm.reports.runs import show_run
from securetm.resources import data_folder
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import small_plan
from .killed_run import ended
from .played import Played
from .private import PUBLIC, paid, paying_parties, private_plan, public_words, settle

MODEL = {"name": "lda", "n_topics": 3, "sweeps": 2}


@pytest.fixture
def twice(tmp_path: Path) -> str:
    """The profile with a budget for two drawings of the noise."""
    text = (data_folder("protocols") / "profiles" / "iftm.toml").read_text("utf-8")
    larger = text.replace("epsilon = 8.0\ndelta", "epsilon = 16.0\ndelta")
    assert larger != text
    (tmp_path / "iftm.toml").write_text(larger, "utf-8")
    return str(tmp_path / "iftm.toml")


def plan_of(folder: Path, profile: str = "iftm", **more: Any) -> Any:
    words = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": public_words(folder)}
    return small_plan(profile=profile, model=dict(MODEL), **{**words, "training__rounds": 3, **more})


def ran(folder: Path, name: str, plan: Any, corpora: Mapping[str, Corpus]) -> tuple[RunFolder, dict[str, Any]]:
    made = begin(folder / name, plan, corpora, ledgers=folder / "ledgers")
    return made, execute(made, Unwatched(), comparison=False)


@pytest.fixture(scope="module")
def first(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, dict[str, Any]]:
    """A run that spent the whole budget of its documents, and its result. Later runs over them meet its ledgers."""
    place = tmp_path_factory.mktemp("first")
    return ran(place, "run", plan_of(place), corpora)


def test_three_rounds_are_charged_once_and_say_so(first: tuple[RunFolder, dict[str, Any]]) -> None:
    folder, result = first
    assert (result["rounds"], result["stopped"]) == (3, "rounds")
    for spent in result["spent"]:
        assert (spent["unit"], spent["delta"]) == ("word", 1e-9)
        assert spent["epsilon"] == pytest.approx(8.0)
        assert spent["epsilon"] <= 8.0
        assert len(paid(folder.ledger(spent["party"]))) == 1
        per = spent["per_document"]  # said by the party
        assert 12 <= per["median_words"] <= per["p95_words"] < 30
        assert per["median_epsilon"] == pytest.approx(8.0 * per["median_words"])
        assert per["p95_epsilon"] == pytest.approx(8.0 * per["p95_words"])
    (entry,) = paid(folder.ledger("north"))
    assert entry["unit"] == entry["about"]["unit"] == "word"


def test_another_run_over_the_same_documents_and_words_costs_nothing(
    first: tuple[RunFolder, dict[str, Any]], corpora: Mapping[str, Corpus]
) -> None:
    place = first[0].path.parent
    folder, result = ran(place, "second", plan_of(place, model__n_topics=4), corpora)
    assert folder.ledger("north") == first[0].ledger("north")
    assert result["rounds"] == 3
    assert len(paid(folder.ledger("north"))) == 1
    assert all(spent["epsilon"] == 0 and spent["all_runs"] == pytest.approx(8.0) for spent in result["spent"])


@pytest.mark.parametrize("changed", ["words", "documents", "epsilon"])
def test_other_words_or_documents_are_other_noise_that_is_not_afforded(
    changed: str, first: tuple[RunFolder, dict[str, Any]], corpora: Mapping[str, Corpus]
) -> None:
    place, more, parties = first[0].path.parent, dict[str, Any](), dict(corpora)
    if changed == "words":
        (place / "fewer.txt").write_text("\n".join(PUBLIC[:-1]), "utf-8")
        more = {"vocabulary__file": str(place / "fewer.txt")}
    elif changed == "epsilon":
        more = {"privacy__epsilon": 4.0}
    else:
        parties = {name: corpus.select(np.arange(len(corpus) - 9)) for name, corpus in corpora.items()}
    folder, result = ran(place, changed, plan_of(place, **more), parties)
    assert (result["rounds"], result["stopped"]) == (0, "budget")
    assert len(paid(folder.ledger("north"))) == 1


# ---- killed in between ---------------------------------------------------------------------------------------------


def test_a_run_that_was_killed_without_warning_goes_on_with_the_noise_that_it_drew(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    stored = tmp_path / "corpora"
    stored.mkdir()
    for name, corpus in corpora.items():
        corpus.save(stored / f"{name}.npz")
    settings = json.dumps({name: value for name, value in plan_of(tmp_path).tables().items() if name != "tokeniser"})
    assert ended(tmp_path / "run", "begin", "round", 2, str(stored), settings) == -signal.SIGKILL
    folder = reopen(tmp_path / "run")
    assert all(len(paid(folder.ledger(name))) == 1 for name in corpora)
    result = execute(folder, Unwatched(), comparison=False)
    assert (result["rounds"], result["stopped"]) == (3, "rounds")
    assert all(len(paid(folder.ledger(name))) == 1 for name in corpora)


def test_after_a_crash_before_the_noise_was_kept_it_is_drawn_under_the_same_entry(
    twice: str, corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing left: the ledger would hold the digest of what did."""
    folder = begin(tmp_path / "run", plan_of(tmp_path, twice), corpora)

    def crash(drawn: KeptNoise, key: str, value: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(KeptNoise, "put", crash)
        with pytest.raises(Failed, match="the run was interrupted after round"):
            execute(folder, Unwatched(), comparison=False)
    assert len(paid(folder.ledger("north"))) == 1
    result = execute(reopen(folder.path), Unwatched(), comparison=False)
    assert result["rounds"] == 3
    assert len(paid(folder.ledger("north"))) == 1


# ---- what was drawn once -------------------------------------------------------------------------------------------

WORDS = Budget(Unit.WORD, 8.0, 1e-9)


def test_noise_is_kept_only_if_it_was_paid_for_and_only_for_the_ledger_that_paid(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "north.others", COMMON)
    with Ledger.open(tmp_path / "north.ledger", "north", WORDS) as ledger:
        drawn = KeptNoise(store, ledger)
        with pytest.raises(Failed, match="noise was to be drawn before it was charged"):
            drawn.put("noise", b"secret")
        assert drawn.get("noise") is None
        drawn.paid = True
        drawn.put("noise", b"secret")
        assert drawn.get("noise") == b"secret"
    with Ledger.open(tmp_path / "another.ledger", "north", WORDS) as another:
        assert KeptNoise(store, another).get("noise") is None
    store.close()


def test_noise_beside_a_ledger_that_was_put_back_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "north.others", COMMON)
    path = tmp_path / "north.ledger"
    Ledger.open(path, "north", WORDS).close()
    before = path.read_bytes()
    with Ledger.open(path, "north", WORDS) as ledger:
        ledger.record("a run", Spend(GaussianDpEvent(9.0)), {})
        KeptNoise(store, ledger, paid=True).put("noise", b"secret")
    path.write_bytes(before)
    with Ledger.open(path, "north", WORDS) as ledger, pytest.raises(LedgerRolledBack):
        KeptNoise(store, ledger).get("noise")
    store.close()


# ---- who is protected ----------------------------------------------------------------------------------------------


def test_a_column_of_persons_does_not_make_it_a_budget_of_persons(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(tmp_path, corpus__person="author")
    assert agree(plan).unit is Unit.WORD
    assert calibrated(agree(plan), 3, Unit.PERSON).unit is Unit.WORD


@pytest.mark.parametrize("unit", ["document", "person"])
def test_a_plan_cannot_turn_words_into_documents(unit: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=f"adds noise to single word occurrences, and hides no whole {unit}"):
        plan_of(tmp_path, privacy__unit=unit)


def test_a_plan_cannot_turn_documents_into_words() -> None:
    with pytest.raises(BadSetting, match="protects whole documents, or whole persons"):
        small_plan(profile="dp-local", privacy__unit="word")


def test_runs_of_words_would_say_a_word_more_than_once(tmp_path: Path) -> None:
    """A word, the pair that it ends and the pair that it begins are three slots, and each would have an epsilon of its own."""
    text = "alpha beta gamma delta"
    with_pairs = Corpus.from_strings([text], tokeniser=Tokeniser(ngrams=2, stop_words="none"), name="one")
    without = Corpus.from_strings([text.replace("beta", "omega")], tokeniser=Tokeniser(ngrams=2, stop_words="none"), name="one")
    whole = tuple(sorted({*with_pairs.vocabulary, *without.vocabulary}))
    one, other = with_pairs.project(whole).tokens, without.project(whole).tokens
    assert (one != other).sum() == 3
    with pytest.raises(BadSetting, match="puts one word into up to 3 slots"):
        plan_of(tmp_path, tokeniser__ngrams=2)
    small_plan(profile="dp-local", tokeniser__ngrams=2)


def test_epsilon_sets_the_budget_and_the_one_draw_that_it_affords(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, privacy__epsilon=4.0)
    made = agree(plan).profile
    assert made.budget == Budget(Unit.WORD, 4.0, 1e-9)
    assert made.mechanisms[0].epsilon == 4.0  # type: ignore[attr-defined]
    assert calibrated(agree(plan), 3).plan.privacy == plan.privacy
    bill = bill_of(agree(plan), 3)
    assert bill.round is None
    assert len(bill.spends()) == 1
    with pytest.raises(BadSetting, match="this profile has no such number"):
        plan_of(tmp_path, privacy__noise=2.0)


def test_a_delta_is_judged_by_the_number_of_words(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """More than a thousand words in ninety documents: a delta of a thousandth would allow to publish one of them."""
    plan = plan_of(tmp_path, privacy__delta=1e-3)
    assert len(corpora["north"]) * 1e-3 < 1 < corpora["north"].counts.sum() * 1e-3
    with pytest.raises(DeltaTooLarge, match="would allow to publish one word of them"):
        paying_parties(plan, corpora, tmp_path)


@pytest.mark.parametrize("question", ["coherence", "joint"])  # as of documents, in test_private_runs
def test_nothing_is_answered_beside_the_noise(question: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    from securetm.federation.wire import wire

    plan = plan_of(tmp_path)
    party = paying_parties(plan, corpora, tmp_path)["north"]
    played = Played(plan, tuple(corpora))
    settle(played, party)
    state = {"top": np.arange(6).reshape(2, 3)} if question == "coherence" else played.fresh()
    ask = wire.Ask(question, 0, 1, tuple(corpora), bytes(32), state)
    assert played.send(party, ask) in (wire.Refusal("NotPaidFor"), wire.Refusal("UnknownQuestion"))
    party.close()


def test_which_documents_are_learned_from_does_not_depend_on_their_words(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Other words at the same places, of one author or of many: the same documents on the same side."""
    plan = plan_of(tmp_path)
    one = corpora["north"].project(PUBLIC)
    assert one.tokens is not None
    words = np.random.default_rng(5).integers(0, len(PUBLIC), len(one.tokens))
    order = {"sentence_ends": one.sentence_ends, "keys": one.keys, "persons": np.arange(len(one)) % 3}
    other = Corpus.from_tokens(words, one.token_ends, PUBLIC, **order)  # keys of places, as a run gives them
    found = []
    for corpus in (one, other):
        party = paying_parties(plan, {**corpora, "north": corpus}, tmp_path / str(len(found)))["north"]
        party.documents.adopt(PUBLIC, agree(plan))
        found.append(party.documents.for_question("train"))
        party.close()
    assert 0 < len(found[0]) < len(one)
    found = [held.select(np.argsort(held.keys)) for held in found]  # a person's documents are side by side in a party
    assert np.array_equal(found[0].keys, found[1].keys)
    assert np.array_equal(found[0].token_ends, found[1].token_ends)
    assert np.array_equal(found[0].sentence_ends, found[1].sentence_ends)
    assert not np.array_equal(found[0].tokens, found[1].tokens)


# ---- what is said of it --------------------------------------------------------------------------------------------


def test_no_epsilon_of_words_is_said_without_what_it_is_of(first: tuple[RunFolder, dict[str, Any]]) -> None:
    """Not by `explain`, not by the calculator, not by a ledger, not after a run."""
    folder, result = first
    to = Console(file=io.StringIO(), width=400)
    show_run(result, "", to)
    show_explanation(explain("iftm"), to)
    show_report(report(ProfileQuestion("iftm", 5, 50, 2000).question(Unwatched()), Unwatched()), to)
    show_report(ledger_report(folder.ledger("north"), Unwatched()), to)
    said = " ".join(to.file.getvalue().replace("│", " ").split())  # type: ignore[attr-defined]
    assert len(re.findall(r"epsilon = 8 per word occurrence", said)) >= 5
    assert not re.findall(r"epsilon = 8(?! per word occurrence)\b[^,.\d]", said)
    assert said.count("64 per document of 8 words") == 2  # by the calculator and by the ledger
    assert "64 for one of 8 words, 480 for one of 60 words, and 1,704 for one of 213 words" in said


def test_raw_counts_are_refused_by_name(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    text = (data_folder("protocols") / "profiles" / "iftm.toml").read_text("utf-8")
    path = tmp_path / "iftm.toml"
    path.write_text(text.replace('"discrete"', '"discrete"\nraw = true'), "utf-8")
    reasons = [gap["reason"] for gap in check(str(path), "lda", None, 5)]
    assert any("the exact counts of words would be released" in reason for reason in reasons)
    assert check(str(path), None, None, 5)  # nor does it claim anything
    with pytest.raises(Mismatch, match="the exact counts of words would be"):
        begin(tmp_path / "run", plan_of(tmp_path, str(path)), corpora)


def without_noise(folder: Path, how: str) -> str:
    """The profile with a budget of words that nothing keeps: words count raw, or nobody adds noise to them."""
    text = (data_folder("protocols") / "profiles" / "iftm.toml").read_text("utf-8")
    parts = text.split("[[mechanism]]")
    noise = parts[1].replace("threshold  ", "raw = true\nthreshold  ")
    assert noise != parts[1]
    kept = [parts[0], *([noise] if how == "raw" else []), *parts[2:]]
    path = folder / "iftm.toml"
    path.write_text("[[mechanism]]".join(kept), "utf-8")
    return str(path)


@pytest.mark.parametrize("how", ["raw", "nobody"])
def test_a_budget_that_nothing_keeps_is_said_to_be_none(how: str, tmp_path: Path) -> None:
    said = explain(without_noise(tmp_path, how))
    assert said["gaps"]
    assert "no differential privacy is given" in said["spent"]
    assert "8" not in said["spent"]
    assert "noise" not in " ".join(said["views"][0]["sees"])


def test_whom_words_are_hidden_from_is_said_where_noise_of_another_unit_stands_behind(tmp_path: Path) -> None:
    """It adds nothing to answers that are noised already, and so it takes nobody out of the sentence either."""
    text = (data_folder("protocols") / "profiles" / "iftm.toml").read_text("utf-8")
    path = tmp_path / "iftm.toml"
    path.write_text(f'{text}\n[[mechanism]]\nkind = "gaussian"\nnoise_multiplier = 1.0\n', "utf-8")
    both, alone = (ProfileQuestion(name, 5, 50, 2000).question(Unwatched()) for name in (str(path), "iftm"))
    assert both.promise.against == alone.promise.against != ""
    assert both.spends == alone.spends


# ---- noise that is known ---------------------------------------------------------------------------------------------------


UNKNOWN = 1500


@pytest.fixture(scope="module")
def parties() -> Mapping[str, Corpus]:
    nodes = lda_nodes(LdaNodes(nodes=1, topics=20, alpha=0.1, words=UNKNOWN, documents=500, shortest=15, longest=30), seed=0)
    return equal(next(iter(nodes.train.values())), 5, seed=0)


@pytest.fixture
def words(parties: Mapping[str, Corpus], tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(next(iter(parties.values())).vocabulary), "utf-8")
    return path


def trained(place: Path, profile: str, model: str, parties: Mapping[str, Corpus], rounds: int = 20, **more: Any) -> RunFolder:
    """A finished run."""
    choice = {"name": model, "n_topics": 4}
    folder = begin(place / "run", private_plan(place, profile, model=choice, training__rounds=rounds, **more), parties)
    execute(folder, Unwatched(), comparison=False)
    return folder


@pytest.mark.parametrize("model", quick(["lda", "lda-vi"], "lda-vi"))
def test_the_model_remembers_that_words_were_noised_at_home(model: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """So it predicts by its table as it is, also when it is read again; parties are asked about the table alone."""
    folder = trained(tmp_path, "iftm", model, five, privacy__epsilon=5.0)
    made, state, words = StoredModel.open(folder.model).model(model_class)
    exact = {name: array for name, array in state.items() if name != "words_noised"}
    assert set(state) - set(exact) == {"words_noised"}
    assert set(made.for_party(state, "north")) == set(made.for_party(exact, "north"))
    assert made.fits(state, len(words))
    assert not made.fits({**state, "words_noised": np.ones(2)}, len(words))
    gained = 0.0
    for corpus in five.values():
        seen, unseen = corpus.project(words).halves(0)
        gained += float(np.sum(made.log_likelihood(state, seen, unseen) - made.log_likelihood(exact, seen, unseen)))
    assert gained > 0


def test_without_noise_on_words_no_model_says_so(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder = trained(tmp_path, "open", "lda", corpora, rounds=2)
    assert "words_noised" not in StoredModel.open(folder.model).model(model_class)[1]


# ---- the same noised words are the same bytes ------------------------------------------------------------------------------


MODELS: Mapping[str, Mapping[str, Any]] = {
    "lda": {"n_topics": 3, "sweeps": 2},
    "lda-matched": {"n_topics": 3},
    "lda-vi": {"n_topics": 3},
    "moments": {"n_topics": 3},
    "nmf": {"n_topics": 3},
    "sentence-lda": {"n_topics": 3},
    "prodlda": {"n_topics": 3, "hidden": 8, "batch": 16},
}
Sent = list[tuple[Any, ...]]


def alike(words: int) -> Mapping[str, Corpus]:
    """Documents and sentences of the same lengths in every set, with other words at every place."""
    made, drawn = {}, np.random.default_rng(words)
    for place, name in enumerate(("north", "south", "west")):
        rng = np.random.default_rng(place)
        sentences = rng.integers(1, 8, 3 * (12 + 4 * place))
        ends = np.cumsum(sentences)
        tokens = drawn.integers(0, len(PUBLIC), ends[-1])
        keys = rng.integers(0, 2**63, len(ends) // 3).astype(np.uint64)
        made[name] = Corpus.from_tokens(tokens, ends[2::3], PUBLIC, sentence_ends=ends, keys=keys, name=name)
    return made


def plan_behind_noise(folder: Path, model: str) -> Plan:
    folder.mkdir(exist_ok=True)
    words = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": public_words(folder)}
    return small_plan(profile="iftm", model={"name": model, **MODELS[model]}, training__rounds=3, **words)


def sent(folder: Path, held: Mapping[str, Corpus], model: str, monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Every message of every party in one run over these documents, and what the coordinator made of them."""
    plan, stream = plan_behind_noise(folder, model), Seeded(bytes(range(32)), unsafe=True)
    with monkeypatch.context() as patched:
        patched.setattr(OperatingSystem, "bytes", lambda _, n: stream.bytes(n))
        patched.setattr(clocks, "_now", lambda: "2026-01-01T00:00:00.000+00:00")
        made = begin(folder / "run", plan, held, with_content=True)
        result = execute(made, Unwatched(), comparison=False)
    assert result["rounds"] == plan.training.rounds
    transcript = Transcript(made.path / "transcript")
    said = "SELECT serial, channel, sender, receiver, content FROM messages WHERE channel != 'request' ORDER BY at"
    found = transcript.rows(said)
    transcript.close()
    assert {sender for _, _, sender, _, _ in found if sender != "coordinator"} == set(held)
    return found


def words_behind_noise(held: Mapping[str, Corpus], plan: Plan) -> list[Any]:
    """Each party's words that learning begins with, slot after slot."""
    found = []
    for corpus in held.values():
        documents = PartyDocuments(named_for(corpus, agree(plan).budget).in_blocks())
        documents.adopt(PUBLIC, agree(plan))
        found.append(documents.for_question("train").tokens)
    return found


def with_noise_that_makes_up_for_it(
    own: Sequence[Any], others: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[int, int]]:
    """From now on the noise on these words is the former noise, plus the other words, minus these ones."""
    draw, met = SlotNoise.draw, []

    def injected(law: SlotNoise, secret: bytes, words: Any, first: int) -> tuple[Any, Any, Any]:
        ranges = [slice(first, first + len(words)) for _ in own]
        (party,) = [n for n, part in enumerate(ranges) if np.array_equal(own[n][part], words)]
        met.append((party, len(words)))
        return draw(law, secret, others[party][ranges[party]].astype(np.int32), first)

    monkeypatch.setattr(SlotNoise, "draw", injected)
    return met


@pytest.mark.parametrize("model", quick(MODELS, "lda"))
def test_other_words_behind_the_same_noised_ones_are_the_same_bytes(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = alike(1), alike(2)
    plan = plan_behind_noise(tmp_path / "plan", model)
    theirs, ours = words_behind_noise(one, plan), words_behind_noise(two, plan)
    assert all(np.mean(a != b) > 0.9 for a, b in zip(theirs, ours, strict=True))
    first = sent(tmp_path / "one", one, model, monkeypatch)
    plain = sent(tmp_path / "two", two, model, monkeypatch)
    with monkeypatch.context() as patched:
        met = with_noise_that_makes_up_for_it(ours, theirs, patched)
        again = sent(tmp_path / "again", two, model, monkeypatch)
    assert {(n, len(words)) for n, words in enumerate(ours)} <= set(met)
    assert again == first
    forms = [[(*message[:4], len(message[4])) for message in whole] for whole in (first, plain)]
    assert forms[0] == forms[1]  # nothing but content tells which words they were: all lengths are public
    assert {message[2] for message, other in zip(first, plain, strict=True) if message != other} >= set(one)
