"""The types that every part shares: terms of a vector, cohorts, answers and claims. They decide nothing.

Mechanisms and aggregations pass `Terms` on, so that no privacy number is written twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = Any  # an Array or a scipy sparse matrix, one row per item; scipy ships no types
State = Mapping[str, Array]  # all that a model knows, by name: plain arrays, so it is stored and sent without pickle
Memory = dict[str, Array]  # what a party remembers between rounds (topic assignments, NMF's H); it never leaves the party
INF = float("inf")
PART = 64  # bytes that reveal one part of a party's noise: its seed, and the hash of what was drawn from it


class Domain(Enum):
    REAL = "real"
    INTEGER = "integer"


class Unit(Enum):
    """Whose presence a bound or a guarantee is about. Each row of the sum belongs to one of these."""

    WORD = "word"
    SENTENCE = "sentence"
    DOCUMENT = "document"
    PERSON = "person"
    PARTY = "party"

    @property
    def whole_documents(self) -> bool:
        """Whether protecting one unit protects at least one whole document."""
        return self not in (Unit.WORD, Unit.SENTENCE)


class Noised(Enum):
    NOT = "not"
    SHARE = "share"  # a share of distributed noise: only the sum over enough parties is private
    WHOLE = "whole"


class Needs(Enum):
    SUM = "sum"
    EACH = "each"  # every party's own vector (iFTM's matching, a union of vocabularies): no secure sum admits it


@dataclass(frozen=True)
class Block:
    """One named array inside a vector. In ragged terms its shape is an upper bound."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Terms:
    """What is publicly promised about a vector before any document is read."""

    layout: tuple[Block, ...]
    needs: Needs = Needs.SUM
    ragged: bool = False  # parties may send smaller first dimensions; only where the query needs each
    data_only: bool = False  # does not depend on the model's state, so it is answered once per corpus
    names_words: bool = False  # the vector names words that only parties know, and these words are private
    counts_words: bool = False  # rows of words in public cells, with noise of their own and not that of the training
    multiplier: float = 0.0  # noise multiplier of this question; 0: that of the mechanism that adds the noise
    part: float = 1.0  # of the budget of its kind that this question spends: the noise is 1 / sqrt(part) times as large
    batch: int = 0  # documents each party is asked to draw for it; 0: all of them
    domain: Domain = Domain.REAL
    bits: int = 32  # width of one value on the wire
    grid: float = 0.0  # step of the integer grid behind a REAL vector; 0: not on a grid
    unit: Unit = Unit.DOCUMENT
    sampling: float = 1.0  # probability that a unit takes part, secret and independent; 1: no amplification
    reach: float = INF  # largest absolute value of a coordinate of one party's vector; larger values are clamped
    noised: Noised = Noised.NOT
    deviation: float = 0.0  # standard deviation of the noise already in every coordinate
    surplus: tuple[int, ...] = ()  # parts of that noise which a sum over so many parties or more does not need
    l1: float = INF  # bounds on one unit's row, and so on the sum's sensitivity (add or remove one)
    l2: float = INF
    linf: float = INF

    @property
    def size(self) -> int:
        """Coordinates of the flat vector (the most there can be, if ragged)."""
        return sum(int(np.prod(block.shape)) for block in self.layout)

    @property
    def at_once(self) -> bool:
        """Whether a party needs all its documents at once: its row is not a sum over them."""
        return (self.unit is Unit.PARTY or self.ragged) and not self.names_words

    def unneeded(self, survivors: int) -> tuple[int, ...]:
        """The parts of the noise, by their place in `surplus`, that a sum over so many parties does not need."""
        return tuple(part for part, parties in enumerate(self.surplus) if survivors >= parties)


@dataclass(frozen=True)
class Least:
    """What a sum must hold at least before any party helps to open it, beyond what the profile demands."""

    parties: int = 0
    documents: int = 0  # as the roster announces them


@dataclass(frozen=True)
class Cohort:
    """The public facts of one round."""

    round_id: bytes  # binds session, number, question, terms and profile hash
    number: int  # how often this question was asked before in the session
    members: tuple[str, ...]
    threshold: int = 1
    colluding: int = 0
    seed: int = 0  # public: for batches and model noise, never for privacy
    question: bytes = b""  # its name, equal in every session: a party opens it for one list of survivors only
    identities: tuple[bytes, ...] = ()  # the members' public keys, in their order: a name may pass to another organisation
    least: Least = Least()  # of its sum; every party of the round enforces it

    @property
    def fewest(self) -> int:
        """The fewest survivors over whom a party opens the sum, whatever the aggregation needs besides."""
        return max(self.threshold, self.least.parties)

    @property
    def who(self) -> tuple[str, ...]:
        """Each member as its name and its public key, by which it is the same organisation as before."""
        keys = self.identities or (b"",) * len(self.members)
        return tuple(f"{member} {key.hex()}" for member, key in zip(self.members, keys, strict=True))


@dataclass(frozen=True)
class Roster:
    """Who may take part in a session: every role holds the same, and joins under no other."""

    session: bytes  # 32 bytes, chosen for this session
    profile: bytes  # hash of the profile
    members: tuple[str, ...]
    keys: Mapping[str, bytes] = field(default_factory=dict)  # each member's pinned Ed25519 public key, 32 raw bytes
    documents: Mapping[str, int] = field(default_factory=dict)  # how many documents each member announced at least


@dataclass(frozen=True)
class Answer:
    """What a round opens, block by block: the sum, or each party's own blocks where the query needs them."""

    total: Mapping[str, Array] | None
    each: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    survivors: tuple[str, ...] = ()
    deviation: float = 0.0  # standard deviation of the noise in every coordinate of the total, from what added it
    words_noised: bool = False  # whether noise took the place of the words of the documents that it is about
    revealed: Mapping[str, Sequence[bytes]] = field(default_factory=dict)  # by party: its noise that the sum does not need


@dataclass(frozen=True)
class Claim:
    """What is promised against whom, with how many parties helping the adversary."""

    what: str
    against: str
    colluding: int = 0
    unit: Unit | None = None
