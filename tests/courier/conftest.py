"""Keys of five parties, made once."""

from ..federation.conftest import keys  # noqa: F401 - a fixture
