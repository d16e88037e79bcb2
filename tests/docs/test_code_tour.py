"""The tour names places in the code. Each of them exists."""

from __future__ import annotations

import importlib
import re

import pytest

from docs.generate.folder_pages import ROOT

PLACES = re.findall(r"`([a-z_/]+)\.py`: `([\w.]+)`", (ROOT / "docs" / "code-tour.md").read_text("utf-8"))


def test_the_tour_has_three_ways() -> None:
    assert len(PLACES) > 20


@pytest.mark.parametrize(("module", "name"), PLACES)
def test_each_place_exists(module: str, name: str) -> None:
    found: object = importlib.import_module("securetm." + module.replace("/", "."))
    for part in name.split("."):
        found = getattr(found, part)
