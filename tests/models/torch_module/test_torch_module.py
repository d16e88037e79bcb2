"""A network that somebody else wrote: it passes the laws, its documents are computed alone, and other source is refused."""

from __future__ import annotations

import importlib
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import securetm
from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Query, TopicModel
from securetm.corpus.corpus import Corpus
from securetm.errors import Mistake
from securetm.models.neural import torch_module
from securetm.models.neural.torch_module import TorchModule
from securetm.models.trials import RowsDepend, check_additive, check_rows
from securetm.settings import CommandLineText
from securetm.testing.few_documents import some_documents
from securetm.testing.model_laws import VOCABULARY, ModelLaws
from securetm.testing.query_laws import QueryLaws
from tests.forking import ended
from tests.models.torch_module import networks
from tests.models.trained_by_hand import sum_of
from tests.quick_part import quick

HERE = networks.__name__
KINDS = (networks.SmallNetwork, networks.Remembers, networks.MovesItsWeights, networks.Fails)
PRECISE: dict[str, Any] = {"module": f"{HERE}:SmallNetwork", "n_topics": 3, "dtype": "float64", "batch": 8}


def around(kind: type, **more: Any) -> TorchModule:
    return TorchModule(**{**PRECISE, "module": f"{HERE}:{kind.__name__}", **more})


class TestSteps(ModelLaws):
    @pytest.fixture
    def model(self) -> TopicModel:
        return TorchModule(**PRECISE)


class TestGradients(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        model = TorchModule(**PRECISE)
        return model.query(model.start(VOCABULARY, np.random.default_rng(0)))


class TestLocalEpochs(QueryLaws):
    @pytest.fixture
    def query(self) -> Query:
        model = TorchModule(**PRECISE, local_epochs=2)
        return model.query(model.start(VOCABULARY, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("dtype", "kind"),
    quick(product(("float32", "float64"), KINDS), ("float64", networks.Remembers)),
)
def test_a_row_depends_on_its_document_alone_to_the_last_bit(kind: type, dtype: str) -> None:
    check_rows(around(kind, dtype=dtype))
    check_additive(around(kind, dtype=dtype))


@pytest.mark.parametrize("kind", [networks.RemembersEverywhere, networks.RollsDice])
def test_a_network_whose_rows_depend_on_others_is_refused(kind: type) -> None:
    with pytest.raises(RowsDepend, match="changes with the others"):
        check_rows(around(kind))


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (networks.BatchNormalised, "forward of one document ended in ValueError: Expected more than 1 value"),
        (networks.WrongTopics, r"topics must return a tensor of shape \(3, 12\)"),
        (networks.OneLoss, r"forward must return a tensor of shape \(1,\)"),
    ],
)
def test_a_network_that_does_not_do_its_part_is_refused(kind: type, problem: str) -> None:
    with pytest.raises(Mistake, match=problem):
        around(kind).start(VOCABULARY, np.random.default_rng(0))


def test_options_of_the_command_line_are_numbers_where_they_can_be() -> None:
    typed = {"hidden": CommandLineText("5"), "name": CommandLineText("5 things")}
    assert TorchModule(**PRECISE, options=typed).options == {"hidden": 5, "name": "5 things"}


def test_options_that_the_constructor_does_not_know() -> None:
    with pytest.raises(Mistake, match="unexpected keyword argument 'colour'"):
        TorchModule(**PRECISE, options={"colour": 3}).start(VOCABULARY, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("networks", "package.module:Class"),
        ("os:system or os", "package.module:Class"),
        ("nothing_here.networks:Network", "looking for it ended in ModuleNotFoundError"),
        ("nothing_here:Network", "no file of a module"),
        (f"{HERE}:NoTopicNetwork", "no class that derives from"),
        (f"{HERE}:Missing", "no class that derives from"),
    ],
)
def test_a_name_of_no_network(module: str, problem: str) -> None:
    with pytest.raises(Mistake, match=problem):
        TorchModule(module=module).start(VOCABULARY, np.random.default_rng(0))


def test_other_source_is_refused_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_network.py").write_text("raise RuntimeError('this was imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    agreed = TorchModule(**PRECISE).source
    with pytest.raises(Mistake, match="the agreement says"):
        TorchModule(module="their_network:Network", source=agreed)
    assert "their_network" not in sys.modules
    with pytest.raises(Mistake, match="importing it ended in RuntimeError: this was imported"):
        TorchModule(module="their_network:Network").start(VOCABULARY, np.random.default_rng(0))


def test_a_failing_document_counts_as_none() -> None:
    documents = some_documents(6, seed=1)
    model = around(networks.Fails)
    state = model.start(VOCABULARY, np.random.default_rng(0))
    row = np.asarray(documents.counts[[2]].todense())
    row[0, 0] = 3
    failing = type(documents)(np.vstack([np.asarray(documents.counts.todense()), row]), documents.vocabulary)
    sums = []
    for some in (failing, failing.select(np.arange(6))):
        clipped_sum = sum_of(model.query(state), some, radius=1.0)
        sums.append(clipped_sum.vector())
    np.testing.assert_array_equal(sums[0], sums[1])


def test_a_network_that_answers_otherwise_the_second_time_keeps_within_the_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_module, "_ROOM", 0)  # so that no gradient is kept, and each is computed twice
    model = around(networks.GrowsLouder)
    state = model.start(VOCABULARY, np.random.default_rng(0))
    clipped_sum = ClippedRowSum(model.query(state).terms, radius=1.0)
    networks.SEEN.clear()
    model.query(state).answer(some_documents(1, seed=1), clipped_sum, {}, np.random.default_rng(0))
    assert np.linalg.norm(clipped_sum.vector()) <= 1.0


def test_a_clipped_row_in_single_precision_keeps_within_the_clip() -> None:
    model = around(networks.SmallNetwork, dtype="float32")
    state = model.start(VOCABULARY, np.random.default_rng(0))
    for seed in range(40):
        clipped_sum = sum_of(model.query(state), some_documents(1, seed=seed), radius=0.1)
        assert np.linalg.norm(clipped_sum.vector()) <= 0.1 * (1 + 1e-15)


def test_it_learns_and_is_kept(tmp_path: Path) -> None:
    documents = some_documents(14, seed=5)
    model = TorchModule(**PRECISE, learning_rate=0.02).fit(documents, epochs=15)
    history = model.learned.history
    assert history[-1].loss < history[0].loss
    model.save(tmp_path / "model.safetensors")
    again = TorchModule.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.transform(documents), model.transform(documents))


def _saved(folder: str) -> None:
    sys.path.insert(0, folder)
    made = TorchModule(module="their_network:SmallNetwork", n_topics=2)
    made.fit(Corpus.from_strings(["cats sleep", "dogs run"]), epochs=1).save(f"{folder}/model.safetensors")


def _loaded(folder: str) -> None:
    sys.path.insert(0, folder)
    with pytest.raises(Mistake, match="makes securetm import code"):
        securetm.load(f"{folder}/model.safetensors")
    assert "their_network" not in sys.modules
    importlib.import_module("their_network")
    assert securetm.load(f"{folder}/model.safetensors").model.module == "their_network:SmallNetwork"


def test_a_model_file_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "their_network.py").write_text(Path(networks.__file__).read_text())
    assert ended(_saved, str(tmp_path)) == 0
    assert ended(_loaded, str(tmp_path)) == 0
    with pytest.raises(Mistake, match="no file of a run or model makes securetm import code"):
        TorchModule.load(tmp_path / "model.safetensors")
