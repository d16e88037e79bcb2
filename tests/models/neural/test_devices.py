"""Where a neural model computes: on a GPU where there is one, on the CPU elsewhere, and never on a GPU under a budget."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from securetm.errors import Failed
from securetm.models.neural.prodlda import ProdLDA
from securetm.models.trials import RowsDepend, check_rows
from securetm.testing.few_documents import some_documents

DOCUMENTS = some_documents(60, 12, seed=4)


def learned(device: str) -> np.ndarray:
    model = ProdLDA(n_topics=3, hidden=8, batch=20, dtype="float64", device=device)
    return model.fit(DOCUMENTS, epochs=2, seed=1).components_


def test_a_gpu_that_is_not_there_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(Failed, match="device = cuda"):
        learned("cuda")


def test_without_a_gpu_auto_is_the_cpu_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert np.array_equal(learned("auto"), learned("cpu"))
    assert ProdLDA(device="auto").in_fixed_order


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_auto_learns_there_and_no_budget_admits_it() -> None:
    np.testing.assert_allclose(learned("auto"), learned("cpu"), atol=1e-6)
    with pytest.raises(RowsDepend, match="GPU"):
        check_rows(ProdLDA(n_topics=3, hidden=8))
