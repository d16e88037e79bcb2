"""A document without an agreed word still has a meaning: semantic topics learn from its embedding."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.federation.party.documents import PartyDocuments
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables

WORDS = ("known", "other")


def held(persons: bool = False) -> Corpus:
    rng = np.random.default_rng(0)
    counts = np.zeros((200, 2), dtype=np.int32)
    counts[::2, 0] = 1  # every other document has a word
    keys = rng.integers(0, 2**63, 200, dtype=np.uint64)
    owners = np.arange(200) // 2 if persons else None  # a person has one document of each kind
    documents = HeldDocuments(
        sparse.csr_array(counts), WORDS, keys, persons=owners, embeddings=rng.normal(size=(200, 384)).astype(np.float32)
    )
    return Corpus(documents)


def read(model: str, *, persons: bool = False) -> PartyDocuments:
    asked = {"model": {"name": model}, "vocabulary": {"file": "english"}, "training": {"start": "plain"}}
    whom = {"profile": "dp-central", "privacy": {"unit": "person", "epsilon": 1}} if persons else {"profile": "masked"}
    documents = PartyDocuments(held(persons))
    documents.adopt(WORDS, agree(plan_from_tables({**asked, **whom}, "a test")))
    return documents


@pytest.mark.parametrize("model", ["semantic", "zeroshot-tm"])
def test_who_learns_from_a_document_without_words(model: str) -> None:
    found = read(model)
    train, tried = found.for_question("train"), found.for_question("held_out")
    assert len(tried)
    assert (tried.lengths() > 0).all()
    assert (train.lengths() == 0).any() == (model == "semantic")
    assert not set(train.keys.tolist()) & set(tried.keys.tolist())


def test_all_documents_of_a_person_are_on_one_side_with_words_or_without() -> None:
    found = read("semantic", persons=True)
    train, tried = found.for_question("train"), found.for_question("held_out")
    assert len(tried)
    assert not set(train.persons.tolist()) & set(tried.persons.tolist())
