"""Documents from gradients of neural models: in closed form, or by optimisation where no closed form applies.

The noise that the model drew for a document need not be known. No sealed vector is opened, but the numbers that such a vector
shows are read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus

from securetm.auditing.attack import Attack, Effort, RoundReconstruction
from securetm.auditing.parts.gradients import (
    GradientLayers,
    document_behind,
    document_count,
    enough_gradients,
    gradients,
    invert_gradient,
    layers_of,
    weights_of,
)
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, MEASURES, WORDS, judged, judged_documents
from securetm.auditing.views import BY_PARTIES, REQUEST, TOTAL, VOCABULARY, AdversaryView, party_vectors, totals
from securetm.contracts import Array
from securetm.models.neural.contextual import ContextualTopicModel
from securetm.models.neural.cpu_kernels import EPSILON
from securetm.models.neural.prodlda import ProdLDA

_ENCODERS = ("prodlda", "neural-lda", "combined-tm")  # whose encoders read words
_DOCUMENTS_AND_WORDS = {**DOCUMENTS, **WORDS}


def invert_answers(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    vectors = enough_gradients(party_vectors(view), effort["documents"])
    return tuple(invert_gradient(one, view.public.model) for one in vectors)


def invert_sums(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    sums, parties = gradients(totals(view))[: effort["rounds"]], len(view.public.members)
    return tuple(invert_gradient(one, view.public.model, parties) for one in sums)


def invert_decoders(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    """Finds the document of each gradient of a single document. It reads only the decoder's part of the gradient."""
    model, most, found = cast("ProdLDA | ContextualTopicModel", view.public.model), effort["documents"], []
    for one in [one for one in gradients(party_vectors(view)) if document_count(one, most) == 1][:most]:
        weights = weights_of(one, model)
        document = document_behind(layers_of(one, model), weights["topics"], weights["background"], model.gain)
        found.append(RoundReconstruction(one.round.serial, one.party, () if document is None else (document,)))
    return tuple(found)


GRADIENT_INVERSION = Attack(
    name="gradient_inversion",
    title="Documents from one party's gradient",
    citation="Geiping et al. 2020 (a layer's gradient over its bias'); for batches the corners of the gradient's cone",
    cost="well under a second on one core for one answer of up to 64 documents",
    given="the model's settings and words, and how many documents an answer holds; nothing about the documents",
    either=BY_PARTIES,
    models=_ENCODERS,
    measures=_DOCUMENTS_AND_WORDS,
    bears_on=("singling out", "inference"),
    attack=invert_answers,
    judge=partial(judged, wanted=_DOCUMENTS_AND_WORDS),
    efforts=("documents",),
    limits=("optimisation, which coarsely rounded, clipped or noised gradients need", "comparing consecutive rounds"),
)

SUM_INVERSION = Attack(
    name="sum_inversion",
    title="Words and documents from the sum over all parties",
    citation="Geiping et al. 2020 (arXiv 2003.14053), a layer's gradient over its bias'; words of one document alone in a sum: "
    "arXiv 2508.04285, on sparse sums; the corners of the cone are our own",
    cost="under a second on one core for one sum of a hundred documents",
    given="the model's settings and words, and how many parties and documents are in a sum",
    needs=(REQUEST, TOTAL, VOCABULARY),
    models=_ENCODERS,
    measures=MEASURES,
    bears_on=("singling out", "inference"),
    attack=invert_sums,
    judge=judged,
    limits=(
        "sums of more documents than the model's first layer is wide: it finds only words and links in them",
        "noise: it does not model noise, so it names every word and finds nothing more",
        "two sums over almost the same documents, which show more together than each alone",
    ),
)

DECODER_INVERSION = Attack(
    name="decoder_inversion",
    title="A document from the decoder's gradient alone",
    citation="the decoder's part of gradient inversion; softmax shows counts as expectation less gradient",
    cost="well under a second on one core for one answer",
    given="the weights that were sent out, the model's settings and words",
    either=BY_PARTIES,
    models=("prodlda", "combined-tm", "zeroshot-tm"),  # that are products of experts
    measures=DOCUMENTS,
    bears_on=("singling out", "inference"),
    attack=invert_decoders,
    judge=judged_documents,
    efforts=("documents",),
    limits=("answers that hold more than one document",),
)


# ---- gradient matching: bags of words are changed until their gradient is the observed one --------------------------
# Zhu et al. 2019 and Geiping et al. 2020 match images. Bags of words can be matched because more is known of them: which words
# occur, how often each occurs in all documents together, and that counts are whole. The noise of the model's training (dropout,
# draws of topics) is unknown and fitted as well. It takes arrays, not messages.

COSINE, SQUARES = "cosine", "l2"
_STEPS, _RATE = 300, 0.1
_SHARPENING = 1e-4  # the weight that moves a word's occurrences into one document, in the second half
_MOVES, _TRIED_AT_ONCE = 60, 8
_MOST_OF_A_WORD = 1000.0  # occurrences in one answer; noise would give more
_LEAST = 1e-12  # divisor
_SOLVED = 1e-3  # the misfit, as a share of the gradient, at which no other start is tried


class GradientMatcher:
    """The observed gradient of several documents as tensors, and the misfit of a guess: each one's counts and topic strengths.

    `topics` and `background` are the decoder's weights. Without `with_encoder` only the decoder's part is matched.
    """

    def __init__(
        self, layers: GradientLayers, topics: Array, background: Array, gain: float, documents: int, with_encoder: bool
    ) -> None:
        self.documents, self.words, self.topics = documents, len(background), len(topics)
        self._decoder, self._with_encoder = (_tensor(topics), _tensor(background), gain), with_encoder
        self._to_topics, self._to_background = _tensor(layers.topics), _tensor(layers.background)
        occur = (layers.words != 0).any(axis=1)  # words that the first layer names
        self._occur = torch.from_numpy(occur)
        self._to_words = _tensor(np.vstack([layers.words[occur], layers.words_bias[None]]))

    def misfit(self, counts: Tensor, strengths: Tensor, how: str) -> Tensor:
        """The distance of the gradient of these documents from the observed one, layer by layer."""
        to_topics, to_background = decoder_gradient(counts, softplus(strengths), *self._decoder)
        off = _apart(to_topics, self._to_topics, how) + _apart(to_background, self._to_background, how)
        if not self._with_encoder:
            return off
        # the first layer: each document's input times a vector, which is solved for
        inputs = torch.log1p(counts[:, self._occur])
        inputs = inputs / torch.linalg.vector_norm(inputs, dim=1, keepdim=True).clamp_min(1e-6)
        inputs = torch.cat([inputs.T, torch.ones(1, len(counts), dtype=counts.dtype)])  # the bias has input 1
        ridge = 1e-8 * torch.eye(len(counts), dtype=counts.dtype)
        vectors = torch.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ self._to_words)
        return off + _apart(inputs @ vectors, self._to_words, how)

    def occurrences(self, counts: Tensor, strengths: Tensor) -> Tensor:
        """How often each word occurs in all documents: the model's expectation minus the background's gradient."""
        with torch.no_grad():
            chances, _, _ = _said(softplus(strengths), *self._decoder)
            expected = (counts.sum(dim=1, keepdim=True) * chances).sum(dim=0)
            expected = expected / expected.sum()
            length = torch.median(self._to_background / expected)  # most words of the list do not occur
            found: Tensor = torch.round(length * expected - self._to_background).clamp(0, _MOST_OF_A_WORD)
            if not self._with_encoder:
                return found
            return torch.where(self._occur, found.clamp_min(1), torch.zeros_like(found))


def _tensor(values: Array) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float64))


def decoder_gradient(counts: Tensor, kept: Tensor, topics: Tensor, background: Tensor, gain: float) -> tuple[Tensor, Tensor]:
    """The gradient of the decoder's two layers, written so that torch can differentiate it again."""
    chances, normal, rates = _said(kept, topics, background, gain)
    after = counts.sum(dim=1, keepdim=True) * chances - counts
    back = rates * gain * (after - normal * (after * normal).mean(dim=1, keepdim=True))
    return kept.T @ back, after.sum(dim=0)


def _said(kept: Tensor, topics: Tensor, background: Tensor, gain: float) -> tuple[Tensor, Tensor, Tensor]:
    """The decoder's probability of each word, its normalised logits, and the factors of the normalisation."""
    logits = kept @ topics
    logits = logits - logits.mean(dim=1, keepdim=True)
    rates = torch.rsqrt(logits.square().mean(dim=1, keepdim=True) + EPSILON)
    return torch.softmax(gain * logits * rates + background, dim=1), logits * rates, rates


def _apart(guessed: Tensor, seen: Tensor, how: str) -> Tensor:
    if how == COSINE:
        sizes = torch.linalg.vector_norm(guessed) * torch.linalg.vector_norm(seen)
        away: Tensor = 1.0 - (guessed * seen).sum() / sizes.clamp_min(_LEAST)
        return away
    off: Tensor = (guessed - seen).square().sum() / seen.square().sum().clamp_min(_LEAST)
    return off


def best_match(matching: GradientMatcher, starts: int) -> list[Array]:
    """Whole counts of each document from the best of several starts. The starts alternate two losses."""
    best = list[Array](), np.inf
    for start in range(starts):
        found = _from_one_start(matching, (COSINE, SQUARES)[start % 2], np.random.default_rng(start))
        best = min(best, found, key=lambda one: one[1])
        if best[1] < _SOLVED:
            break
    return best[0]


def _from_one_start(matching: GradientMatcher, how: str, rng: np.random.Generator) -> tuple[list[Array], float]:
    """One start: optimises the shares of each word's occurrences, rounds them to counts, and improves these."""
    documents, words = matching.documents, matching.words
    strengths = torch.from_numpy(rng.standard_normal((documents, matching.topics)) * 0.5 - 1.5).requires_grad_()
    leaning = torch.from_numpy(rng.standard_normal((documents, words)) * 0.3).requires_grad_()
    totals = matching.occurrences(torch.ones(documents, words, dtype=torch.float64), strengths)
    optimiser = torch.optim.Adam([leaning, strengths], lr=_RATE)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, _STEPS, _RATE / 20)
    for step in range(1, _STEPS + 1):
        optimiser.zero_grad()
        shares = torch.softmax(leaning, dim=0)
        loss = matching.misfit(totals * shares, strengths, how)
        spread = shares * torch.log(shares.clamp_min(1e-300))  # sparsity: the entropy of each word's spread over the documents
        undecided = -spread[:, totals > 0].sum() / len(shares)
        torch.autograd.backward(loss + _SHARPENING * (step > _STEPS // 2) * undecided)
        optimiser.step()
        slower.step()
        if step % 50 == 0:  # steps between estimates of how often each word occurs
            totals = matching.occurrences((totals * shares).detach(), strengths)
    if not torch.isfinite(leaning).all() or not totals.any():  # numbers that are no gradient lead nowhere
        return [], np.inf
    whole = _made_whole(totals * torch.softmax(leaning.detach(), dim=0), totals)
    whole = _polished(matching, whole, strengths, how)
    off = float(matching.misfit(whole, strengths, SQUARES).detach())
    return [counts.numpy().astype(np.int64) for counts in whole], off


def _made_whole(counts: Tensor, totals: Tensor) -> Tensor:
    """Rounds down, and adds what is missing of each word where rounding removed most."""
    whole = torch.floor(counts + 1e-9)
    left = (totals - whole.sum(dim=0)).round().long()
    for word in torch.nonzero(left > 0)[:, 0]:
        places = torch.topk((counts - whole)[:, word], min(int(left[word]), len(whole))).indices
        whole[places, word] += 1.0
    return whole


def _polished(matching: GradientMatcher, whole: Tensor, strengths: Tensor, how: str) -> Tensor:
    """Moves one occurrence at a time to another document, as long as the misfit falls."""
    _refitted(matching, whole, strengths, how, 60)
    for moved in range(1, _MOVES + 1):
        better = _moved(matching, whole, lambda counts: matching.misfit(counts, strengths.detach(), how))
        if better is None:
            break
        whole = better
        if moved % 5 == 0:
            _refitted(matching, whole, strengths, how, 20)
    return whole


def _refitted(matching: GradientMatcher, whole: Tensor, strengths: Tensor, how: str, steps: int) -> None:
    """Optimises the topic strengths with fixed counts."""
    optimiser = torch.optim.Adam([strengths], lr=_RATE / 2)
    for _ in range(steps):
        optimiser.zero_grad()
        torch.autograd.backward(matching.misfit(whole, strengths, how))
        optimiser.step()


def _moved(matching: GradientMatcher, whole: Tensor, misfit: Callable[[Tensor], Tensor]) -> Tensor | None:
    """The first of the most promising moves of a word's occurrence that lowers the misfit, if one does."""
    counts = whole.clone().requires_grad_()
    before = misfit(counts)
    (slope,) = torch.autograd.grad(before, counts)
    giving = torch.where(whole > 0, slope, torch.full_like(slope, -torch.inf)).max(dim=0)
    taking = slope.min(dim=0)
    promise = taking.values - giving.values
    for word in torch.argsort(promise)[:_TRIED_AT_ONCE]:
        if promise[word] >= 0 or not torch.isfinite(promise[word]):
            break
        ends = one_hot(torch.stack([giving.indices[word], taking.indices[word]]), matching.documents).to(whole)
        moved = whole.clone()
        moved[:, word] += ends[1] - ends[0]
        if misfit(moved) < before:
            return moved
    return None


_ENCODER_TOO = 2  # of `parts`: 1 is the decoder's gradient alone
_MOST = 64  # documents in one answer; tried if noise makes the number in the answer impossible


def match_answers(view: AdversaryView, effort: Effort) -> tuple[RoundReconstruction, ...]:
    model, found = cast("ProdLDA", view.public.model), []
    for one in gradients(party_vectors(view))[: effort["answers"]]:
        weights, layers = weights_of(one, model), layers_of(one, model)
        held, with_encoder = document_count(one, _MOST) or 1, effort["parts"] >= _ENCODER_TOO
        matching = GradientMatcher(layers, weights["topics"], weights["background"], model.gain, held, with_encoder)
        found.append(RoundReconstruction(one.round.serial, one.party, tuple(best_match(matching, effort["starts"]))))
    return tuple(found)


GRADIENT_MATCHING = Attack(
    name="gradient_matching",
    title="Documents from one party's gradient by matching it",
    citation="Zhu et al. 2019 (arXiv 1906.08935), Geiping et al. 2020 (arXiv 2003.14053); the prior on whole counts is our own",
    cost="two seconds on one core for one start and an answer of eight documents",
    given="the weights that were sent out, the model's settings and words, and how many documents an answer holds",
    either=BY_PARTIES,
    models=("prodlda",),
    measures=DOCUMENTS,
    bears_on=("singling out", "inference"),
    attack=match_answers,
    judge=judged_documents,
    efforts=("answers", "starts", "parts"),  # parts: 1 is the decoder's gradient alone, 2 adds the first layer's
    limits=(
        "finding out which documents took part where secret coins chose them: shares are then of all documents",
        "many documents in an answer: it finds fewer of them; more starts help, up to the model's number of topics",
        "the documents' own noise, which an attacker could repeat who knows what a party calls its source of documents",
        "noise: it fits the numbers that it sees, and does not model how noise was drawn",
    ),
    remark="Where the first layer's gradient is exact, the closed form (gradient_inversion) is faster and finds more. This "
    "attack is for what the closed form cannot read: the decoder's gradient of several documents.",
)
