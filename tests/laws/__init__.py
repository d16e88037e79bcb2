"""The contracts as test suites: whoever writes a new part subclasses the suite of its kind, and passes it."""

import pytest

pytest.register_assert_rewrite(
    "tests.laws.query_laws", "tests.laws.mechanism_laws", "tests.laws.aggregation_laws", "tests.laws.model_laws"
)
