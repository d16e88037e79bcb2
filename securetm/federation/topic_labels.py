"""Labels that people give to topics, in a file beside the model. They are no part of the model, and no run depends on them.

The file is a JSON table: {"labels": {"0": "weather"}}. A topic's number in it is its place in `topics` of `--json`, from 0.
`--json` of `securetm topics` holds the same table, so that its output is such a file too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from securetm.data_classes import dataclass, field
from securetm.errors import BadSetting, Misuse, refused_as
from securetm.extras import msgspec
from securetm.federation.store import write_json


class BadLabels(Misuse):
    """{path} cannot be used as labels of these topics: {problem}"""

    path: str
    problem: str
    hint = (
        'correct the file; it is written {{"labels": {{"0": "weather"}}}}, with topics counted from 0 as in --json, '
        "and `securetm topics RUN --label 1=weather` writes it"
    )


LABELS = "labels.json"
LONGEST = 100  # characters of a label
_MOST_BYTES = 1 << 22
_JOINERS = "\u200c\u200d"  # which some scripts need inside words, though they are not printable


@dataclass(frozen=True)
class TopicLabels:
    """The label of each topic that has one, by the topic's place from 0."""

    texts: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, topics: int) -> Self:
        """Reads such a file, or refuses it: only topics that exist have labels, and a label is one printable line."""
        with refused_as(BadLabels, path):
            whole = path.read_bytes() if path.stat().st_size <= _MOST_BYTES else None
        if whole is None:
            raise BadLabels(str(path), "it is larger than 4 MB")
        try:
            table = msgspec.json.decode(whole.decode("utf-8-sig"), type=dict[str, Any])["labels"]
            texts = msgspec.convert(table, dict[str, str])
        except (ValueError, KeyError, RecursionError) as problem:  # msgspec's own are of ValueError
            raise BadLabels(str(path), f'it is no JSON in UTF-8 with a table "labels" of texts: {problem}') from problem
        labels: dict[int, str] = {}
        for name, text in texts.items():
            if not (name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < topics):
                raise BadLabels(str(path), f"it has a label for topic {name!r}, and the topics are 0 to {topics - 1}")
            labels[int(name)] = text.strip()
            if wrong := _wrong(text.strip()):
                raise BadLabels(str(path), f"the label of topic {name!r} {wrong}")
        return cls(_in_order(labels))

    @classmethod
    def in_folder(cls, folder: Path, topics: int) -> Self:
        return cls.read(folder / LABELS, topics) if (folder / LABELS).exists() else cls()

    @classmethod
    def beside(cls, model: Path, topics: int) -> Self:
        """Reads the labels of a model in a file: those in its folder, or in that of its run; there may be none."""
        near = [folder for folder in list(model.resolve().parents)[:3] if (folder / LABELS).exists()]
        return cls.in_folder(near[0], topics) if near else cls()

    def write(self, folder: Path) -> None:
        """Writes the labels into the folder of a run, whole or not at all. No label leaves no file."""
        if self.texts:
            write_json(folder / LABELS, self.table())
        else:
            (folder / LABELS).unlink(missing_ok=True)

    def table(self) -> dict[str, dict[str, str]]:
        return {"labels": {str(topic): text for topic, text in self.texts.items()}}

    def with_given(self, given: str, topics: int) -> Self:
        """Returns the labels with one more, written as `3=text`, where topics count from 1. Without a text, the label goes."""
        number, equals, text = given.partition("=")
        fine = equals and number.strip().isdecimal() and 1 <= int(number) <= topics
        if not fine:
            instead = "write NUMBER=TEXT, such as --label 3=weather"
            raise BadSetting("", "--label", repr(given), f"must name a topic, 1 to {topics}, and its label", instead=instead)
        if wrong := _wrong(text.strip()):
            raise BadSetting("", "--label", repr(given), wrong)
        return type(self)(_in_order({**self.texts, int(number) - 1: text.strip()}))


def _in_order(texts: Mapping[int, str]) -> dict[int, str]:
    return {topic: texts[topic] for topic in sorted(texts) if texts[topic]}


def _wrong(text: str) -> str:
    if len(text) > LONGEST:
        return f"must have at most {LONGEST} characters, and has {len(text):,}"
    return "" if all(one.isprintable() or one in _JOINERS for one in text) else "must be one line of printable text"
