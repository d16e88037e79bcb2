"""A page for each paper whose experiments were repeated, and its pictures, from the committed results.

They are committed, and a test compares them: python -m docs.generate.paper_pages
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.generate.folder_pages import ASSETS, ROOT
from docs.generate.markdown import listed, page, table
from lab.measuring import RESULTS, committed
from lab.papers.fednmf_clients import CORPORA
from lab.papers.pictures import figures_of, svg
from lab.papers.written import in_file_name
from lab.research_corpora import FILE, SOURCES
from lab.shown import cell

Row = Mapping[str, Any]
_NAMED = {  # columns of tables
    "amwmd": "AMWMD",
    "asked": "rounds",
    "dss_per_pair": "DSS of a pair",
    "f1": "macro F1",
    "npmi": "NPMI",
    "tss": "TSS",
    "we_coherence": "coherence by word vectors",
}
_RESULTS = "../../lab/results/papers"  # from the pages


def names() -> list[str]:
    """The papers with a committed result of medium scale."""
    return sorted(path.stem.removesuffix("-medium") for path in (RESULTS / "papers").glob("*-medium.json"))


def paper_pages() -> dict[Path, str]:
    """Every page and every picture, by its file."""
    found = {}
    for name in names():
        result = committed(f"papers-{name}-medium")
        found[ROOT / "docs" / "research" / f"paper-{name}.md"] = _page(result)
        for figure, plots in figures_of(result).items():
            file = f"{_picture(name, figure)}.svg"
            found[ASSETS / file] = svg(figure, plots)
            found[ASSETS / "narrow" / file] = svg(figure, plots, across=1)
    return found


def _picture(name: str, figure: str) -> str:
    return f"paper-{name}-{in_file_name(figure)}"


def _page(result: Row) -> str:
    name = result["reproduction"]
    rows = f"Marks are means, lines their intervals (95 %; one repetition has none). [All rows]({_RESULTS}/{name}-medium.csv)."
    return page(
        "---\nhide:\n  - toc\n---",
        "<!-- Made by `python -m docs.generate.paper_pages`: change that file, and not this one. -->",
        f"# {result['paper']}",
        result["about"],
        "## Claim by claim",
        '<div class="claims" markdown>',
        table(("claim", "their figure", "ours", "verdict", "why"), map(_claim, result["claims"])),
        "</div>",
        *(
            part
            for figure in figures_of(result)
            for part in (f"## {figure}", f"<!-- picture: {_picture(name, figure)}.svg -->", _titles(result, figure), rows)
        ),
        "## Figures in numbers",
        "Means over repetitions, with half of their intervals (95 %, Student's t).",
        *(part for title, rows in result["tables"].items() for part in (f"### {title}", _table(rows))),
        "## How it was made",
        f"`{result['command']}` makes it again in a clone; `--data DIR` says where the corpora lie. It goes on where it was "
        f"stopped. Some rows alone: `{result['command_of_some']}`, by any column of a case. `--write DIR` writes the result as "
        f"JSON and CSV and each figure as SVG and PNG. All cases one after the other took {_time(result['case_seconds'])} here "
        f"({result['workers']} at a time, on a machine that had other work); {result['machine']}, securetm "
        f"{result['version']}; seeds {', '.join(map(str, result['seeds']))}. "
        f"[The rows]({_RESULTS}/{name}-medium.csv), [the whole result]({_RESULTS}/{name}-medium.json).",
        _reductions(result),
        table(list(result["corpora"][0]), (list(map(cell, row.values())) for row in result["corpora"])),
        _sources(result),
    )


def _claim(claim: Row) -> tuple[str, ...]:
    return claim["claim"], claim["theirs"], claim["ours"], f"**{claim['verdict']}**", claim["why"]


def _titles(result: Row, figure: str) -> str:
    plots = figures_of(dict(result))[figure]
    return listed(f"**{plot['title']}**: {plot['y']}, by {plot['x']}." for plot in plots)


def _table(rows: list[Row]) -> str:
    """A mean and its interval stand in one cell."""
    columns = [column for column in rows[0] if not column.endswith("_away")]
    return table(
        [_NAMED.get(column, column.replace("_", " ")) for column in columns], (list(_cells(row, columns)) for row in rows)
    )


def _cells(row: Row, columns: list[str]) -> Iterator[str]:
    for column in columns:
        value, away = row.get(column), row.get(f"{column}_away")
        digits = 3 if away is None or abs(value) < 1 else 2 if abs(value) < 100 else 1
        counted = away == 0 and float(value).is_integer()  # rounds, which are the same in every repetition
        yield (
            cell(value)
            if away is None or counted
            else f"{value:,.{digits}f}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{away:.{digits}f}"
        )


def _sources(result: Row) -> str:
    """Where the research corpora are to be had."""
    used = [row["corpus"] for row in result["corpora"]]
    files = [file for name, file in {"20 Newsgroups": FILE, **CORPORA}.items() if any(one.startswith(name) for one in used)]
    named = listed(
        f"`{file}`: {SOURCES[file].origin}; {SOURCES[file].documents:,} documents, SHA-256 `{SOURCES[file].sha256}`."
        for file in files
    )
    return f"`DIR` holds, with one JSON object of `text` and `label` a line:\n\n{named}" if files else ""


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"


def _reductions(result: Row) -> str:
    smaller = listed(result["reductions"])
    return f"Smaller than in the paper:\n\n{smaller}" if smaller else "Nothing is smaller than in the paper."


if __name__ == "__main__":
    for file, text in paper_pages().items():
        file.write_text(text, "utf-8")
