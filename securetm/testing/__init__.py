"""The laws that every part must keep, as test suites for pytest: subclass the suite of its kind and give the part.

    class TestMyModel(ModelLaws):
        @pytest.fixture
        def model(self):
            return MyModel(n_topics=3)

pytest is needed here and nowhere else in securetm.
"""

from securetm.errors import Mistake

try:
    import pytest
except ModuleNotFoundError as missing:
    raise Mistake("securetm.testing needs pytest, which is not installed", hint="pip install pytest") from missing

_SUITES = ("aggregation", "attack", "engine", "mechanism", "model", "neighbour", "query", "reader")
pytest.register_assert_rewrite(*(f"{__name__}.{suite}_laws" for suite in _SUITES))  # before they are imported

from securetm.testing.aggregation_laws import AggregationLaws  # noqa: E402
from securetm.testing.attack_laws import AttackLaws  # noqa: E402
from securetm.testing.engine_laws import EngineLaws  # noqa: E402
from securetm.testing.few_documents import FewDocuments, some_documents  # noqa: E402
from securetm.testing.mechanism_laws import MechanismLaws  # noqa: E402
from securetm.testing.model_laws import ModelLaws  # noqa: E402
from securetm.testing.neighbour_laws import NeighbourLaws  # noqa: E402
from securetm.testing.query_laws import QueryLaws  # noqa: E402
from securetm.testing.reader_laws import ReaderLaws  # noqa: E402

__all__ = [
    "AggregationLaws",
    "AttackLaws",
    "EngineLaws",
    "FewDocuments",
    "MechanismLaws",
    "ModelLaws",
    "NeighbourLaws",
    "QueryLaws",
    "ReaderLaws",
    "some_documents",
]
