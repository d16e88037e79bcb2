"""A federated topic model around a network that the user wrote in torch and names in the plan.

A library's products round rows by their number, and a stranger's module may mix rows. So gradients are of one document at a
time, by a fresh copy of the module, with random numbers that depend on the document's key alone: slow, and a document's row
depends on no other document by construction. Local epochs train in batches.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from securetm.contracts import INF, Array, State
from securetm.data_classes import dataclass, field
from securetm.errors import BadSetting, Mistake
from securetm.models.batches import slices
from securetm.models.estimator import OrNone
from securetm.models.given_documents import check_embeddings
from securetm.models.gradients import GradientModel, optimiser_moments
from securetm.settings import CommandLineText


class TopicNetwork(nn.Module):
    """An encoder and a decoder of your own.

    Its constructor takes `words`, `topics` and `embedding` (numbers of a document's embedding, 0 for none), and your options.
    Draw random numbers from torch alone: each document's are seeded by its key.
    """

    def forward(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        """One loss per document, to be made small. `counts` is documents x words."""
        raise NotImplementedError

    def topics(self) -> Tensor:
        """How much each word belongs to each topic: topics x words, not negative."""
        raise NotImplementedError

    def infer(self, counts: Tensor, embeddings: Tensor | None) -> Tensor:
        """Each document's topic shares without noise: documents x topics, not negative."""
        raise NotImplementedError

    def decode(self, shares: Tensor) -> Tensor:
        """The probability of each word, given topic shares. Override it where words are not drawn from a mixture of topics."""
        topics = self.topics()
        return shares @ (topics / topics.sum(dim=1, keepdim=True))


def divided(rows: Tensor) -> Tensor:
    """Each row divided by its sum; what is negative or not finite counts as nothing, and a row of nothing is uniform."""
    known = torch.where(torch.isfinite(rows), rows, torch.zeros_like(rows)).clamp(min=0).double()
    known = known / known.amax(dim=1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    known = torch.where(known.sum(dim=1, keepdim=True) > 0, known, torch.ones_like(known))
    return known / known.sum(dim=1, keepdim=True)


def source_digest(module: str) -> str:
    """SHA-256 of the file in which the class stands. The module itself is not imported; the packages around it are."""
    name, colon, kind = module.partition(":")
    if not colon or not all(part.isidentifier() for part in (*name.split("."), kind)):
        raise _unusable(module, "it must be written as package.module:Class")
    try:
        spec = importlib.util.find_spec(name)
        source = Path(spec.origin).read_bytes() if spec is not None and spec.origin else None
    except (ImportError, ValueError, OSError) as problem:
        raise _unusable(module, f"looking for it ended in {type(problem).__name__}") from problem
    if source is None:
        raise _unusable(module, f"there is no file of a module {name}")
    return hashlib.sha256(source).hexdigest()


def check_source(module: str, agreed: str) -> str:
    """The digest of the source, which must be the agreed one where there is one."""
    found = source_digest(module)
    if agreed and found != agreed:
        raise Mistake(
            "the source of {module!r} here has digest {found}, and the agreement says {agreed}",
            hint="get the same version of the file as the others, or remove `source` from the plan to agree on another one",
            module=module,
            found=found,
            agreed=agreed,
        )
    return found


def class_named(module: str) -> type[TopicNetwork]:
    """The class. It must derive from `TopicNetwork`."""
    name, _, kind = module.partition(":")
    try:
        found = vars(importlib.import_module(name)).get(kind)
    except Exception as problem:  # the code of somebody else
        raise _unusable(module, f"importing it ended in {type(problem).__name__}: {problem}") from problem
    if not isinstance(found, type) or not issubclass(found, TopicNetwork):
        raise _unusable(module, f"{kind} is no class that derives from securetm.TopicNetwork")
    return found


_ROOM = 1 << 26  # numbers of gradients that are kept between computing lengths and adding up
_ROUNDED = 1 + 1e-12  # two computations of the same length may differ by so much


@dataclass(frozen=True, eq=False)
class Inputs:
    """Documents as a network reads them. Row i of everything is document i."""

    counts: Any  # CSR
    embeddings: Array | None
    keys: Array
    dtype: torch.dtype

    def __len__(self) -> int:
        return len(self.keys)

    def tensors(self, rows: Any) -> tuple[Tensor, Tensor | None]:
        """Counts and embeddings of these rows."""
        counts = torch.from_numpy(self.counts[rows].toarray()).to(self.dtype)
        return counts, None if self.embeddings is None else torch.from_numpy(self.embeddings[rows]).to(self.dtype)


class LossesAlone:
    """The losses of some documents (contracts.Losses). Gradients are computed when they are asked for, each by itself."""

    def __init__(self, network: TopicNetwork, inputs: Inputs, seed: tuple[int, int]) -> None:
        self._network, self._inputs, self._seed = network, inputs, seed
        self._size = sum(parameter.numel() for parameter in network.parameters())
        self.values: Array = np.full(len(inputs), INF)
        self._member: Array = np.arange(len(inputs))  # the owner of each document
        self._lengths: Array | None = None  # of the owners' rows, once they were asked for
        self._kept: dict[int, Array] = {}  # gradients that were computed, as far as there is room

    def norms(self, owners: Array) -> Array:
        _, self._member = np.unique(owners, return_inverse=True)
        self._lengths = np.array([_length(part) for part in self._parts(np.ones(len(owners)))])
        return self._lengths

    def gradient(self, weights: Array) -> Array:
        """The sum over documents of weight x gradient. An owner whose row is longer than it was when measured counts as none.

        Such a network computes something else each time, and a clip by the earlier length would not bound its row.
        """
        total = np.zeros(self._size)
        for owner, part in enumerate(self._parts(weights)):
            if self._lengths is None or _length(part) <= self._lengths[owner] * weights[self._member == owner].max() * _ROUNDED:
                total += part
        return total.astype(weights.dtype)

    def _parts(self, weights: Array) -> Iterator[Array]:
        """Each owner's weighted sum of gradients, in 64 bits: a clip aims closer to its radius than 32 bits can tell."""
        for owner in range(int(self._member.max(initial=-1)) + 1):
            part = np.zeros(self._size)
            for document in np.flatnonzero((self._member == owner) & (weights != 0)).tolist():
                part += float(weights[document]) * self._gradient(document).astype(np.float64)
            yield part

    def _gradient(self, document: int) -> Array:
        """The gradient of one document. Where the network fails it is not finite, and the clip counts the document as none."""
        if document in self._kept:
            return self._kept[document]
        with torch.random.fork_rng(devices=[]):
            reseed(*self._seed, int(self._inputs.keys[document]))
            fresh = copy.deepcopy(self._network)
            try:
                (loss,) = fresh(*self._inputs.tensors([document]))
                found = torch.autograd.grad(loss, list(fresh.parameters()), allow_unused=True, materialize_grads=True)
            except Exception:  # noqa: BLE001 - whether a stranger's code fails may depend on the document, so nobody else may see it
                row = np.full(self._size, np.nan)
            else:
                self.values[document] = float(loss.detach())
                row = torch.cat([part.reshape(-1) for part in found]).numpy()
        if (len(self._kept) + 1) * self._size <= _ROOM:
            self._kept[document] = row
        return row


def _length(row: Array) -> float:
    return float(np.sqrt(np.sum(row * row)))


def reseed(*numbers: int) -> None:
    """Seeds torch by all of these numbers. Without an accelerator, `manual_seed` would keep a stack trace of each call."""
    packed = struct.pack(f"<{len(numbers)}Q", *(number % 2**64 for number in numbers))
    seed = int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "little") >> 1
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


_CHUNK = 256  # documents at a time in `infer` and `log_likelihood`
_LEAST = 1e-12  # probability of a word


@dataclass(frozen=True)
class TorchModule(GradientModel):
    """A topic model whose network is a class that derives from `securetm.TopicNetwork`.

    The class is found on each machine by its name. Its source belongs to the agreement: a party with other source is refused.
    """

    name: ClassVar[str] = "torch-module"
    module: str = ""  # the class, as package.module:Class
    source: str = ""  # SHA-256 of the file it stands in; nothing: of the one that is found here
    options: Mapping[str, Any] = field(default_factory=dict)  # for its constructor
    embedding_size: OrNone = 0  # numbers of a document's embedding that the network reads; 0: none

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.module:
            raise BadSetting(type(self).__name__, "module", None, "must name a class, as package.module:Class")
        object.__setattr__(self, "options", {name: _plain(value) for name, value in self.options.items()})
        object.__setattr__(self, "source", check_source(self.module, self.source))

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The network's own first weights, drawn from a seed of the rng. A network that does not do its part is refused."""
        seed = rng.integers(0, 2**64, 1, dtype=np.uint64)
        words = np.array([len(vocabulary)], dtype=np.int64)
        network = self._built(int(words[0]), int(seed[0]))
        flat = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy().copy()
        state = {"weights": flat, "step": np.zeros(1, dtype=np.int64), "seed": seed, "words": words}
        self._try(state)
        return {**state, **optimiser_moments(self.optimiser, flat), **self.server_moments(flat)}

    def topics(self, state: State) -> Array:
        with torch.no_grad():
            return divided(self._network(state).eval().topics()).numpy()

    def infer(self, state: State, documents: Any) -> Array:
        network, inputs, out = self._network(state).eval(), self._inputs(documents), np.empty((len(documents), self.n_topics))
        with torch.no_grad():
            for rows in slices(len(documents), _CHUNK):
                out[rows] = divided(network.infer(*inputs.tensors(rows))).numpy()
        return out

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        network, shares, out = self._network(state).eval(), self.infer(state, seen), np.zeros(len(unseen))
        with torch.no_grad():
            for rows in slices(len(unseen), _CHUNK):
                words = divided(network.decode(torch.from_numpy(shares[rows]).to(self._real))).numpy()
                out[rows] = unseen.counts[rows].multiply(np.log(np.maximum(words, _LEAST))).sum(axis=1)
        return out

    def losses_of(self, state: State, documents: Any) -> LossesAlone:
        return LossesAlone(self._network(state), self._inputs(documents), (int(state["seed"][0]), int(state["step"][0])))

    def local_gradient(self, state: State, documents: Any, rows: Array, number: int) -> Array:
        """The gradient of a batch's losses, in a run of the network with random numbers of this step's own."""
        inputs = self._inputs(documents)
        with torch.random.fork_rng(devices=[]):
            reseed(int(state["seed"][0]), int(state["step"][0]), number, int(inputs.keys[rows[0]]))
            network = self._network(state)
            network(*inputs.tensors(rows)).sum().backward()
        parts = (torch.zeros_like(one) if one.grad is None else one.grad for one in network.parameters())
        return torch.cat([part.reshape(-1) for part in parts]).numpy()

    @property
    def _real(self) -> torch.dtype:
        return torch.float32 if self.dtype == "float32" else torch.float64

    def _inputs(self, documents: Any) -> Inputs:
        embeddings = check_embeddings(documents.embeddings, self.embedding_size) if self.embedding_size else None
        return Inputs(documents.counts, embeddings, np.asarray(documents.keys), self._real)

    def _built(self, words: int, seed: int) -> TopicNetwork:
        sizes = (words, self.n_topics, self.embedding_size)
        return _built(self.module, sizes, json.dumps(dict(self.options), sort_keys=True), seed, self.dtype)

    def _network(self, state: State) -> TopicNetwork:
        """The network with the weights of that state, ready to train."""
        network = copy.deepcopy(self._built(int(state["words"][0]), int(state["seed"][0])))
        torch.nn.utils.vector_to_parameters(torch.from_numpy(state["weights"].astype(self.dtype)), network.parameters())
        return network.train()

    def _try(self, state: State) -> None:
        """Refuses a network whose loss, topics or shares have another form than they must, over one made-up document."""
        words, topics = int(state["words"][0]), self.n_topics
        counts, embedding = torch.ones((1, words), dtype=self._real), None
        if self.embedding_size:
            embedding = torch.full((1, self.embedding_size), self.embedding_size**-0.5, dtype=self._real)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            reseed()
            network = self._network(state)
            _expect(self.module, "forward", (1,), lambda: network(counts, embedding))
            network.eval()
            _expect(self.module, "topics", (topics, words), network.topics)
            _expect(self.module, "infer", (1, topics), lambda: network.infer(counts, embedding))
            _expect(self.module, "decode", (1, words), lambda: network.decode(network.infer(counts, embedding)))


@lru_cache(maxsize=4)
def _built(module: str, sizes: tuple[int, int, int], options: str, seed: int, dtype: str) -> TopicNetwork:
    """The network as its constructor leaves it, with random numbers from this seed. It is never trained, only copied."""
    kind, (words, topics, embedding) = class_named(module), sizes
    with torch.random.fork_rng(devices=[]):
        reseed(seed)
        try:
            network = kind(words=words, topics=topics, embedding=embedding, **json.loads(options))
        except Exception as problem:  # the code of somebody else, and options that it may not know
            raise _broken(module, f"making it ended in {type(problem).__name__}: {problem}") from problem
    if not any(parameter.numel() for parameter in network.parameters()):
        raise _broken(module, "it has no weights")
    return network.to(torch.float32 if dtype == "float32" else torch.float64)


def _expect(module: str, method: str, shape: tuple[int, ...], call: Any) -> None:
    try:
        found = call()
    except Exception as problem:  # the code of somebody else
        raise _broken(module, f"{method} of one document ended in {type(problem).__name__}: {problem}") from problem
    if not isinstance(found, torch.Tensor) or tuple(found.shape) != shape:
        raise _broken(module, f"{method} must return a tensor of shape {shape}")
    if not bool(torch.isfinite(found).all()):
        raise _broken(module, f"{method} returns what is not finite")


def _plain(value: Any) -> Any:
    """A value typed after --set as a number, a truth value or a list, where it is one in JSON."""
    if not isinstance(value, CommandLineText):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return str(value)


def _unusable(module: str, problem: str) -> Mistake:
    return Mistake(
        "the module {module!r} of a torch-module cannot be used: {problem}",
        hint="name a class that derives from securetm.TopicNetwork as package.module:Class (--set "
        "model.module=...), in a package "
        "that is installed here or whose folder is in PYTHONPATH",
        module=module,
        problem=problem,
    )


def _broken(module: str, problem: str) -> Mistake:
    return Mistake(
        "{module!r} does not do what a topic network must: {problem}",
        hint="forward gives a loss per document (of one document too), topics and infer give no negative numbers",
        module=module,
        problem=problem,
    )
