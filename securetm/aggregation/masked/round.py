"""One masked round, both halves.

A party masks its vector, and answers once for one list of survivors. It assumes that the coordinator lies, and sends nothing
that opens more than the sum over enough parties. The coordinator keeps one running sum and no vector, and takes the masks off
it. What it learns is the sum over the survivors; a secret that does not fit its commitment is a named error, never a wrong sum.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.memory import CoordinatorMemory, Policy, Prekeys, Prepared
from securetm.aggregation.masked.messages import (
    HEADER_SIZE,
    MASK_SECRET,
    QUESTION_SIZE,
    SALT,
    SEED,
    SHORT,
    Header,
    Kind,
    Outcome,
    Place,
    longest_in_round,
    read_header,
    read_outcome,
    read_place,
    read_share,
    ring_type,
    secret_commitment,
    share_hash,
    share_of,
    vector_hash,
)
from securetm.aggregation.masked.pairs import Copies, fits, secret_of
from securetm.aggregation.masked.refusals import (
    AlreadyUnmasked,
    AnotherVector,
    CalledDropped,
    FalseSecret,
    FalseShare,
    NotPrepared,
    OtherSurvivors,
    OutOfStep,
    PrekeyReused,
    RestoredState,
    RoundAbandoned,
    SetsIncomplete,
    SetsOverlap,
    TooFewSignatures,
    TooFewSurvivors,
)
from securetm.aggregation.masked.setup import hashes_of, pairs_of
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import PART, Answer, Array, Entropy, Message, Parcel, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import BadVector, Malformed, NotInCohort, Refused, TooFewParties
from securetm.sessions.exchanges import CoordinatorExchange, PartyExchange, UnexpectedMessage
from securetm.sessions.framing import Label, MessageBuffer, Reader, derive, hashed, head, place_bytes, places_bytes
from securetm.sessions.identities import COORDINATOR, KEY, SIGNATURE, Identity, PinnedRoster
from securetm.sessions.survivors import SurvivorList


def pair_seed(secret: bytes, at: Place, one: int, two: int) -> bytes:
    """The seed of the mask between two parties in one round: bound to set-up, round, prekey and ordered pair."""
    return derive(secret, at.epoch, Label.PAIR_MASK, at.body(), place_bytes(*sorted((one, two))))


def self_seed(secret: bytes, at: Place, owner: int, salt: bytes) -> bytes:
    """The seed of a party's own mask in one round; the salt is that of the message it masks."""
    return derive(secret, at.epoch, Label.OWN_MASK, at.body(), place_bytes(owner), salt)


def consent_body(place: int, outcome: Outcome) -> bytes:
    """What a party signs if it agrees that these are the survivors."""
    return head(Kind.CONSENT, place) + hashed(Label.SURVIVORS, outcome.body(Kind.SURVIVORS))


@dataclass(frozen=True)
class Ring:
    """A copy of the vector in the ring, to which the masks are added where it lies, and the buffer around it."""

    buffer: MessageBuffer
    vector: Array


Surplus = Callable[[int], bytes]  # reveals the parts of this party's noise that a sum over so many survivors does not need


@dataclass(frozen=True)
class Quorum:
    """Who takes part in a round, and how many of them must survive."""

    active: tuple[int, ...]  # who is in the set-up and in the cohort
    need: int
    only: SurvivorList  # the one list of survivors over which this question is opened


def check_outcome(outcome: Outcome, identity: Identity, quorum: Quorum) -> None:
    """Refuses lists that overlap, leave somebody out, name a stranger, call this party dropped, or are too short."""
    register, survivors, dropped = identity.register, set(outcome.survivors), set(outcome.dropped)
    for place in sorted(survivors & dropped):
        raise SetsOverlap(register.name(place))
    for place in sorted((survivors | dropped) - set(quorum.active)):
        raise NotInCohort(register.name(place))
    for place in sorted(set(quorum.active) - survivors - dropped):
        raise SetsIncomplete(register.name(place))
    if identity.place not in survivors:
        raise CalledDropped(identity.me)
    if len(survivors) < quorum.need:
        raise TooFewSurvivors(len(survivors), quorum.need)


class MaskedPartyRound(PartyExchange):
    """Run by a party. Afterwards it knows who survived, and nothing of the sum."""

    def __init__(
        self,
        identity: Identity,
        policy: Policy,
        entropy: Entropy,
        prekeys: Prekeys,
        quorum: Quorum,
        tag: bytes,
        ring: Callable[[], Ring],
        surplus: Surplus,
    ) -> None:
        super().__init__()
        self._identity, self._policy, self._entropy, self._quorum = identity, policy, entropy, quorum
        self._prekeys, self._prepared = prekeys, prekeys.prepared()
        self._tag, self._surplus = tag, surplus
        self._ring: Callable[[], Ring] | None = ring  # until the vector is masked: afterwards no role here holds it
        self._begun = False
        self._index: int | None = None  # the prekey it used
        self.answers = {Kind.ADVANCE: self._advance, Kind.UNMASK: self._unmask}
        if policy.consistency:
            self.answers[Kind.SURVIVORS] = self._agree

    def begin(self) -> Sequence[Parcel]:
        """The masked vector, once; after a restart, before anything is masked, a question whether this memory is the latest."""
        self._prekeys.check_current(self._tag, self._prepared)
        if not self._begun:
            self._begun = True
            self._index = self._prekeys.used.get(self._tag)
            if signed := self._prekeys.sent(self._tag):
                self._first = self._again(signed)
            else:
                self._first = self._hello() if self._prekeys.restarted else self._masked()
        return super().begin()

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        """Answers a request of the coordinator, or refuses it. After a newer session object or set-up it refuses all."""
        self._prekeys.check_current(self._tag, self._prepared)
        if not self._begun:
            raise UnexpectedMessage(sender)
        return super().receive(sender, message)

    # ---- masking -----------------------------------------------------------------------------------------------------

    def _at(self, index: int) -> Place:
        return Place(self._prepared.epoch, self._tag, index)

    def _masked(self) -> Message:
        prekeys, me = self._prekeys, self._identity.place
        if not prekeys.left:
            raise NotPrepared()
        begun = Header(me, self._at(prekeys.next), self._entropy.bytes(SALT))
        buffer = self._under(begun)
        header = replace(begun, vector=vector_hash(buffer.content))
        signed = self._identity.sign(Label.VECTOR, header.body())
        prekeys.use(header.at.index, self._tag, signed)
        self._index = header.at.index
        return buffer.enclose(signed)

    def _again(self, signed: bytes) -> Message:
        """The message that was begun before: the same vector under the same prekey and salt, or none."""
        header = read_header(signed, self._identity.me)
        buffer = self._under(header)
        if vector_hash(buffer.content) != header.vector:
            raise RoundAbandoned(self._tag.hex()[:16])
        return buffer.enclose(signed)

    def _under(self, header: Header) -> MessageBuffer:
        """The masked vector as it travels."""
        if self._ring is None:
            raise UnexpectedMessage(COORDINATOR)
        made, self._ring = self._ring, None
        ring = made()
        apply_masks(ring.vector, self._masks(header, self._prepared))
        if sys.byteorder == "big":
            ring.vector.byteswap(inplace=True)
        return ring.buffer

    def _masks(self, header: Header, prepared: Prepared) -> list[Mask]:
        """One mask of its own, and one with each neighbour."""
        me, index = header.sender, header.at.index
        masks = [(self_seed(prepared.seeds[index], header.at, me, header.salt), True)]
        peers = [peer for peer in prepared.peers if peer in self._quorum.active]
        secrets = ((peer, secret_of(prepared.peers[peer], index)) for peer in peers)
        # Both must agree who adds: the one at the smaller place.
        return [*masks, *((pair_seed(secret, header.at, me, peer), me < peer) for peer, secret in secrets)]

    # ---- after a restart, or after missing a round ---------------------------------------------------------------------

    def _hello(self) -> bytes:
        body = head(Kind.HELLO, self._identity.place) + self._at(self._prekeys.next).body()
        return self._identity.sign(Label.QUESTION, body)

    def _advance(self, message: bytes) -> Message:
        """Skips to the prekey that the others use. A signed header that it does not remember shows an old memory."""
        reader = Reader(message, COORDINATOR, Kind.ADVANCE)
        at, proof = read_place(reader), bytes(reader.rest())
        at.check(self._prepared.epoch, self._tag)
        if proof:
            self._check_proof(proof)
        prekeys = self._prekeys
        if at.index < prekeys.next and self._index is None:
            raise OutOfStep(COORDINATOR, at.index, prekeys.next)
        prekeys.skip_to(min(at.index, self._prepared.rounds))
        prekeys.restarted = False
        if self._index is not None:
            return b""
        return self._masked()

    def _check_proof(self, proof: bytes) -> None:
        identity, prekeys = self._identity, self._prekeys
        header = read_header(proof, COORDINATOR)
        identity.register.opened(identity.place, COORDINATOR, proof, Label.VECTOR)
        if header.sender != identity.place or header.at.epoch != self._prepared.epoch:
            return
        if prekeys.header(header.at.index) != proof:
            prekeys.void()
            raise RestoredState()

    # ---- opening -----------------------------------------------------------------------------------------------------

    def _read(self, reader: Reader) -> Outcome:
        outcome = read_outcome(reader, len(self._identity.register))
        outcome.at.check(self._prepared.epoch, self._tag)
        if self._index is None:
            raise UnexpectedMessage(COORDINATOR)
        if outcome.at.index != self._index:
            raise OutOfStep(COORDINATOR, outcome.at.index, self._index)
        check_outcome(outcome, self._identity, self._quorum)
        return outcome

    def _agree(self, message: bytes) -> bytes:
        """Signs one list of survivors in a round and no other."""
        reader = Reader(message, COORDINATOR, Kind.SURVIVORS)
        outcome = self._read(reader)
        reader.end()
        self._only_once("agreed", outcome, hashed(Label.SURVIVORS, outcome.body(Kind.SURVIVORS)), OtherSurvivors())
        return self._identity.sign(Label.CONSENT, consent_body(self._identity.place, outcome))

    def _unmask(self, message: bytes) -> bytes:
        """Sends one share of each neighbour's secret: of a survivor's seed or of a dropped party's mask secret, never both.

        It also reveals the noise in its own vector that this list of survivors does not need.
        """
        reader = Reader(message, COORDINATOR, Kind.UNMASK)
        outcome = self._read(reader)
        self._check_signatures(outcome, reader)
        reader.end()
        refusal = AlreadyUnmasked(self._tag.hex()[:16])
        self._only_once("revealed", outcome, hashed(Label.UNMASK, outcome.body(Kind.SURVIVORS)), refusal)
        return self._revealed(outcome)

    def _only_once(self, what: str, outcome: Outcome, content: bytes, refusal: Refused) -> None:
        """Records what this party is about to send under a prekey. Refuses anything else than what it sent before."""
        before = self._prekeys.of_setup.get(f"masked {what} {outcome.at.index}")
        if before is not None and before != content:
            raise refusal
        self._quorum.only.hold([self._identity.register.name(place) for place in outcome.survivors])
        if before is None:
            self._prekeys.of_setup.put(f"masked {what} {outcome.at.index}", content)

    def _check_signatures(self, outcome: Outcome, reader: Reader) -> None:
        register = self._identity.register
        signers = reader.places(len(register))
        signatures = reader.entries(signers, SIGNATURE)
        if not self._policy.consistency:
            return
        agreed = hashed(Label.SURVIVORS, outcome.body(Kind.SURVIVORS))
        if self._prekeys.of_setup.get(f"masked agreed {outcome.at.index}") != agreed:
            raise OtherSurvivors()
        for place, signature in signatures.items():
            if place not in outcome.survivors:
                raise NotInCohort(register.name(place))
            register.verify(place, Label.CONSENT, consent_body(place, outcome), signature)
        if len(signers) < self._quorum.need:
            raise TooFewSignatures(len(signers), self._quorum.need)

    def _revealed(self, outcome: Outcome) -> bytes:
        dealers = [dealer for dealer in sorted(self._prepared.bundles) if dealer in self._quorum.active]
        which = {dealer: SEED if dealer in outcome.survivors else MASK_SECRET for dealer in dealers}
        shares = (share_of(self._prepared.bundles[dealer], outcome.at.index, which[dealer]) for dealer in dealers)
        body = head(Kind.UNMASKED, self._identity.place) + outcome.at.body() + b"".join(shares)
        body += self._surplus(len(outcome.survivors))
        return self._identity.sign(Label.UNMASKED, body)


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
        if Reader(message, sender, Kind.MASKED, Kind.HELLO).kind != Kind.HELLO:
            self._take_masked(place, sender, message)
            return
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
            # If enough parties are at a later index, this role's own memory is old, and it takes their index.
            for index, parties in Counter(self._further).items():
                if parties >= self._quorum.need and index < self._relayed.rounds:
                    self._memory.go_to(index, self._at.tag)
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
            for place, secret in self._pairs(gone, secrets[gone]):
                yield pair_seed(secret, self._at, place, gone), place > gone  # the smaller place had added it

    def _pairs(self, gone: int, mask_secret: bytes) -> Iterator[tuple[int, bytes]]:
        """The secrets of this round between a dropped party and the survivors that masked with it, from its own copies."""
        setup, index = self._relayed.setup, self._at.index
        told = pairs_of(self._memory.store, setup, gone)
        copies = Copies(setup, gone, {index: mask_secret}, len(self._register))
        for place in self._relayed.partners[gone]:
            if place in self._masked:
                hashes, turned = told[place]
                secret = copies.turned(place, secret_of(turned, index))
                if not fits(setup, gone, place, index, secret, hashes):
                    raise FalseSecret(self._register.name(gone))
                yield place, secret

    def _secret(self, owner: int) -> bytes:
        """A survivor's seed or a dropped party's mask secret of this round, checked against what its owner signed."""
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
        number = self._number(owner)
        return self._relayed.commitments[owner][number] == secret_commitment(self._register, owner, number, secret)

    def _number(self, owner: int) -> int:
        return 2 * self._at.index + (SEED if owner in self._masked else MASK_SECRET)

    def _blame(self, owner: int, holders: Sequence[int]) -> FalseShare | FalseSecret:
        """Names the holder of the first share that differs from what was dealt. If none differs, the dealer lied."""
        setup, number = self._relayed.setup, self._number(owner)
        dealt = hashes_of(self._memory.store, setup, owner)
        for holder in holders:
            share = self._shares[holder][owner].to_bytes(shamir.SHARE, "big")
            told = dealt.get(holder, b"")[number * SHORT : (number + 1) * SHORT]
            if told != share_hash(setup, owner, holder, number, share):
                return FalseShare(self._register.name(holder), self._register.name(owner))
        return FalseSecret(self._register.name(owner))
