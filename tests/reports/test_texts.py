"""What a fact holds can be no mark of a template, and what is not there is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, UndefinedError

from securetm.reports import texts
from securetm.reports.document import Items, Paragraph, Section, Table, Words
from securetm.reports.texts import blocks, said, sections

HOSTILE = "## a\n- b | **c** [d](danger) {strong} <e> {{ 1 + 1 }} 'f' \ue07c"
KEPT = HOSTILE.replace("\ue07c", "\\ue07c")  # else it would be read as a mark
TEMPLATE = """\
{% macro every(fact) %}
## Title of {{ fact }} {folded}
{danger} {{ fact }}
[{{ fact }}](danger) and
  **{{ fact }}**
{list} {{ fact }}
- {{ fact }}
|: title={{ fact }}; whole=0
| head | {{ fact }} |
| {{ fact }} | {{ "it's | so" }} |
{% endmacro %}
{% macro missing(fact) %}
{{ fact.nothing }}
{% endmacro %}
"""


@pytest.fixture(autouse=True)
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with one template in the place of the package's own."""
    (tmp_path / "test.txt").write_text(TEMPLATE, encoding="utf-8")
    monkeypatch.setattr(texts, "_HERE", tmp_path)
    own: Environment = texts._environment.__wrapped__()
    monkeypatch.setattr(texts, "_environment", lambda: own)


def test_a_fact_is_never_markup_wherever_it_stands() -> None:
    (found,) = sections("test.every", HOSTILE)
    assert found == Section(
        f"Title of {KEPT}",
        (
            Paragraph(KEPT, "danger"),
            Paragraph((Words(KEPT, "danger"), " and ", Words(KEPT, "strong"))),
            Items((KEPT,), KEPT),
            Table(("head", KEPT), ((KEPT, "it's | so"),), title=KEPT, whole=(0,)),
        ),
        folded=True,
    )


def test_what_is_not_there_is_refused_and_not_left_out() -> None:
    with pytest.raises(UndefinedError, match="nothing"):
        said("test.missing", {})
    with pytest.raises(AttributeError):
        blocks("test.unknown")
