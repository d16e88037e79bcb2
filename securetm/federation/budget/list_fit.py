"""How many words of a language's public list can be expected to occur. It reads no document: only how many there are.

The number stands for documents of general language. What the real documents hold is theirs to keep.
"""

from __future__ import annotations

from dataclasses import replace

from securetm.corpus.public_words import USUAL_LENGTH, ExpectedWords, expected, public_shares
from securetm.errors import BadSetting
from securetm.plans.schema import TokeniserChoice, VocabularyChoice
from securetm.wording import counted


def expected_words(
    choice: VocabularyChoice, tokeniser: TokeniserChoice, documents: int, length: float = USUAL_LENGTH
) -> ExpectedWords | None:
    """Returns what can be expected of a language's list; None where the list is no language's."""
    code, made = choice.language, tokeniser.make()
    listed = choice.public_words(made) if code else None
    if code is None or listed is None:
        return None
    return expected(public_shares(listed, code, made), documents, length, choice.min_documents)


def in_words(found: ExpectedWords, language: str) -> str:
    """Returns the sentence that the user reads before anything is spent."""
    occur, often = round(found.occurring), round(found.frequent)
    return (
        f"Of {found.listed:,} frequent words of the language {language}, {occur:,} can be expected in {found.documents:,} "
        f"documents of {found.length:g} words on any subject, {often:,} of them in {counted(found.least, 'document')} or more; "
        "documents on one subject have fewer."
    )


def asked_about(language: str, words: int, documents: int | None, length: float) -> tuple[ExpectedWords, str]:
    """Returns what the calculator says of a language's list: the numbers, and the sentence."""
    where, usual = "securetm budget profile", VocabularyChoice()
    choice = replace(usual, source="file", file=language, max_words=words)
    if choice.language is None:
        raise BadSetting(where, "--vocabulary", language, "is no language of which there is a list (english, german, de)")
    if documents is None:
        raise BadSetting(where, "--vocabulary", language, "needs the number of documents of all parties (--documents N)")
    if length <= 0:
        raise BadSetting(where, "--document-length", f"{length:g}", "must be above 0")
    found = expected_words(choice, TokeniserChoice(), documents, length)
    assert found is not None
    return found, in_words(found, language)
