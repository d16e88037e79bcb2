"""Each model in a federation: what all parties learn together is what one machine would, and what a budget is spent on."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent
from torch import Tensor
from torch.nn import functional

from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm.accounting.ledger import Ledger
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.answers.route import compile_route
from securetm.contracts import Answer, Array, Memory, State
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting
from securetm.federation.coordinator.rounds import PartyRefused
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.questions import COHERENCE, TRAIN
from securetm.federation.refusal_errors import BelowMinimum
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.mechanisms.clipping import at_most
from securetm.mechanisms.sampling import batch_rows
from securetm.models.document_noise import normals, survival
from securetm.models.lda.lda import LDA
from securetm.models.lda.matched import Matched
from securetm.models.neural.network import NetworkShape
from securetm.models.neural.prodlda import ProdLDA
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of, read_profile
from securetm.plans.schema import Plan
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import FIVE, SHARED, SUBJECTS, small_plan
from .killed_run import ended
from .played import Played, make_party, refusals, settled
from .private import private_plan

ROUNDS = 6
PRIVATE = ("dp-local", "dp-central", "dp-distributed")
EXACT, COUNTS = 0.0, ("counts",)
MOMENTS = ("topics", "prevalence", "spectrum", "beyond")
LEARNED = [  # model, its settings, profile, the arrays that are compared, and how far apart they may be
    ("lda", {}, "masked", COUNTS, EXACT),
    ("sentence-lda", {"sampler": "mh"}, "open", COUNTS, EXACT),
    ("sentence-lda", {"sampler": "auto"}, "masked", COUNTS, EXACT),
    ("lda-vi", {}, "masked", COUNTS, 1e-3),
    ("nmf", {}, "open", ("weights",), 1e-9),
    ("moments", {}, "masked_strict", MOMENTS, EXACT),
]
SPENT = [  # model, profile and unit
    *quick(
        [(model, profile, "document") for model in ("lda", "lda-vi") for profile in PRIVATE],
        ("lda", "dp-distributed", "document"),
    ),
    *quick(
        [(model, profile, unit) for model in ("nmf", "moments") for profile in PRIVATE for unit in ("document", "person")],
    ),
]


def texts(subject: list[str], documents: int, seed: int) -> list[str]:
    """Documents of a few sentences, each either about a subject or about what everybody talks about."""
    rng = np.random.default_rng(seed)

    def sentence() -> str:
        words = subject if rng.random() < 0.5 else SHARED
        return " ".join(rng.choice(words, size=int(rng.integers(2, 7)))).capitalize() + "."

    return [" ".join(sentence() for _ in range(rng.integers(2, 6))) for _ in range(documents)]


@pytest.fixture(scope="module")
def speakers() -> Mapping[str, Corpus]:
    """Five parties whose documents have sentences."""
    return {name: Corpus.from_strings(texts(FIVE[name], 60, n), name=name) for n, name in enumerate(FIVE)}


def plan_of(name: str, profile: str = "open", **settings: Any) -> Plan:
    return small_plan(profile=profile, model={"name": name, "n_topics": 4, **settings}, training__rounds=ROUNDS)


def learned(folder: Path) -> Mapping[str, Any]:
    return read_arrays(folder / "release/model.safetensors", bare=True)[0]


def together(parties: Mapping[str, Corpus], plan: Plan, vocabulary: tuple[str, ...]) -> Corpus:
    """The documents that the parties train on, end to end."""
    agreed = [corpus.project(vocabulary) for corpus in parties.values()]
    parts = [part.select(part.lengths() > 0).split(1 - plan.training.held_out, plan.seed)[0] for part in agreed]
    return Corpus.concat(parts).project(vocabulary)


@pytest.mark.parametrize(("name", "settings", "profile", "arrays", "apart"), quick(LEARNED, LEARNED[0], LEARNED[3], LEARNED[4]))
def test_a_federation_learns_what_one_machine_learns(
    name: str,
    settings: dict[str, Any],
    profile: str,
    arrays: tuple[str, ...],
    apart: float,
    speakers: Mapping[str, Corpus],
    tmp_path: Path,
) -> None:
    plan = plan_of(name, profile, **settings)
    result = execute(begin(tmp_path / "run", plan, speakers), Unwatched(), comparison=name == "lda")
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    documents, federated = together(speakers, plan, vocabulary), learned(tmp_path / "run")
    alone = agree(plan).model.fit(documents, epochs=result["rounds"], seed=plan.seed).learned.state
    for array in arrays:
        if apart:
            np.testing.assert_allclose(federated[array], alone[array], atol=apart)
        else:
            np.testing.assert_array_equal(federated[array], alone[array])
    if name == "lda":
        np.testing.assert_array_equal(federated["counts"].sum(axis=0), documents.counts.sum(axis=0))
    if name == "moments":
        assert result["rounds"] == 1
        assert np.isclose(sum(result["topic_prevalence"]), 1.0, atol=1e-3)
    else:
        assert result["rounds"] == ROUNDS
        alone_at_best = min((figures["held_out_everywhere"] for figures in result["alone"].values()), default=np.inf)
        assert result["quality"]["held_out"] < alone_at_best


# ---- under a budget --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "profile", "unit"), SPENT)
def test_a_budget_lasts_for_the_rounds_and_is_spent_by_document_or_person(
    name: str, profile: str, unit: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    if unit == "person":
        five = {party: corpus.replace(persons=np.arange(len(corpus)) // 2) for party, corpus in five.items()}
    settings = {"model": {"name": name, "n_topics": 3}, "privacy__epsilon": 8.0, "training__rounds": ROUNDS}
    plan = private_plan(tmp_path, profile, privacy__unit=unit, **settings)
    folder = begin(tmp_path / "run", plan, five)
    result = execute(folder, Unwatched(), comparison=False)
    assert (result["rounds"], result["stopped"]) == (1 if name == "moments" else ROUNDS, "rounds")
    assert all(7.0 < spent["epsilon"] <= 8.0 and spent["unit"] == unit for spent in result["spent"])
    assert len(result["topics"]) == 3
    if name in ("lda", "lda-vi"):  # all documents take part, so nothing is amplified
        with Ledger.read(folder.ledger("north")) as ledger:
            events = [spend.event for spend in ledger.spends(folder.name)]
        assert all("Sampled" not in type(event).__name__ for event in events)
        assert profile == "dp-distributed" or all(isinstance(event, GaussianDpEvent) for event in events)


@pytest.mark.parametrize("name", [*PRIVATE, "fortress"])
def test_counts_are_promised_to_be_few(name: str) -> None:
    profile, model = read_profile(name), LDA(n_topics=3)
    members = tuple(f"party {n}" for n in range(5))
    for words, most in ((3, 9), (100, 30)):  # of three times three places each holds one at most
        query = model.query(model.start(tuple(f"w{n}" for n in range(words)), np.random.default_rng(0)))
        terms = compile_route(query.terms, profile, cohort_of(profile, members)).terms
        assert (terms.l1, terms.linf, terms.sampling) == (most, 1, 1.0)
    assert terms.l2 == pytest.approx(30**0.5)


def counts_of(model: LDA, state: State, documents: Any, memory: Memory) -> Array:
    query = model.query(state)
    clipped_sum = ClippedRowSum(query.terms, on_rows=lambda rows: at_most(rows, 30, 1))
    query.answer(documents, clipped_sum, memory, np.random.default_rng(0))
    return clipped_sum.vector()


def test_a_document_more_moves_each_sum_by_its_own_bounded_row(five: Mapping[str, Corpus]) -> None:
    """Whatever was opened before: here the states are noise that neither side's documents led to."""
    corpus, rng = five["north"], np.random.default_rng(5)
    model = LDA(n_topics=4, sweeps=3)
    state = dict(model.start(corpus.vocabulary, rng))
    divided = (corpus, corpus.select(np.arange(1, len(corpus))), corpus.select(np.arange(1)))
    memories: tuple[Memory, Memory, Memory] = ({}, {}, {})
    for _ in range(4):
        whole, rest, own = (counts_of(model, state, d, m) for d, m in zip(divided, memories, strict=True))
        np.testing.assert_array_equal(whole - rest, own)
        assert 0 < own.sum() <= 30
        assert own.max() == 1
        noise = rng.normal(0, 20.0, state["counts"].shape)
        state = dict(model.update(state, Answer({"counts": rng.poisson(30, noise.shape) + noise})))


# ---- local steps -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "moments"), [("round", 4), pytest.param("fsync", 26, marks=pytest.mark.slow)])
def test_topic_weights_outlive_a_kill(moment: str, moments: int, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Parties go on from the weights of their documents that they had, so the model has the same bytes."""
    plan = small_plan(model={"name": "fednmf", "n_topics": 3, "local_epochs": 2, "server": "adam"}, training__rounds=8)
    execute(begin(tmp_path / "unbroken", plan, dict(sorted(five.items()))), Unwatched(), comparison=False)
    for name, corpus in five.items():
        corpus.save(tmp_path / f"{name}.npz")
    settings = json.dumps({name: value for name, value in plan.tables().items() if name != "tokeniser"})
    assert ended(tmp_path / "killed", "begin", moment, moments, str(tmp_path), settings) == -signal.SIGKILL
    execute(reopen(tmp_path / "killed"), Unwatched(), comparison=False)
    unbroken, killed = learned(tmp_path / "unbroken"), learned(tmp_path / "killed")
    for name, array in unbroken.items():
        np.testing.assert_array_equal(killed[name], array)


# ---- hidden sums learn what plain sums learn -------------------------------------------------------------------------------


PROFILES = ["masked", "masked_strict", "bfv", "ckks"]
STEPS_HIDDEN = 12


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A public vocabulary."""
    path = tmp_path_factory.mktemp("public") / "words.txt"
    path.write_text("\n".join(sorted({*SHARED, *(w for subject in SUBJECTS.values() for w in subject)})), "utf-8")
    return path


Ran = Callable[[str], tuple[dict[str, Any], RunFolder]]


@pytest.fixture(scope="module")
def ran(five: Mapping[str, Corpus], words: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run under a profile, made when it is first asked for."""

    @cache
    def made(profile: str) -> tuple[dict[str, Any], RunFolder]:
        public = {"vocabulary__source": "file", "origins__vocabulary": "made up", "vocabulary__file": str(words)}
        steps = {"model__batch": 40, "model__optimiser": "sgd", "model__learning_rate": 0.001}
        plan = small_plan(profile=profile, training__rounds=STEPS_HIDDEN, **steps, **public)
        folder = begin(tmp_path_factory.mktemp(profile) / "run", plan, five)
        return execute(folder, Unwatched(), comparison=False), folder

    return made


def weights(folder: RunFolder) -> Array:
    return read_arrays(folder.model, bare=True)[0]["weights"]


@pytest.mark.parametrize("profile", quick(PROFILES, "bfv"))
def test_it_ends_where_plain_sums_end(profile: str, ran: Ran) -> None:
    (plain, open_folder), (hidden, folder) = ran("open"), ran(profile)
    # Plain gradient steps, so that an error of half a grid step stays one; float32 sums of some hundreds are as coarse.
    assert np.abs(weights(folder) - weights(open_folder)).max() < 1e-4
    assert hidden["topics"] == plain["topics"]
    assert hidden["quality"]["held_out"] == pytest.approx(plain["quality"]["held_out"], rel=0.01)


@pytest.mark.parametrize("profile", ["bfv", "ckks"])
def test_where_the_parties_open_the_coordinator_never_sees_the_model(profile: str, ran: Ran, words: Path) -> None:
    _, folder = ran(profile)
    learned = weights(folder)
    kept, _ = read_arrays(folder.coordinator / "checkpoint.safetensors")
    start = folder.agreement.model.start(
        tuple(words.read_text("utf-8").split()), np.random.default_rng(folder.agreement.plan.seed)
    )
    assert np.array_equal(kept["weights"], start["weights"])  # the public start, and nothing after it
    assert np.abs(learned - start["weights"]).max() > 1e-4
    assert not list(folder.coordinator.rglob("model.safetensors"))
    for content in (path.read_bytes() for path in folder.coordinator.iterdir()):
        assert learned[:64].tobytes() not in content


@pytest.mark.parametrize("profile", ["bfv", "ckks"])
def test_a_vocabulary_that_would_show_words_is_refused(profile: str) -> None:
    with pytest.raises(BadSetting, match="is not sound under profile"):
        small_plan(profile=profile, vocabulary__source="union")


@pytest.mark.parametrize(("profile", "batch"), [("bfv", 33), ("masked", 24), ("masked_strict", 24)])
def test_batches_that_are_too_small_where_parties_drop_out_are_refused(
    profile: str, batch: int, five: Mapping[str, Corpus], words: Path, tmp_path: Path
) -> None:
    """Of all five parties they would be enough; a sum may be opened over three or four of them."""
    plan = small_plan(
        profile=profile,
        model__batch=batch,
        vocabulary__source="file",
        origins__vocabulary="made up",
        vocabulary__file=str(words),
    )
    folder = begin(tmp_path / "run", plan, five)
    with pytest.raises(PartyRefused, match=BelowMinimum.__name__):
        execute(folder, Unwatched(), comparison=False)


# ---- the matched form ------------------------------------------------------------------------------------------------------


MATCHED_ROUNDS = 4


def matched_plan(profile: str = "open", name: str = "lda", **settings: Any) -> Plan:
    model = {"name": name, "form": "matched", "n_topics": 3, "sweeps": 8, "merged": "all", **settings}
    return small_plan(profile=profile, model=model, training__rounds=MATCHED_ROUNDS)


@pytest.mark.parametrize("name", quick(["lda", "sentence-lda"], "lda"))
def test_a_run_finds_what_parties_share_and_what_each_has_alone(
    name: str, corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    result = execute(begin(tmp_path / "run", matched_plan(name=name, topics_at={"north": 5}), corpora), Unwatched())
    best = min(figures["held_out_everywhere"] for figures in result["alone"].values())
    finished = FinishedRun.open(tmp_path / "run")
    whole = [set(words) for words in finished.topics(10)]
    for subject in SUBJECTS.values():
        assert max(len(words & set(subject)) for words in whole) >= 6
    assert len(result["topics"]) == len(whole) >= 3
    assert np.isfinite([result["quality"][name] for name in ("npmi", "diversity", "held_out")]).all()
    served = [figures["held_out"] for figures in result["shared_at_party"].values()]
    assert min(served) <= result["quality"]["held_out"] <= max(served)  # all were asked about the global topics
    model, state = finished.model, finished.state
    assert isinstance(model, Matched)
    assert {name: int(model.for_party(state, name)["held"][0]) for name in corpora} == {"north": 5, "south": 3, "west": 3}
    everywhere = [shared["held_out"] for shared in result["shared_at_party"].values()]
    assert max(everywhere) < best  # the global topics predict each party's documents better than any single party's predict all
    assert len(result["prevalence"]["north"]) == len(whole)


@pytest.fixture(scope="module")
def unbroken(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """What a run learned that nothing interrupted."""
    folder = begin(tmp_path_factory.mktemp("runs") / "unbroken", matched_plan(), corpora)
    execute(folder, Unwatched(), comparison=False)
    return learned(folder.path)


def test_each_party_is_shown_its_own_model_and_no_other(unbroken: Mapping[str, Any], corpora: Mapping[str, Corpus]) -> None:
    model = agree(matched_plan()).model
    shown = {name: model.for_party(unbroken, name) for name in corpora}
    assert all(set(one) == {"counts", "held", "step", "seed"} for one in shown.values())
    assert not np.array_equal(shown["north"]["counts"], shown["south"]["counts"])


def test_a_party_answers_about_no_other_shape_than_agreed(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = matched_plan(topics_at={"north": 5})
    played, party = Played(plan, tuple(corpora)), make_party("north", plan, corpora, tmp_path)
    settled(played, party, sorted({word for subject in SUBJECTS.values() for word in subject}))
    state = dict(played.fresh())
    answered = played.send(party, played.ask(TRAIN, state))
    assert np.frombuffer(answered.parcels[0], np.float32).reshape(-1, len(played.questions.vocabulary) + 1).shape[0] == 3
    larger = played.ask(TRAIN, state)
    played.send(party, played.altered(larger, state={**state, "counts": np.zeros((6, 30))}))
    played.send(party, played.altered(larger, state={**state, "counts": np.full_like(state["counts"], np.nan)}))
    assert [name for name, _ in refusals(party)] == ["BadState", "BadState"]
    many = {"top": np.zeros((200, 10), dtype=np.int64)}  # there may be more global topics than a party has
    assert played.send(party, played.ask(COHERENCE, many)).parcels


def test_behind_noise_on_single_words_it_still_finds_what_each_party_speaks_of(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    words = tmp_path / "words.txt"
    words.write_text("\n".join(sorted({*SHARED, *(word for subject in SUBJECTS.values() for word in subject)})), "utf-8")
    public = {"source": "file", "file": str(words)}
    model = dict(matched_plan().model.settings, name="lda")
    declared = {"origins__vocabulary": "made up"}
    plan = small_plan(profile="iftm", model=model, vocabulary=public, training__rounds=3, **declared)
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched(), comparison=False)
    for subject in SUBJECTS.values():
        assert max(len(set(topic) & set(subject)) for topic in result["topics"]) >= 5
    assert [spent["unit"] for spent in result["spent"]] == ["word"] * 3
    assert all(7.99 < spent["epsilon"] <= 8 for spent in result["spent"])  # once, however many rounds


# ---- step by step, a bare torch loop ---------------------------------------------------------------------------------------


STEPS = 100
SETTINGS = {"n_topics": 4, "hidden": 12, "batch": 16, "dtype": "float64", "dropout": 0.2, "theta_dropout": 0.1}


def layer_norm(x: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[1:])


class Reference:
    """ProdLDA as torch's textbook would write it, one dense batch at a time."""

    def __init__(self, start: Mapping[str, np.ndarray], model: ProdLDA, vocabulary: int) -> None:
        self.model, self.seed = model, int(start["seed"][0])
        layers = NetworkShape(vocabulary, model.hidden, model.n_topics).views(torch.from_numpy(start["weights"].copy()))
        self.layers = {name: layer.clone().requires_grad_() for name, layer in layers.items()}
        self.optimiser = torch.optim.Adam(self.layers.values(), lr=model.learning_rate, betas=(model.beta1, 0.999), eps=1e-8)

    def losses(self, counts: Tensor, keys: np.ndarray, step: int, normalise=layer_norm) -> Tensor:
        layers, model = self.layers, self.model
        inputs = functional.normalize(torch.log1p(counts), dim=1)
        one = functional.softplus(inputs @ layers["words"] + layers["words_bias"])
        mask = torch.from_numpy(survival(self.seed, step, keys, 0, model.hidden, model.dropout))
        two = functional.softplus(one @ layers["inner"] + layers["inner_bias"]) * mask
        head = two @ layers["head"] + layers["head_bias"]
        mean, log_variance = normalise(head[:, : model.n_topics]), normalise(head[:, model.n_topics :])
        noise = torch.from_numpy(normals(self.seed, step, keys, 1, model.n_topics))
        theta = torch.softmax(mean + torch.exp(log_variance / 2) * noise, dim=1)
        kept = theta * torch.from_numpy(survival(self.seed, step, keys, 2, model.n_topics, model.theta_dropout))
        logits = model.gain * normalise(kept @ layers["topics"]) + layers["background"]
        said = -(counts * torch.log_softmax(logits, dim=1)).sum(dim=1)
        return said + model.prior_weight * self.divergence(mean, log_variance)

    def divergence(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        """KL from the Gaussian to Laplace's approximation of a symmetric Dirichlet."""
        k, alpha = self.model.n_topics, self.model.alpha
        prior = torch.distributions.Normal(0.0, ((1 - 2 / k) / alpha + 1 / (k * alpha)) ** 0.5)
        own = torch.distributions.Normal(mean, torch.exp(log_variance / 2))
        return torch.distributions.kl_divergence(own, prior).sum(dim=1)

    def step(self, counts: Tensor, keys: np.ndarray, number: int) -> None:
        self.optimiser.zero_grad()
        self.losses(counts, keys, number).mean().backward()
        self.optimiser.step()
        with torch.no_grad():  # every word keeps its mean and a bounded deviation over the topics: parameters only, no document
            topics = self.layers["topics"]
            centred = topics - topics.mean(dim=0)
            rates = self.model.word_spread / centred.square().mean(dim=0).add(1e-12).sqrt()
            topics.copy_(centred * rates.clamp(max=1.0))

    def flat(self) -> np.ndarray:
        return np.concatenate([layer.detach().numpy().ravel() for layer in self.layers.values()])


def batches(parties: Mapping[str, Corpus], plan: Plan, vocabulary: tuple[str, ...]) -> Iterator[tuple[Tensor, np.ndarray]]:
    """The batches of all parties end to end, step by step."""
    trained = []
    for corpus in parties.values():
        agreed = corpus.project(vocabulary)
        trained.append(agreed.select(agreed.lengths() > 0).split(1 - plan.training.held_out, plan.seed)[0])
    for step in range(STEPS):
        drawn = [part.select(batch_rows(part.keys, SETTINGS["batch"], step, plan.seed)) for part in trained]
        counts = np.concatenate([part.counts.toarray() for part in drawn]).astype(np.float64)
        yield torch.from_numpy(counts), np.concatenate([part.keys for part in drawn])


def five_parties() -> dict[str, Corpus]:
    """gFedNTM's synthetic nodes, small: five, of unequal sizes."""
    nodes = lda_nodes(LdaNodes(topics=10, words=120, documents=60, validation_documents=1), seed=3)
    return {name: corpus.select(np.arange(20 + 10 * n)) for n, (name, corpus) in enumerate(nodes.train.items())}


@pytest.mark.slow
def test_a_hundred_steps_end_at_the_same_parameters(tmp_path: Path) -> None:
    parties = five_parties()
    plan = small_plan(training__rounds=STEPS, **{f"model__{name}": value for name, value in SETTINGS.items()})
    execute(begin(tmp_path / "run", plan, parties), Unwatched(), comparison=False)
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    model = agree(plan).model
    assert isinstance(model, ProdLDA)
    start = model.start(vocabulary, np.random.default_rng(plan.seed))
    reference = Reference(start, model, len(vocabulary))
    for number, (counts, keys) in enumerate(batches(parties, plan, vocabulary)):
        reference.step(counts, keys, number)
    federated = read_arrays(tmp_path / "run/release/model.safetensors", bare=True)[0]["weights"]
    assert np.abs(federated - start["weights"]).max() > 0.05  # it moved
    assert np.abs(federated - reference.flat()).max() < 1e-7  # measured: 2e-9
