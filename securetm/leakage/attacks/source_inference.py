"""Which party a document lies with, for somebody who has the document and sees what each party sends.

It does not ask whether the document was in the training at all: that is known, and only whose it is, is not.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Challenge, Effort, GroundTruth, Proportion, Score
from securetm.leakage.illustrations import Example
from securetm.leakage.parts.party_tables import fits, tables_by_party
from securetm.leakage.parts.reconstruction_scores import in_words
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, party_vectors

SOURCE = "documents whose party is named rightly"
_MOST_EXAMPLES = 4


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Run by the judge: as many documents of each party that helps nobody, in any order, and whose they are."""
    names = [name for name in truth.held if name not in truth.helpers]
    each = max(effort["documents"] // len(names), 1)
    chosen = {name: _some(truth.held[name].shape[0], each, rng) for name in names}
    rows = sparse.csr_array(sparse.vstack([truth.held[name][places] for name, places in chosen.items()]))
    whose = np.repeat(names, [len(places) for places in chosen.values()])
    order = rng.permutation(len(whose))
    return Challenge(rows[order], tuple(zip((str(name) for name in whose[order]), rows[order].todense(), strict=True)))


def _some(there: int, wanted: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(there, size=min(wanted, there), replace=False)


def attack(view: AdversaryView, effort: Effort) -> tuple[str, ...]:  # noqa: ARG001 - how many documents, the question says
    """Run by the adversary: the party whose own topics explain a document best."""
    helping = {insider.name for insider in view.insiders}
    tables = {name: t for name, t in tables_by_party(party_vectors(view)).items() if name not in helping}
    documents = np.asarray(view.question.todense(), dtype=np.float64)
    names = sorted(tables)
    if not names:
        return ("",) * len(documents)
    scores = np.stack([fits(documents, tables[name]) for name in names])
    return tuple(names[best] for best in scores.argmax(axis=0))


def judge(named: tuple[str, ...], truth: GroundTruth) -> Score:
    """Run by the judge."""
    right = [guess == real for guess, (real, _) in zip(named, truth.answer, strict=True)]
    return Score({SOURCE: Proportion(sum(right), len(right))}, tuple(_examples(named, truth)))


def _examples(named: tuple[str, ...], truth: GroundTruth) -> list[Example]:
    """The first few documents, by who was taken for their owner."""
    first = list(zip(named, truth.answer, strict=True))[:_MOST_EXAMPLES]
    return [
        Example(
            f"{real}: {in_words(np.asarray(counts), truth.vocabulary)}", f"said to be of {guess or 'nobody'}", guess == real
        )
        for guess, (real, counts) in first
    ]


ATTACK = Attack(
    name="source_inference",
    title="Which party a document lies with",
    citation="Hu et al. 2021 (arXiv 2109.05659), there by the loss of each party's own model; here by its own topics",
    cost="under a second on one core for a hundred documents",
    given="the documents themselves, known to be in the training, and what each party sends",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("lda", "lda-matched", "sentence-lda", "sentence-lda-matched"),
    measures={SOURCE: "document"},
    attack=attack,
    judge=judge,
    efforts=("documents",),
    pose=pose,
    limits=(
        "networks, whose gradients name the words of each party's documents outright (gradient_inversion)",
        "what the shared model tells to somebody who knows some of a party's documents",
    ),
    remark="By chance it is one in as many as there are parties; parties with different subjects are told apart more easily.",
)
