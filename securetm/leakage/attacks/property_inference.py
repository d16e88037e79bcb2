"""Which party holds a subject, and how much of it, for somebody who sees what each party sends. No document is looked for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Challenge, Effort, GroundTruth, Proportion, Score
from securetm.leakage.illustrations import Example
from securetm.leakage.parts.noised_shares import noise_of
from securetm.leakage.parts.party_tables import shares_of, tables_by_party
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, party_vectors

HOLDER = "subjects whose main party is named rightly"
SHARE = "shares of a subject that are told within a tenth"
_WORDS = 5  # of a subject
_FEWEST = 3  # documents with its first word
_NEAR = 0.1  # of the share itself
_MOST_EXAMPLES = 4


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Run by the judge: words that stand together more often than others do, and their share of all words at each party."""
    held = {name: counts for name, counts in truth.held.items() if name not in truth.helpers}
    subjects = _subjects(sparse.csr_array(sparse.vstack(list(held.values()))), effort["subjects"], rng)
    return Challenge(subjects, shares_of(subjects, held))


def _subjects(documents: sparse.csr_array, wanted: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Around a word that is in several documents, those that its documents have more often than all documents have."""
    present = sparse.csr_array((documents > 0).astype(np.float64))
    often = np.asarray(present.sum(axis=0)).ravel()
    usable = np.flatnonzero(often >= _FEWEST)
    firsts = rng.choice(usable, size=min(wanted, len(usable)), replace=False)
    together = np.asarray((present[:, firsts].T @ present).todense())
    lift = together / np.maximum(often, 1.0)[None, :] + (together > 1)  # first those that are beside it more than once
    lift[np.arange(len(firsts)), firsts] = 3.0  # the word itself always
    return tuple(np.argsort(-row, kind="stable")[:_WORDS] for row in lift)


def attack(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:  # noqa: ARG001 - which subjects, the question says
    """Run by the adversary: each subject's share of all words that a party's own topics hold."""
    noise = noise_of(view.public.profile, len(view.vocabulary())).mean
    return shares_of(view.question, tables_by_party(party_vectors(view)), noise)


def judge(told: Mapping[str, Array], truth: GroundTruth) -> Score:
    """Run by the judge: the party with the largest share, and the shares themselves."""
    names = sorted(truth.answer)
    real = np.stack([truth.answer[name] for name in names])
    said = np.stack([told.get(name, np.zeros(real.shape[1])) for name in names])
    right = said.argmax(axis=0) == real.argmax(axis=0)
    near = np.abs(said - real) <= _NEAR * real
    measures = {HOLDER: Proportion(int(right.sum()), len(right)), SHARE: Proportion(int(near.sum()), near.size)}
    shown = range(min(_MOST_EXAMPLES, len(right)))
    return Score(measures, tuple(Example(_said(real, names, n), _said(said, names, n), bool(right[n])) for n in shown))


def _said(shares: Array, names: list[str], subject: int) -> str:
    """A subject's shares in words, the largest first."""
    order = np.argsort(-shares[:, subject], kind="stable")
    return "; ".join(f"{names[party]} {100 * shares[party, subject]:.2f} %" for party in order)


ATTACK = Attack(
    name="property_inference",
    title="Which party holds a subject, and how much of it",
    citation="Melis et al. 2019 (arXiv 1805.04049), on properties of a party's data that its updates show",
    cost="under a second on one core",
    given="a few words of each subject, and what each party sends",
    needs=(REQUEST, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("lda", "lda-matched", "sentence-lda", "sentence-lda-matched"),
    measures={HOLDER: "subject", SHARE: "share"},
    attack=attack,
    judge=judge,
    efforts=("subjects",),
    pose=pose,
    limits=(
        "networks, whose gradients name each party's words (gradient_inversion)",
        "how a share changes from round to round",
        "subjects are groups of five words that stand together, not topics as people would name them",
    ),
    remark="No epsilon of words, documents or persons speaks of a whole party: what a party's documents are about, as long as "
    "its own vector is seen, is not hidden by it. A sum over parties hides it.",
)
