"""What a document says stays the same however its letters are written: capital or small, composed or not."""

from __future__ import annotations

import sys
import unicodedata

from securetm.corpus.document_names import text_digest

FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def _written_otherwise(letter: str) -> set[str]:
    capital = letter.upper()
    cases = (capital, letter.lower(), letter.title(), letter.casefold(), capital.lower())
    return {*cases, *(unicodedata.normalize(form, one) for form in FORMS for one in (letter, capital))}


def test_no_letter_makes_a_new_document_by_its_case_or_its_form() -> None:
    """All letters with a case, and those of which forms differ; one text each is enough, since a digest is of the whole."""
    every = map(chr, range(sys.maxunicode + 1))
    letters = [letter for letter in every if unicodedata.category(letter) not in ("Cn", "Co", "Cs")]  # no letter yet
    moved = [letter for letter in letters if _written_otherwise(letter) != {letter}]
    assert len(moved) > 10_000
    split = [one for one in moved if len({text_digest(f"a{other}b") for other in {one, *_written_otherwise(one)}}) > 1]
    assert split == []


def test_other_letters_are_another_document() -> None:
    assert len({text_digest(text) for text in ("one text", "one tent", "onetext", "one text text", "öne text", "")}) == 6
