"""Keys of five parties, made once."""

from __future__ import annotations

import pytest

from ..federation.conftest import corpora, five  # noqa: F401 - fixtures
from .meeting import FIVE, Meeting


@pytest.fixture(scope="session")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Meeting:
    """Five parties and a coordinator."""
    return Meeting.of(FIVE, tmp_path_factory.mktemp("keyring"))


@pytest.fixture
def meeting(keyring: Meeting) -> Meeting:
    """The same, at a port of their own."""
    return keyring.at_another_port()
