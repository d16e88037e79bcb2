"""Words of topics with a mark where they do not stand above the noise, and the sentence that says so. It tests nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

MARK = "?"
UNSURE = "not above the noise"  # what the mark means, where it is read aloud
NOT_TESTED = "Which words stand above the noise is not tested here: that needs the noised counts of words in topics."

Marks = Sequence[Sequence[bool]]


def with_marks(words: Sequence[str], above: Sequence[bool] | None) -> str:
    """Words in rich's markup; those that do not stand above the noise are dim and have a question mark."""
    if above is None:
        return escape(" ".join(words))
    return " ".join(
        escape(word) if stands else f"[dim]{escape(word)}{MARK}[/dim]" for word, stands in zip(words, above, strict=False)
    )


def meaning() -> str:
    """What it means that a word stands above the noise."""
    from securetm.models.false_discoveries import RATE

    return (
        "Above the noise: without noise, the topic has the word more often than the totals of topic and word say. Of all words "
        f"said to stand above it, {RATE:.0%} at most are expected not to. This is about this training: another one may find "
        "other topics."
    )


def noise_said(above: Marks | None, noised: bool) -> str:
    """What the marks of a table mean; nothing where no noise was added."""
    if above is None:
        return NOT_TESTED if noised else ""
    shown = sum(map(len, above))
    return f"{sum(map(sum, above))} of {shown} words stand above the noise; those with a question mark do not. {meaning()}"
