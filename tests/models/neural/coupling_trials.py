"""Tries whether a network couples documents: a clip per document bounds a sum only if no document changes another's gradient.

It tells which part of a network is at fault; the package itself tries whole models (`check_additive`, `check_rows`). The
documents are made up. What it accepts has passed the trials, which is no proof; what it refuses has failed one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from securetm.models.model_errors import CouplesDocuments

Inputs = tuple[Tensor, ...]

ROWS = 16
_OUTLIER = 100.0  # what takes a place is this much larger than what it replaces, so that a maximum moves too
_ROUNDS = 200.0  # units of the last place that two ways to the same number may differ by, of the largest one beside it

# ---- networks ------------------------------------------------------------------------------------------------------------


def check_module(module: nn.Module, inputs: Inputs | None = None) -> None:
    """Raises CouplesDocuments where the rows of a batch meet, or where anything is kept from one batch to the next.

    `inputs` are a few rows as the module takes them, one per document; left out, the first linear layer says their width.
    The trials run on a copy in training mode; the module and the global random state stay as they were.
    """
    _check_kinds(module)
    tried = copy.deepcopy(module).train()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(1)
        batch = _batch(tried, inputs)
        _check_memory(tried, batch)
        _check_outputs(tried, batch)
        _check_gradients(tried, batch)
        _check_size(tried, batch)


def _check_kinds(module: nn.Module) -> None:
    for path, part in module.named_modules():
        if isinstance(part, _BatchNorm):
            raise CouplesDocuments(_where(module, path), f"{type(part).__name__} normalises over the documents of a batch")
        if isinstance(part, _InstanceNorm) and part.track_running_stats:
            raise CouplesDocuments(_where(module, path), f"{type(part).__name__} keeps running statistics of documents")


def _check_memory(module: nn.Module, batch: Inputs) -> None:
    """Refuses a module that keeps a buffer or anything else from a batch."""
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    first = _run(module, batch)[0]
    _run(module, _replaced(batch, range(len(batch[0]))))
    for name, buffer in module.named_buffers():
        if not torch.equal(before[name], buffer):
            raise CouplesDocuments(_where(module, name), "a buffer changes while it learns, and stays for later documents")
    if not _same(first, _run(module, batch)[0]):
        raise CouplesDocuments(_where(module, ""), "something of earlier documents stays in it")


def _check_outputs(module: nn.Module, batch: Inputs) -> None:
    """Refuses a module whose row i changes when another row is replaced. Both runs draw the same random numbers."""
    whole, parts = _run(module, batch)
    if len(whole) != len(batch[0]):
        raise CouplesDocuments(_where(module, ""), f"it gives {len(whole)} rows for {len(batch[0])} documents")
    for place in (0, len(whole) // 2, len(whole) - 1):
        others = [i for i in range(len(whole)) if i != place]
        moved, moved_parts = _run(module, _replaced(batch, [place]))
        if not _same(whole[others], moved[others]):
            raise CouplesDocuments(_first(module, parts, moved_parts, others), "its rows change when another row does")


def _check_gradients(module: nn.Module, batch: Inputs) -> None:
    """Refuses a module whose gradient of a sum is not the sum of the gradients of each row among other rows."""
    rows = range(len(batch[0]))
    together = _gradient(module, batch, list(rows))
    apart = [_gradient(module, _replaced(batch, [j for j in rows if j != i]), [i]) for i in rows]
    for name, whole in together.items():
        each = torch.stack([one[name] for one in apart])
        # Sums in another order differ by rounding, of the largest terms and not of the sum.
        if not _same(whole.flatten(), each.sum(dim=0).flatten(), each.abs().sum(dim=0).max()):
            raise CouplesDocuments(_where(module, name), "its gradient is not the sum of the documents' own gradients")


def _check_size(module: nn.Module, batch: Inputs) -> None:
    """Refuses a module whose rows depend on their number. Noise is switched off, since another size draws other noise."""
    with _held_still(module, batch):
        half = tuple(x[: len(x) // 2] for x in batch)
        whole, fewer = _run(module, batch)[0], _run(module, half)[0]
        if len(fewer) != len(half[0]) or not _same(whole[: len(fewer)], fewer):
            raise CouplesDocuments(_where(module, ""), "its rows depend on how many there are")


@contextmanager
def _held_still(module: nn.Module, batch: Inputs) -> Iterator[None]:
    """The module without its own noise: first without dropout, and if that is not all, as when it does not learn."""
    ways: list[Callable[[], object]] = [
        module.train,
        lambda: [part.eval() for part in module.modules() if isinstance(part, _DropoutNd)],
        module.eval,
    ]
    try:
        for way in ways:
            way()
            if torch.equal(_run(module, batch, seed=2)[0], _run(module, batch, seed=3)[0]):
                yield
                return
        raise CouplesDocuments(_where(module, ""), "its noise cannot be switched off to see whether their number matters")
    finally:
        module.train()


def _batch(module: nn.Module, inputs: Inputs | None) -> Inputs:
    if inputs is not None:
        if len(inputs[0]) < 2:
            raise ValueError(
                f"nothing says what {type(module).__name__} takes as input: give a few inputs, one row per document"
            )
        return inputs
    wide = next((part for part in module.modules() if isinstance(part, nn.Linear)), None)
    if wide is None:
        raise ValueError(f"nothing says what {type(module).__name__} takes as input")
    return (torch.randn(ROWS, wide.in_features, dtype=wide.weight.dtype, device=wide.weight.device),)


def _replaced(batch: Inputs, places: Any) -> Inputs:
    """The batch with other rows in these places: outliers of both signs, or, where inputs are whole numbers, other rows."""
    out = []
    for one in batch:
        changed, chosen = one.clone(), list(places)
        if one.is_floating_point():
            # As large in one way as in the other: counts stay counts where none was below zero.
            other = _OUTLIER * torch.randn_like(one[chosen]) * one.abs().max().clamp(min=0.01)
            changed[chosen] = other.abs() if bool((one >= 0).all()) else other
        else:
            changed[chosen] = one.roll(1, 0)[chosen]
        out.append(changed)
    return tuple(out)


def _run(module: nn.Module, batch: Inputs, seed: int = 2) -> tuple[Tensor, dict[str, Tensor]]:
    """The output, one flat row per document, and that of every part inside in the order in which parts are done."""
    parts: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        return lambda _module, _inputs, out: parts.__setitem__(name, out.detach()) if isinstance(out, Tensor) else None

    hooks = [part.register_forward_hook(keep(name)) for name, part in module.named_modules()]
    try:
        torch.manual_seed(seed)
        with torch.no_grad():
            return _rows(module(*batch)), parts
    finally:
        for hook in hooks:
            hook.remove()


def _rows(out: Any) -> Tensor:
    if isinstance(out, Tensor):
        return out.reshape(len(out), -1) if out.ndim else out.reshape(1, 1)
    return torch.cat([_rows(one) for one in out], dim=1)


def _gradient(module: nn.Module, batch: Inputs, of: list[int]) -> dict[str, Tensor]:
    """The gradient of a fixed mixture of these rows' outputs, by parameter."""
    learned = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    torch.manual_seed(2)
    out = _rows(module(*batch))
    mixture = torch.cos(torch.arange(out.shape[1], dtype=out.dtype, device=out.device))  # no symmetry that hides a term
    loss = (out[of] @ mixture).sum()
    if not learned or not loss.requires_grad:
        return {}
    found = torch.autograd.grad(loss, list(learned.values()), allow_unused=True)
    return {name: one for name, one in zip(learned, found, strict=True) if one is not None}


def _same(one: Tensor, two: Tensor, scale: Tensor | None = None) -> bool:
    """Equal but for rounding, of each row's largest value or of `scale`; what is not finite must be so in both."""
    if one.shape != two.shape:
        return False
    if not one.is_floating_point():
        return bool(torch.equal(one, two))
    size = torch.maximum(one.abs(), two.abs()).nan_to_num(0.0, 0.0, 0.0)
    largest = (size.amax(dim=-1, keepdim=True) if size.ndim > 1 else size) if scale is None else scale
    close = (one - two).abs() <= _ROUNDS * torch.finfo(one.dtype).eps * largest
    return bool((close | (one == two) | (one.isnan() & two.isnan())).all())


def _first(module: nn.Module, before: dict[str, Tensor], after: dict[str, Tensor], rows: list[int]) -> str:
    """The first part, innermost first, whose rows moved."""
    for name, out in before.items():
        kept = out.ndim and len(out) > max(rows)
        if kept and not _same(_rows(out)[rows], _rows(after[name])[rows]):
            return _where(module, name)
    return _where(module, "")


def _where(module: nn.Module, path: str) -> str:
    return f"{type(module).__name__}.{path}" if path else type(module).__name__
