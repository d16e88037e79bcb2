"""Whose documents a question to the budget calculator is about: options that its commands share, and counts of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from securetm.accounting.calculator.persons import People

Unit = Annotated[
    str,
    typer.Option(help="Who is protected: document or person. The person, if persons or documents per person are given."),
]
EachPerson = Annotated[int | None, typer.Option("--documents-per-person", help="Documents of one person, at most.")]
Persons = Annotated[int | None, typer.Option(help="How many persons the documents are of.")]
Counted = Annotated[Path | None, typer.Option(help="Count documents and persons in this corpus instead; the counts stay here.")]
PersonColumn = Annotated[str | None, typer.Option("--person", help="The column of that corpus with whose document it is.")]


def people_of(
    unit: str, documents: int | None, each: int | None, persons: int | None, corpus: Path | None, column: str | None
) -> People:
    """Whose documents they are, as told or as counted in a corpus."""
    from securetm.accounting.calculator.option_checks import refused
    from securetm.accounting.calculator.persons import People

    given = {"--documents": documents, "--documents-per-person": each, "--persons": persons}
    if corpus is None:
        if column is not None:
            raise refused("--person", column, "names a column, and no corpus is given", "give the file with --corpus")
        return People(unit, documents, each, persons)
    for option, value in given.items():
        if value is not None:
            raise refused(
                option, value, "cannot be given beside --corpus, which is counted", f"leave --corpus or {option} away"
            )
    return _counted(unit, corpus, column)


def _counted(unit: str, corpus: Path, column: str | None) -> People:
    import numpy as np

    from securetm.accounting.calculator.option_checks import refused
    from securetm.accounting.calculator.persons import PERSON, People
    from securetm.corpus.readers import read_corpus

    found = read_corpus(corpus, person=column)
    if len(found) == 0:
        raise refused("--corpus", str(corpus), "holds no document with a word", "give a file with documents, or --documents N")
    if found.persons is None:
        if unit == PERSON:
            problem = "has no column called person, and persons are to be protected"
            raise refused("--corpus", str(corpus), problem, "name the column of whose document it is: --person COLUMN")
        return People(unit, len(found))
    each = np.unique(found.persons, return_counts=True)[1]
    return People(unit, len(found), int(each.max()), len(each), counted=True)


def documents_of(people: People) -> int:
    """How many documents there are; a question that needs them refuses to go on without."""
    from securetm.accounting.calculator.option_checks import refused

    if people.documents is None:
        raise refused("--documents", None, "", "give --documents N, or count them: --corpus FILE")
    return people.documents


def group_of(parties: int | None, threshold: int | None, missing: int | None, colluding: int) -> tuple[int, int, int] | None:
    """Who adds the noise in shares, as parties, how many must remain and how many may help; nothing where nobody says it."""
    from securetm.accounting.calculator.option_checks import check, refused, remaining

    if parties is None:
        for option, value in {"--threshold": threshold, "--missing": missing, "--colluding": colluding or None}.items():
            if value is not None:
                raise refused(option, value, "is about parties, and their number is not given", "give --parties N")
        return None
    check("--parties", parties)
    return parties, remaining(parties, threshold, missing), colluding
