"""What a DP-SGD step costs beside the same step without privacy, and beside Opacus on the same network. It spends no budget.

All run on one thread and take turns, so that a busy machine slows all; the fastest turn of each counts. A step goes from a
drawn batch to the next weights: ours over sparse counts, Opacus's over the dense ones that its layers need.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module, util

import numpy as np
import torch

from lab.measuring import OnProgress, RoleMemory, Row, beside, least_by_turns, record, seconds, stepper, within, zipf_counts
from lab.peers.prodlda import TorchProdLDA, one_thread
from lab.processes import measurable, peak_mebibytes
from securetm.answers.clipped_sum import ClippedRowSum, blocks_of
from securetm.answers.route import Route
from securetm.contracts import Cohort, Mechanism, RoundContext, State
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.entropy import OperatingSystem
from securetm.mechanisms.clipping import Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.quantising import FixedPoint
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.neural.torch_module import TorchModule

TURNS, MEMORY_STEPS = 12, 4
TIME_LIMIT, MEMORY_LIMIT = 1.5, 1.3  # times the step without privacy
RADIUS, NOISE = 1.0, 1.0
ROOM = 0.02  # of the ring, for noise, as in the profiles that come with us: 32 bits then hold all of it

FREE, CLIPPED, ROUNDED, NOISED = "without privacy", "clipped", "clipped and rounded", "clipped, rounded and noised"
ALONE = "each document alone (torch-module)"  # the same network as a stranger's module
HOOKS, GHOST = "Opacus hooks", "Opacus ghost clipping"
STEPS: Mapping[str, tuple[Mechanism, ...]] = {
    FREE: (),
    CLIPPED: (Clip(RADIUS),),
    ROUNDED: (Clip(RADIUS), FixedPoint(headroom=ROOM)),
    NOISED: (Clip(RADIUS), FixedPoint(headroom=ROOM), GaussianNoise(NOISE)),
}
NETWORK = "lab.peers.prodlda:ProdLDANetwork"

Step = Callable[[], object]


def bench(on_progress: OnProgress | None = None, words: int = 5_000, batch: int = 256) -> Row:
    """Milliseconds and peak memory of one step: ours by how much of the way it goes, and theirs where Opacus is installed."""
    there, memory = util.find_spec("opacus") is not None, measurable()
    names = [*STEPS, ALONE, *([HOOKS, GHOST] if there else [])]
    done = stepper((TURNS + memory) * len(names), on_progress)
    model = ProdLDA(batch=batch, device="cpu")
    case = f"V = {words:,}, H = {model.hidden}, K = {model.n_topics}, batch {batch}, 1 thread"
    rows = _rows(f"step, %s: {case}", "ms", TIME_LIMIT, _times(names, words, batch, done))
    if memory:
        peaks = {name: partial(peak_mebibytes, _some_steps, name, words, batch) for name in names}
        rows += _rows(f"peak memory, %s: {case}", "MiB", MEMORY_LIMIT, least_by_turns(peaks, 1, done))
    missing = [*([] if there else ["opacus"]), *([] if memory else ["peak memory: only on Linux"])]
    facts = {
        "corpus": "synthetic: 70 words a document, by Zipf's law",
        "coordinates": model.query(_start(model, batch, words)[0]).terms.size,
    }
    return record("dp", rows, missing=missing, packages=("torch", *(["opacus"] if there else [])), **facts)


def _start(model: ProdLDA | TorchModule, batch: int, words: int) -> tuple[State, Corpus]:
    """The model's first state, and a batch of documents."""
    vocabulary, draw = tuple(f"word {v}" for v in range(words)), np.random.default_rng(0)
    keys = draw.integers(0, 2**64, batch, dtype=np.uint64)
    return model.start(vocabulary, np.random.default_rng(0)), Corpus(HeldDocuments(zipf_counts(batch, words), vocabulary, keys))


def _ours(name: str, words: int, batch: int) -> Step:
    """A party's answer through all steps and back, and the optimiser's step, on one machine."""
    model: ProdLDA | TorchModule = ProdLDA(batch=batch, device="cpu")
    if name == ALONE:
        model = TorchModule(module=NETWORK, n_topics=model.n_topics, batch=batch)
    cohort = Cohort(b"", 0, ("party",))
    (state, documents), context = _start(model, batch, words), RoundContext(cohort, OperatingSystem(), RoleMemory())
    route = Route.through(model.query(state).terms, STEPS.get(name, STEPS[NOISED]), cohort)
    terms = route.terms

    def step() -> None:
        nonlocal state
        query = model.query(state)
        clipped_sum = ClippedRowSum(query.terms, route.radius)
        query.answer(documents, clipped_sum, {}, np.random.default_rng(0))
        vector = clipped_sum.vector()
        for one in route.steps:
            vector = one.mechanism.on_vector(vector, one.after, context)
        opened = np.multiply(vector, np.float32(terms.grid), dtype=np.float32) if terms.grid else vector
        state = model.advance(state, blocks_of(opened, terms), in_place=True)

    return step


class _Sum:
    """The criterion that Opacus's ghost clipping wants: the network's own losses, one per document."""

    reduction = "sum"

    def __call__(self, losses: torch.Tensor) -> torch.Tensor:
        return losses


def _theirs(name: str, words: int, batch: int) -> Step:
    """Forward, backward, clip, noise and Adam as Opacus does them; the model's own noise is given for nothing."""
    warnings.simplefilter("ignore")  # of Opacus, about generators and hooks
    wrap, optimisers = import_module("opacus.grad_sample"), import_module("opacus.optimizers")
    model, ghost = ProdLDA(batch=batch, device="cpu"), name == GHOST
    state, documents = _start(model, batch, words)
    sizes, kind = (model.hidden, model.n_topics, model.n_topics), torch.from_numpy(state["weights"]).dtype
    noise = [torch.rand(batch, size, dtype=kind) for size in sizes]
    about = {"noise_multiplier": NOISE, "max_grad_norm": RADIUS, "expected_batch_size": batch, "loss_reduction": "sum"}
    bare = TorchProdLDA(model, state)
    adam = torch.optim.Adam([p for p in bare.parameters() if p.requires_grad], lr=model.learning_rate)
    if ghost:
        network = wrap.GradSampleModuleFastGradientClipping(bare, max_grad_norm=RADIUS, loss_reduction="sum")
        optimiser = optimisers.DPOptimizerFastGradientClipping(adam, **about)
        fast = import_module("opacus.utils.fast_gradient_clipping_utils").DPLossFastGradientClipping
        total = fast(network, optimiser, _Sum(), loss_reduction="sum")
    else:
        network, total = wrap.GradSampleModule(bare, loss_reduction="sum"), torch.sum
        optimiser = optimisers.DPOptimizer(adam, **about)

    def step() -> None:
        optimiser.zero_grad()
        counts = torch.from_numpy(documents.counts.toarray().astype(np.float32))
        total(network(counts, *noise)).backward()
        optimiser.step()

    return step


def _step(name: str, words: int, batch: int) -> Step:
    return _ours(name, words, batch) if name in (*STEPS, ALONE) else _theirs(name, words, batch)


Figures = dict[str, float]


def _times(names: list[str], words: int, batch: int, done: Callable[[], None]) -> Figures:
    def again(step: Step) -> float:
        step()  # so that no step starts with the caches that another one left
        return seconds(step) * 1e3

    with one_thread(), warnings.catch_warnings():
        steps = {name: _step(name, words, batch) for name in names}
        for step in steps.values():
            step()  # compiles
        return least_by_turns({name: partial(again, step) for name, step in steps.items()}, TURNS, done)


def _some_steps(name: str, words: int, batch: int) -> Callable[[], object]:
    """A few steps with everything they need, weights included; compilers and imports have done their work before."""
    torch.set_num_threads(1)
    _step(name, 60, 3)()
    return lambda: [step() for step in [_step(name, words, batch)] for _ in range(MEMORY_STEPS)]


def _rows(case: str, unit: str, limit: float, figures: Figures) -> list[Row]:
    most = limit * figures[FREE]
    rows: list[Row] = []
    for name in (CLIPPED, ROUNDED, NOISED):
        row = beside(case % name, figures[name], figures[FREE], unit, f"our own step {FREE}")
        rows.append(row | within(most, figures[name] / most))
    peers = [name for name in (ALONE, HOOKS, GHOST) if name in figures]
    return rows + [beside(case % NOISED, figures[NOISED], figures[peer], unit, peer) for peer in peers]
