"""The example's parts under the laws that ship with securetm. Run by tests/test_example_package.py."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from securetm_example.exact_sum import ExactSum
from securetm_example.jsonl_xz import jsonl_xz_records
from securetm_example.last_first import LastFirst
from securetm_example.row_cap import RowCap
from securetm_example.unigram_mixture import UnigramMixture
from securetm_example.word_counts import ATTACK

from securetm.auditing.attack import Attack
from securetm.contracts import Aggregation, Block, Engine, Mechanism, Query, Terms, TopicModel
from securetm.corpus.readers import Reader
from securetm.testing import AggregationLaws, AttackLaws, EngineLaws, MechanismLaws, ModelLaws, QueryLaws, ReaderLaws


class TestUnigramMixture(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return UnigramMixture(n_topics=3)


class TestWordsByTopic(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        model = UnigramMixture(n_topics=3)
        return model.query(model.start([f"word{n}" for n in range(12)], np.random.default_rng(0)))


class TestRowCap(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return RowCap(2.0)


class TestExactSum(AggregationLaws):
    @pytest.fixture
    def aggregation(self) -> Aggregation:
        return ExactSum()


class TestExactSumOfRealNumbers(TestExactSum):
    @pytest.fixture
    def asked(self) -> Terms:
        return Terms((Block("a", (2, 2)), Block("b", (3,))), bits=64)


class TestWordCounts(AttackLaws):
    @pytest.fixture
    def attack(self) -> Attack:
        return ATTACK


class TestLastFirst(EngineLaws):
    @pytest.fixture
    def engine(self) -> Engine:
        return LastFirst()


class TestJsonlXz(ReaderLaws):
    ending = "jsonl.xz"

    @pytest.fixture
    def reader(self) -> Reader:
        return jsonl_xz_records

    def write(self, path: Path, documents: Sequence[Mapping[str, str]]) -> None:
        with lzma.open(path, "wt", encoding="utf-8") as packed:
            packed.writelines(json.dumps(one) + "\n" for one in documents)
