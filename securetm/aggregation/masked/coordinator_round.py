"""The coordinator's half of one masked round: one running sum, and the masks to take off it. It keeps no vector.

What it learns is the sum over the survivors. A secret that does not fit its commitment is a named error, never a wrong sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.coordinator_setup import hashes_of
from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.masked_errors import (
    AnotherVector,
    FalseSecret,
    FalseShare,
    OutOfStep,
    PrekeyReused,
)
from securetm.aggregation.masked.messages import (
    HEADER_SIZE,
    QUESTION_SIZE,
    SHORT,
    Header,
    Kind,
    Outcome,
    Place,
    longest_in_round,
    read_header,
    read_place,
    read_share,
    ring_type,
    vector_hash,
)
from securetm.aggregation.masked.party_round import Quorum, consent_body, pair_seed, self_seed
from securetm.aggregation.masked.shares import MASK_KEY, SEED, seed_commitment, share_hash
from securetm.aggregation.masked.stored_setups import CoordinatorMemory, Policy
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import PART, Answer, Message, Parcel, Terms
from securetm.errors import BadVector, Malformed, TooFewParties
from securetm.sessions.exchanges import CoordinatorExchange
from securetm.sessions.framing import Reader, head, places_bytes
from securetm.sessions.identities import KEY, SIGNATURE, PinnedRoster
from securetm.sessions.labels import Label
from securetm.sessions.sealing import public_key, shared_secret

STREAMS = 256  # keystreams at a time, so that what is open does not grow with the number of parties


class MaskedCoordinatorRound(CoordinatorExchange):
    """Run by the coordinator."""

    def __init__(
        self, register: PinnedRoster, policy: Policy, memory: CoordinatorMemory, quorum: Quorum, tag: bytes, terms: Terms
    ) -> None:
        super().__init__(register)
        self._policy, self._memory, self._quorum, self._terms = policy, memory, quorum, terms
        self._relayed = memory.relayed
        self._at = Place(self._relayed.epoch, tag, memory.index(tag))
        self._sum = np.zeros(terms.size, ring_type(terms))
        self._masked: dict[int, Header] = {}
        self._hellos: set[int] = set()
        self._behind: set[int] = set()
        self._revealed: dict[str, tuple[bytes, ...]] = {}  # by party: its noise that the sum does not need
        self._further: list[int] = []  # prekeys of parties that are beyond this role's
        self.ask(quorum.active, self._take_first, self._end_of_masking)

    # ---- masked vectors ----------------------------------------------------------------------------------------------

    def _take_first(self, place: int, sender: str, message: Message) -> None:
        if Reader(message, sender, Kind.MASKED, Kind.HELLO).kind == Kind.HELLO:
            self._take_hello(place, sender, message)
        else:
            self._take_masked(place, sender, message)

    def _take_hello(self, place: int, sender: str, message: Message) -> None:
        reader = self.signed(place, sender, message, Label.QUESTION, Kind.HELLO, QUESTION_SIZE)
        read_place(reader).check(self._at.epoch, self._at.tag)
        reader.end()
        self._hellos.add(place)

    def _take_masked(self, place: int, sender: str, message: Message) -> None:
        header, signed = read_header(message, sender), bytes(message[:HEADER_SIZE])
        if header.sender != place:
            raise Malformed(sender, "it names another sender")
        header.at.check(self._at.epoch, self._at.tag)
        self._register.opened(place, sender, signed, Label.VECTOR)
        if len(message) != HEADER_SIZE + self._sum.nbytes:
            expected = f"where its terms give {self._sum.nbytes}"
            raise BadVector(sender, f"has {len(message) - HEADER_SIZE} bytes {expected}")
        if vector_hash(memoryview(message)[HEADER_SIZE:]) != header.vector:
            raise AnotherVector(sender)
        if self._in_step(place, sender, header, signed) and self._quorum.only.counts(sender):
            self._sum += np.frombuffer(message, self._sum.dtype.newbyteorder("<"), offset=HEADER_SIZE)
            self._masked[place] = header
            self._memory.headers.setdefault(header.at.index, {})[place] = signed

    def _in_step(self, place: int, sender: str, header: Header, signed: bytes) -> bool:
        """Whether the party is at this round's prekey. A party that fell behind is left out once and told the others' index."""
        if self._memory.headers.get(header.at.index, {}).get(place, signed) != signed:
            self._behind.add(place)
            raise PrekeyReused(sender, header.at.index)
        if header.at.index > self._at.index:
            self._further.append(header.at.index)
            raise OutOfStep(sender, header.at.index, self._at.index)
        if header.at.index < self._at.index:
            self._behind.add(place)
        return header.at.index == self._at.index

    def _end_of_masking(self, came: Mapping[int, None]) -> Sequence[Parcel]:
        waiting, self._hellos = self._hellos, set()
        if waiting:  # they masked nothing yet, so they may still take part
            self.ask(waiting, self._take_masked, self._end_of_masking)
            return [self._advance(place, self._at.index) for place in sorted(waiting)]
        if len(self._masked) < self._quorum.need:
            self._catch_up()
            raise TooFewParties(len(self._masked), len(self._quorum.active), self._quorum.need)
        survivors = tuple(sorted(self._masked))
        self._quorum.only.settle([self._register.name(place) for place in survivors])
        self._memory.keep_headers(self._at.index)
        self._outcome = Outcome(self._at, survivors, tuple(p for p in self._quorum.active if p not in survivors))
        behind = [self._advance(place, self._at.index + 1) for place in sorted(self._behind)]
        if not self._policy.consistency:
            return [*behind, *self._ask_to_unmask({})]
        self.ask(survivors, self._take_consent, self._ask_to_unmask, self._quorum.need)
        return [*behind, *self.to(dict.fromkeys(survivors, self._outcome.body(Kind.SURVIVORS)))]

    def _advance(self, place: int, index: int) -> Parcel:
        """Tells a party the others' index and shows the last header it signed. If it does not know that, its memory is old."""
        at, headers = Place(self._at.epoch, self._at.tag, index), self._memory.headers
        latest = max((known for known, signed in headers.items() if place in signed), default=None)
        proof = b"" if latest is None else headers[latest][place]
        return self._register.name(place), head(Kind.ADVANCE) + at.body() + proof

    def _catch_up(self) -> None:
        """If enough parties are at a later index, this role's own memory is old, and it takes their index."""
        for index, parties in Counter(self._further).items():
            if parties >= self._quorum.need and index < self._relayed.rounds:
                self._memory.go_to(index, self._at.tag)

    # ---- survivors ---------------------------------------------------------------------------------------------------

    def _take_consent(self, place: int, sender: str, message: Message) -> bytes:
        if message[:-SIGNATURE] != consent_body(place, self._outcome):
            raise Malformed(sender, "it is no signature under these survivors")
        self._register.opened(place, sender, bytes(message), Label.CONSENT)
        return bytes(message[-SIGNATURE:])

    def _ask_to_unmask(self, signatures: Mapping[int, bytes]) -> Sequence[Parcel]:
        asked = tuple(signatures) or self._outcome.survivors
        self.ask(asked, self._take_unmasked, self._open, self._relayed.threshold)
        message = self._outcome.body(Kind.UNMASK) + places_bytes(tuple(signatures)) + b"".join(signatures.values())
        return self.to(dict.fromkeys(asked, message))

    # ---- opening -----------------------------------------------------------------------------------------------------

    def _take_unmasked(self, place: int, sender: str, message: Message) -> dict[int, int]:
        longest, _ = longest_in_round(len(self._register))
        unneeded = self._terms.unneeded(len(self._outcome.survivors))
        reader = self.signed(place, sender, message, Label.UNMASKED, Kind.UNMASKED, longest + PART * len(unneeded))
        if read_place(reader) != self._at:
            raise Malformed(sender, "it answers something else")
        dealers = sorted((*self._relayed.neighbours[place], place))
        shares = {dealer: read_share(reader) for dealer in dealers if dealer in self._quorum.active}
        revealed = tuple(reader.take(PART) for _ in unneeded)
        reader.end()
        self._revealed[sender] = revealed
        return shares

    def _open(self, shares: Mapping[int, Mapping[int, int]]) -> Sequence[Parcel]:
        self._shares = shares
        masks = self._masks()
        while some := list(islice(masks, STREAMS)):
            apply_masks(self._sum, some)
        self._shares = {}
        whole = self._sum.view(np.dtype(f"i{self._sum.itemsize}")).astype(np.int64, copy=False)
        self._sum = self._sum[:0]  # the opened total is what is left of the round
        names = tuple(map(self._register.name, self._outcome.survivors))
        self._answer = Answer(blocks_of(whole, self._terms), {}, names, revealed=self._revealed)
        return ()

    def _masks(self) -> Iterator[Mask]:
        """The masks left in the sum: each survivor's own, and those between survivors and dropped parties."""
        secrets = {place: self._secret(place) for place in self._quorum.active}
        for place, header in self._masked.items():
            yield self_seed(secrets[place], self._at, place, header.salt), False
        for gone in self._outcome.dropped:
            for place in self._relayed.partners[gone]:
                if place in self._masked:
                    public = self._relayed.mask_keys[place][self._at.index]
                    secret = shared_secret(secrets[gone], public, self._register.name(place))
                    yield pair_seed(secret, self._at, place, gone), place > gone  # the smaller place had added it

    def _secret(self, owner: int) -> bytes:
        """A survivor's seed or a dropped party's mask key of this round, checked against what its owner signed."""
        need = self._relayed.threshold
        holders = [place for place, shares in self._shares.items() if owner in shares][:need]
        if len(holders) < need:
            raise TooFewParties(len(holders), len(self._relayed.neighbours[owner]) + 1, need)
        points, shares = tuple(place + 1 for place in holders), [self._shares[place][owner] for place in holders]
        found = shamir.combine(points, shares)
        if found >= 2 ** (8 * KEY) or not self._fits(owner, found.to_bytes(KEY, "big")):
            raise self._blame(owner, holders)
        return found.to_bytes(KEY, "big")

    def _fits(self, owner: int, secret: bytes) -> bool:
        relayed, index = self._relayed, self._at.index
        if owner in self._masked:
            return relayed.commitments[owner][index] == seed_commitment(self._register, owner, index, secret)
        return relayed.mask_keys[owner][index] == public_key(secret)

    def _blame(self, owner: int, holders: Sequence[int]) -> FalseShare | FalseSecret:
        """Names the holder of the first share that differs from what was dealt. If none differs, the dealer lied."""
        setup, number = self._relayed.setup, 2 * self._at.index + (SEED if owner in self._masked else MASK_KEY)
        dealt = hashes_of(self._memory.store, setup, owner)
        for holder in holders:
            share = self._shares[holder][owner].to_bytes(shamir.SHARE, "big")
            told = dealt.get(holder, b"")[number * SHORT : (number + 1) * SHORT]
            if told != share_hash(setup, owner, holder, number, share):
                return FalseShare(self._register.name(holder), self._register.name(owner))
        return FalseSecret(self._register.name(owner))
