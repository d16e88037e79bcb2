"""What the page of topics shows, as plain records. This module reads no file and writes no page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from securetm.contracts import Array
from securetm.federation.topics_by_date import TopicsByDate


@dataclass(frozen=True)
class TopicDocument:
    """A document that takes much of a topic. Its text was dropped after tokenising."""

    number: int  # in the order in which they were read, from 1
    share: float  # of the document that the topic takes
    words: str  # the agreed words of it, in reading order where it is known; else the commonest first
    label: str = ""
    date: str = ""


@dataclass(frozen=True)
class DocumentsBehind:
    """The strongest documents of each topic, at one party."""

    whose: str
    shares: Array  # of each topic in all of these documents
    in_order: bool  # whether words are in reading order
    topics: tuple[tuple[TopicDocument, ...], ...]


@dataclass(frozen=True)
class ShownTopics:
    """Everything that the page shows of a run. What is None is not known here, and the page leaves it out."""

    title: str
    facts: tuple[tuple[str, str], ...]  # name and value, for the head of the page
    topics: Array  # topics x words, rows sum to one
    vocabulary: tuple[str, ...]
    judged: str = ""  # whether the model is of use, in a sentence
    of_use: bool = True
    danger: str = ""
    shares: Array | None = None  # of each topic in all documents
    shares_of: str = ""  # whose documents these are
    by_party: Mapping[str, Array] = field(default_factory=dict)
    above_noise: Array | None = None  # topics x words: whether a word stands above the noise in a topic; None: not tested
    noised: bool = False  # whether noise was added for a privacy budget
    labels: Mapping[int, str] = field(default_factory=dict)
    behind: DocumentsBehind | None = None
    over_time: TopicsByDate | None = None
    over_time_of: str = "all parties"  # whose documents those are
    secret: bool = False  # the model itself is for its owner alone

    @property
    def measured(self) -> bool:
        """Whether anything here was measured on documents, and so does not follow from the model."""
        return bool(self.judged) or any(one is not None for one in (self.shares, self.over_time, self.behind))
