"""What people are told when something is wrong is as it was read when it changed last."""

from __future__ import annotations

from .sentences import LIST, sentences


def test_every_sentence_is_in_the_list_that_was_read() -> None:
    now, read = set(sentences().splitlines()), set(LIST.read_text("utf-8").splitlines())
    changed = [*(f"+ {one}" for one in sorted(now - read)), *(f"- {one}" for one in sorted(read - now))]
    assert not changed, "read these, then run `python -m tests.sentences`:\n" + "\n".join(changed)
