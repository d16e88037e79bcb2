"""A compiled kernel is thrown away where anything is another one that it is made of, and stays where nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from . import kernel_cache
from .kernel_cache import VARIABLE, digests
from .source_trees import PACKAGE, files, source


def test_what_was_compiled_of_an_older_source_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(kernel_cache, "FOLDER", tmp_path)
    monkeypatch.setattr(kernel_cache, "RECORD", tmp_path / "sources.json")
    (tmp_path / "sources.json").write_text(json.dumps({**digests(), "securetm/models/nmf.py": "older"}), "utf-8")
    for name in ("nmf.solve-50.py311.nbi", "nmf.solve-50.py311.1.nbc", "lda_vi.settle-62.py311.nbi"):
        (tmp_path / name).touch()
    kernel_cache.use()
    assert {path.name for path in tmp_path.iterdir()} == {"sources.json", "lda_vi.settle-62.py311.nbi"}
    assert json.loads((tmp_path / "sources.json").read_text("utf-8")) == digests()


def test_a_kernel_is_made_of_those_that_it_calls() -> None:
    kernels = {path for path in files() if b"securetm.compiled import" in source(path)}
    nmf, products = PACKAGE / "models" / "nmf.py", PACKAGE / "models" / "fixed_order.py"
    assert products in kernel_cache._closure(nmf, kernels)
    assert nmf not in kernel_cache._closure(products, kernels)
