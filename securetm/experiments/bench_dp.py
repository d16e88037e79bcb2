"""What a DP-SGD step costs beside the same step without privacy, and beside Opacus on the same network. It spends no budget.

All run on one thread and take turns, so that a busy machine slows all; the fastest turn of each counts. A step goes from a
drawn batch to the next weights: ours over sparse counts, Opacus's over the dense ones that its layers need.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module, util

import numpy as np
import torch

from securetm.clipped_sum import ClippedRowSum, blocks_of
from securetm.contracts import Cohort, Mechanism, RoundContext, State
from securetm.entropy import OperatingSystem
from securetm.experiments.bench_frame import OnProgress, RoleMemory, Row, beside, record, seconds, stepper, zipf_counts
from securetm.experiments.peaks import measurable, peak_mebibytes
from securetm.experiments.torch_prodlda import TorchProdLDA, drawn, one_thread
from securetm.mechanisms.clipping import Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.quantising import FixedPoint
from securetm.models.estimator import BagOfWords
from securetm.models.neural.prodlda import ProdLDA
from securetm.route import Route

TURNS, MEMORY_STEPS = 12, 4
TIME_LIMIT, MEMORY_LIMIT = 1.5, 1.3  # times the step without privacy
RADIUS, NOISE = 1.0, 1.0
ROOM = 0.02  # of the ring, for noise, as in the profiles that come with us: 32 bits then hold all of it

FREE, CLIPPED, ROUNDED, NOISED = "without privacy", "clipped", "clipped and rounded", "clipped, rounded and noised"
HOOKS, GHOST = "Opacus hooks", "Opacus ghost clipping"
STEPS: Mapping[str, tuple[Mechanism, ...]] = {
    FREE: (),
    CLIPPED: (Clip(RADIUS),),
    ROUNDED: (Clip(RADIUS), FixedPoint(headroom=ROOM)),
    NOISED: (Clip(RADIUS), FixedPoint(headroom=ROOM), GaussianNoise(NOISE)),
}

Step = Callable[[], object]


def bench(on_progress: OnProgress | None = None, words: int = 5_000, batch: int = 256) -> Row:
    """Milliseconds and peak memory of one step: ours by how much of the way it goes, and theirs where Opacus is installed."""
    there = util.find_spec("opacus") is not None
    names = [*STEPS, *([HOOKS, GHOST] if there else [])]
    kinds = [_times, _peaks] if measurable() else [_times]
    done = stepper((TURNS * len(names)) + len(names) * (len(kinds) - 1), on_progress)
    model = _model(batch)
    case = f"V = {words:,}, H = {model.hidden}, K = {model.n_topics}, batch {batch}, 1 thread"
    rows = [row for kind in kinds for row in _rows(case, *kind(names, words, batch, done))]
    missing = [*([] if there else ["opacus"]), *([] if measurable() else ["peak memory: only on Linux"])]
    facts = {
        "corpus": "synthetic: 70 words a document, by Zipf's law",
        "coordinates": model.query(_state(model, words)).terms.size,
    }
    return record("dp", rows, missing=missing, packages=("torch", *(["opacus"] if there else [])), **facts)


# ---- our step ------------------------------------------------------------------------------------------------------------


def _model(batch: int) -> ProdLDA:
    return ProdLDA(batch=batch, device="cpu")


def _state(model: ProdLDA, words: int) -> State:
    return model.start(tuple(f"word {v}" for v in range(words)), np.random.default_rng(0))


def _documents(words: int, batch: int) -> BagOfWords:
    keys = np.random.default_rng(0).integers(0, 2**64, batch, dtype=np.uint64)
    return BagOfWords(zipf_counts(batch, words), tuple(f"word {v}" for v in range(words)), keys)


def _ours(name: str, words: int, batch: int) -> Step:
    """A party's answer through all steps and back, and the optimiser's step, on one machine."""
    model, documents, cohort = _model(batch), _documents(words, batch), Cohort(b"", 0, ("party",))
    state, context = _state(model, words), RoundContext(cohort, OperatingSystem(), RoleMemory())
    route = Route.through(model.query(state).terms, STEPS[name], cohort)
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


# ---- Opacus's step -------------------------------------------------------------------------------------------------------


class _Sum:
    """The criterion that Opacus's ghost clipping wants: the network's own losses, one per document."""

    reduction = "sum"

    def __call__(self, losses: torch.Tensor) -> torch.Tensor:
        return losses


def _theirs(name: str, words: int, batch: int) -> Step:
    """Forward, backward, clip, noise and Adam as Opacus does them; the model's own noise is given for nothing."""
    warnings.simplefilter("ignore")  # of Opacus, about generators and hooks
    wrap, optimisers = import_module("opacus.grad_sample"), import_module("opacus.optimizers")
    model, documents = _model(batch), _documents(words, batch)
    state, ghost = _state(model, words), name == GHOST
    noise = drawn(model._noise(state, documents.keys))
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


# ---- measuring and the record --------------------------------------------------------------------------------------------


def _step(name: str, words: int, batch: int) -> Step:
    return _ours(name, words, batch) if name in STEPS else _theirs(name, words, batch)


Figures = dict[str, float]


def _times(names: list[str], words: int, batch: int, done: Callable[[], None]) -> tuple[str, str, float, Figures]:
    with one_thread(), warnings.catch_warnings():
        steps = {name: _step(name, words, batch) for name in names}
        best = {name: seconds(step) * 1e3 for name, step in steps.items()}  # compiles
        for _ in range(TURNS):
            for name, step in steps.items():
                step()  # so that no step starts with the caches that another one left
                best[name] = min(best[name], seconds(step) * 1e3)
                done()
    return "step", "ms", TIME_LIMIT, best


def _peaks(names: list[str], words: int, batch: int, done: Callable[[], None]) -> tuple[str, str, float, Figures]:
    peaks = {}
    for name in names:
        peaks[name] = peak_mebibytes(_some_steps, name, words, batch)
        done()
    return "peak memory", "MiB", MEMORY_LIMIT, peaks


def _some_steps(name: str, words: int, batch: int) -> Callable[[], object]:
    """A few steps with everything they need, weights included; compilers and imports have done their work before."""
    torch.set_num_threads(1)
    _step(name, 60, 3)()
    return lambda: [step() for step in [_step(name, words, batch)] for _ in range(MEMORY_STEPS)]


def _rows(case: str, what: str, unit: str, limit: float, figures: Figures) -> list[Row]:
    free = figures[FREE]
    rows: list[Row] = []
    for name in (CLIPPED, ROUNDED, NOISED):
        row = beside(f"{what}, {name}: {case}", figures[name], free, unit, f"our own step {FREE}")
        rows.append({**row, "limit": round(limit * free, 3), "of_limit": round(figures[name] / (limit * free), 3)})
    peers = [name for name in (HOOKS, GHOST) if name in figures]
    return rows + [beside(f"{what}, {NOISED}: {case}", figures[NOISED], figures[peer], unit, peer) for peer in peers]
