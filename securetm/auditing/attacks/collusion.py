"""The other parties' documents, for a coordinator with colluding parties: the sum less their answers, and what their keys open.

No mask and no cipher is broken. The attacks use what a colluding party has: its own message, and its keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from securetm.aggregation.homomorphic.encrypted_sum import SharedKeySum, SumKind, sum_key, unpack_residues, unpack_secret
from securetm.aggregation.homomorphic.parameters import SEED, Fit, from_digits, real_or_whole
from securetm.aggregation.homomorphic.seal_library import Code, RunningSum, decrypt_here
from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.memory import Prepared
from securetm.aggregation.masked.messages import HEADER_SIZE, Header, Kind, Place, read_header, read_place, read_share
from securetm.aggregation.masked.pairs import secret_of
from securetm.aggregation.masked.round import pair_seed, self_seed
from securetm.answers.clipped_sum import blocks_of
from securetm.auditing.attack import Attack, Effort, Estimate, GroundTruth, Proportion, RoundReconstruction, Score
from securetm.auditing.parts.gradients import GRADIENT, gradients, invert_gradient, layers_of, without
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, EXACT, LINKS, TOGETHER, WORDS, judged, judged_documents
from securetm.auditing.views import (
    ANSWER,
    BY_PARTIES,
    REQUEST,
    SEALED,
    TOTAL,
    VOCABULARY,
    AdversaryView,
    ReadVector,
    first_parts,
    party_vectors,
    totals,
    vector_at,
)
from securetm.contracts import PART, Array, NoiseBy, Profile, Terms, Unit
from securetm.data_classes import dataclass, replace
from securetm.federation.questions import TRAIN
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.plans.profiles import cohort_of
from securetm.sessions.framing import HASH, RECORDED, Reader, head
from securetm.sessions.group_key import KEY_ID
from securetm.sessions.identities import KEY, SIGNATURE
from securetm.sessions.session_memory import unpacked

# ---- masked vectors, as far as the keys of colluding parties open them ----------------------------------------------
# Of a helper's vector all masks are removed, of another party's vector those that it shares with helpers. No cipher is broken:
# under an unknown mask the numbers are read as they are. Keys come from the view, not from a store. Ciphertexts under a shared
# key are read in `shared_keys`.

_SETUP = "masked setup"  # under this name a party keeps its prekeys (aggregation/masked/memory.py)
_HELPER = "a colluding party"


@dataclass(frozen=True)
class OpenedAnswer:
    """One party's vector of one round, and whether it is in the clear. If not, its numbers are those under the masks."""

    vector: ReadVector
    in_clear: bool
    surplus: tuple[bytes, ...] = ()  # what reveals the parts of its noise that were taken off the sum


def opened_answers(view: AdversaryView) -> Iterator[OpenedAnswer]:
    if view.seen.get(ANSWER):
        yield from (OpenedAnswer(vector, True) for vector in party_vectors(view))
        return
    members, sealed = view.public.members, list(first_parts(view, SEALED))
    secrets = {members.index(insider.name): insider.secrets for insider in view.insiders}
    parcels = [parcel for _, _, parcel in sealed]
    kept = {place: own[_SETUP] for place, own in secrets.items() if own.get(_SETUP)}
    setups = {place: unpacked(stored[HASH:], Prepared) for place, stored in kept.items()}
    opening = list(_unmasked(parcels, len(members)))
    keys = _MaskKeys(setups, _opened(opening))
    told = {
        (at, place): tuple(rest[start : start + PART] for start in range(0, len(rest), PART)) for at, place, _, rest in opening
    }
    for asked, sender, parcel in sealed:
        if vector_at(parcel, asked.terms):
            blocks = blocks_of(keys.off(parcel, asked.terms) * (asked.terms.grid or 1), asked.terms)
            place, at = members.index(sender), read_header(parcel, _HELPER, RECORDED).at
            yield OpenedAnswer(ReadVector(asked, sender, blocks), keys.opens(place, parcel), told.get((at, place), ()))


@dataclass(frozen=True)
class _MaskKeys:
    """The prekeys of the helpers, by place in the roster, and the self-mask seeds that the round itself opened."""

    setups: Mapping[int, Prepared]
    seeds: Mapping[tuple[Place, int], bytes]

    def off(self, parcel: bytes, terms: Terms) -> Array:
        """A masked vector without the masks that these keys give, as whole numbers. A helper's is then in the clear."""
        header = read_header(parcel, _HELPER, RECORDED)
        vector = np.frombuffer(parcel, f"<u{terms.bits // 8}", offset=HEADER_SIZE).copy()
        apply_masks(vector, list(self._masks(header)))
        return np.asarray(vector.view(f"<i{terms.bits // 8}").astype(np.int64))

    def opens(self, sender: int, parcel: bytes) -> bool:
        return sender in self.setups and self.setups[sender].epoch == read_header(parcel, _HELPER, RECORDED).at.epoch

    def _masks(self, header: Header) -> Iterator[Mask]:
        """The known masks with the opposite sign, which subtracts them: all pairs of a helper, of others those with helpers."""
        me, at = header.sender, header.at
        own = self.setups.get(me)
        seed = own.seeds[at.index] if own is not None and own.epoch == at.epoch else self.seeds.get((at, me), b"")
        if seed:
            yield self_seed(seed, at, me, header.salt), False
        if own is not None:
            secrets = dict(own.peers)
        else:
            known = {place: setup for place, setup in self.setups.items() if setup.epoch == at.epoch}
            secrets = {place: setup.peers[me] for place, setup in known.items() if me in setup.peers}
        for peer, secret in secrets.items():
            yield pair_seed(secret_of(secret, at.index), at, me, peer), me > peer  # the smaller place had added it


def _opened(opening: Iterable[_Opening]) -> dict[tuple[Place, int], bytes]:
    """Self-mask seeds from the parties' shares. If a party dropped out, some of the secrets are not seeds."""
    shares: dict[tuple[Place, int], dict[int, int]] = {}
    for at, holder, dealt, _ in opening:
        for dealer, share in enumerate(dealt):
            shares.setdefault((at, dealer), {})[holder + 1] = share
    found = {which: shamir.combine(tuple(held), tuple(held.values())) for which, held in shares.items()}
    return {which: secret.to_bytes(KEY, "big") for which, secret in found.items() if secret < 1 << (8 * KEY)}


_Opening = tuple[Place, int, list[int], bytes]  # round, sender, the shares of each party's secret, what reveals its noise


def _unmasked(parcels: Sequence[bytes], parties: int) -> Iterator[_Opening]:
    """The messages that open a sum in which all parties are neighbours."""
    for parcel in parcels:
        if len(parcel) > 1 and parcel[1] == Kind.UNMASKED:
            reader = Reader(parcel[:-SIGNATURE], _HELPER, Kind.UNMASKED, versions=RECORDED)
            holder, at = reader.number(2), read_place(reader)
            yield at, holder, [read_share(reader) for _ in range(parties)], bytes(reader.rest())


# ---- ciphertexts under the secret key that all parties share --------------------------------------------------------
# It breaks no cipher: with the key every party could decrypt. Without the key it reads the numbers of a ciphertext as they are.

_KEY = sum_key("").key  # under this name a party keeps the key, behind a hash
_FRESH = head(SumKind.FRESH)
_NAME = 4 + HASH  # where the name of the key begins: after the head and the round
_BODY = _NAME + KEY_ID


def opened_by_key(view: AdversaryView) -> Iterator[OpenedAnswer]:
    kept = (insider.secrets.get(_KEY, b"")[HASH:] for insider in view.insiders)
    aggregation = cast("SharedKeySum", view.public.profile.aggregation)
    keys = {sum_key(aggregation.code.name).named(value): value for value in kept if value}
    cohort = cohort_of(view.public.profile, view.public.members)
    for asked, sender, parcel in first_parts(view, SEALED):
        if asked.question == TRAIN and parcel.startswith(_FRESH):
            secret = keys.get(parcel[_NAME:_BODY])
            fit = aggregation.fit(asked.terms, cohort)[1]
            numbers = _numbers(parcel[_BODY:], aggregation.code, fit, asked.terms.size, secret)
            blocks = real_or_whole(numbers, asked.terms.layout, asked.terms.grid)
            yield OpenedAnswer(ReadVector(asked, sender, blocks), secret is not None)


def _numbers(content: bytes, code: Code, fit: Fit, size: int, secret: bytes | None) -> Array:
    """The whole numbers in a party's ciphertexts; without the key, the ciphertexts' first halves."""
    ends = len(content) - SEED * fit.ciphertexts(size)
    first = unpack_residues(content[:ends], fit, "")
    if secret is None:
        shown = first.astype(np.int64).ravel()[:size]
        return shown - fit.modulus.value // 2
    alone = RunningSum(code, fit)  # of one party's ciphertexts; the coordinator may always add these
    alone.add(first, np.frombuffer(content[ends:], dtype=np.uint8).reshape(-1, SEED))
    rows = decrypt_here(code, fit, unpack_secret(secret, ""), *alone.polynomials())
    return from_digits(rows, fit, size)


# ---- the sum less the helpers' answers ------------------------------------------------------------------------------

ALONE = "documents recovered from one party's own answer"
MISSING = "promised noise that is missing"
DEVIATION = "deviation of the noise that remains, as a share of the promised one"
_OF_RESTS = {**DOCUMENTS, **WORDS, TOGETHER: LINKS[TOGETHER]}


@dataclass(frozen=True)
class RemainingSum:
    """One sum less the helpers' answers: the first layer's row of each word, and the noise that the terms promise in it."""

    rows: Array
    promised: float  # 0 where none is


@dataclass(frozen=True)
class CollusionGuess:
    """What the helpers' answers and keys show of the other parties."""

    together: tuple[RoundReconstruction, ...]  # of all other parties, from what remains of the sums
    alone: tuple[RoundReconstruction, ...]  # of each other party, from its own message
    left: tuple[RemainingSum, ...]


def subtract_helpers(view: AdversaryView, effort: Effort) -> CollusionGuess:
    """Subtracts from the sums, and from each party's message, all that the helpers know."""
    answers = [one for one in opened_answers(view) if GRADIENT in one.vector.blocks]
    left = list[ReadVector]()  # each sum less what the helpers added to it, if the vectors of all helpers are known
    for whole in gradients(totals(view)):
        of_round = [one for one in answers if one.in_clear and one.vector.round.serial == whole.round.serial]
        own = [_in_the_sum(one, view) for one in of_round if one.vector.party in view.helpers]
        if len(own) == len(view.helpers):
            left.append(without(whole, own))
    left = left[: effort["rounds"]]
    rounds = {vector.round.serial for vector in left}
    alone = [one.vector for one in answers if one.vector.party not in view.helpers and one.vector.round.serial in rounds]
    model, parties, profile = view.public.model, len(view.public.members), view.public.profile
    return CollusionGuess(
        tuple(invert_gradient(vector, model, parties) for vector in left),
        tuple(invert_gradient(vector, model) for vector in alone),
        tuple(RemainingSum(layers_of(vector, model).words, _promised(vector, profile)) for vector in left),
    )


def _in_the_sum(answer: OpenedAnswer, view: AdversaryView) -> ReadVector:
    """A helper's vector without the parts of its noise that were taken off the sum."""
    terms, profile = answer.vector.round.terms, view.public.profile
    shares = [part for part in profile.mechanisms if part.noise_by is NoiseBy.SHARES]
    if not answer.surplus or not shares:
        return answer.vector
    parts = cast("NoiseShares", shares[0]).surplus(terms, cohort_of(profile, view.public.members))
    blocks = answer.vector.blocks
    whole = np.concatenate([np.rint(block / terms.grid).astype(np.int64).ravel() for block in blocks.values()])
    for part, told in zip(parts[-len(answer.surplus) :], answer.surplus, strict=True):
        part.take_off(whole, told)
    pieces = np.split(whole, np.cumsum([block.size for block in blocks.values()])[:-1])
    less = {name: (piece * terms.grid).reshape(blocks[name].shape) for name, piece in zip(blocks, pieces, strict=True)}
    return replace(answer.vector, blocks=less)


def _promised(vector: ReadVector, profile: Profile) -> float:
    """The deviation of the noise in every number of a sum, from parties and opener, as the accountant counts it.

    Noise on single words is in the documents before they are summed, so its deviation does not apply to a sum.
    """
    terms = vector.round.terms
    by_opener = sum(part.total_deviation(terms) for part in profile.mechanisms)
    return 0.0 if terms.unit is Unit.WORD else (terms.deviation + by_opener) * (vector.round.terms.grid or 1.0)


def judge_rests(guess: CollusionGuess, truth: GroundTruth) -> Score:
    honest = {which: held for which, held in truth.batches.items() if which[1] not in truth.helpers}
    others = replace(truth, batches=honest)
    alone = judged_documents(guess.alone, others)
    return judged(guess.together, others, _OF_RESTS, {ALONE: alone.measures[EXACT], **_noise(guess.left, truth)})


def _noise(left: Sequence[RemainingSum], truth: GroundTruth) -> dict[str, Estimate]:
    """The noise that remains. Without noise, the rows of words that no honest party has would be zero.

    Where no noise is promised, none can be missing.
    """
    from scipy.stats import chi2

    unused = ~np.any([np.asarray(held.sum(axis=0)).ravel() > 0 for held in truth.honest(truth.held).values()], axis=0)
    values = np.concatenate([np.ravel(one.rows[unused]) / one.promised for one in left if one.promised] or [np.zeros(0)])
    if not values.size:
        return dict.fromkeys((MISSING, DEVIATION), Estimate(math.nan, 0.0, 1.0, 0.0))
    # the deviation of independent normal numbers about zero, and its two-sided interval
    square, number, tail = float(np.sum(np.square(values))), len(values), (1.0 - truth.confidence) / 2.0
    ratio, low, high = (math.sqrt(square / by) for by in (number, chi2.ppf(1.0 - tail, number), chi2.ppf(tail, number)))
    value, least, most = (min(max(1.0 - r * r, 0.0), 1.0) for r in (ratio, high, low))
    return {MISSING: Estimate(value, least, most, 1.0), DEVIATION: Estimate(ratio, low, high, 1.0)}


COLLUSION = Attack(
    name="collusion",
    title="The others' documents, for a coordinator that some parties help",
    citation="Bonawitz et al. 2017 (ePrint 2017/281), section 6, on parties that share what they know with the server",
    cost="under a second on one core for each total over a hundred documents, and for each message of another party",
    given="keys of the parties that help, what these sent, the model's settings and words, and how many documents are in a sum",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=BY_PARTIES,
    models=("prodlda",),
    measures={**_OF_RESTS, ALONE: "document", MISSING: "variance", DEVIATION: "promised deviation"},
    bears_on=("singling out", "inference"),
    attack=subtract_helpers,
    judge=judge_rests,
    limits=(
        "documents behind noise: it measures how much noise remains, and looks for documents as if there were none",
        "rounds under an earlier set-up of masks, whose keys a party no longer has",
        "helpers that violate the protocol: that drop out on purpose, or change the sum",
        "masks where only some parties are neighbours, and rounds in which a party dropped out",
    ),
    remark="A sum hides an answer only among the parties that do not collude. If all but two collude, the coordinator learns "
    "the sum of two answers; if all but one collude, it learns that party's answer. No protocol for sums can change that.",
)


# ---- encrypted answers, with the key of one party that helps --------------------------------------------------------

OPENED = "answers of single parties that are opened"
_REBUILT = {**DOCUMENTS, **WORDS}


def open_answers(view: AdversaryView, effort: Effort) -> tuple[tuple[RoundReconstruction, ...], Proportion]:
    """Opens the honest parties' answers with a helper's key, if there is one, and inverts their gradients.

    The second value is how many of the answers the key opened.
    """
    answers = opened_answers(view) if view.seen.get(ANSWER) else opened_by_key(view)
    honest = [one for one in answers if one.vector.party not in view.helpers and GRADIENT in one.vector.blocks]
    tried = honest[: effort["answers"]]
    guesses = tuple(invert_gradient(one.vector, view.public.model) for one in tried)
    return guesses, Proportion(sum(one.in_clear for one in tried), len(tried))


def judge_opened(found: tuple[tuple[RoundReconstruction, ...], Proportion], truth: GroundTruth) -> Score:
    guesses, opened = found
    return judged(guesses, truth, _REBUILT, {OPENED: opened})


SHARED_KEY = Attack(
    name="shared_key",
    title="Documents from encrypted answers, with the key of one party that helps",
    citation="Zhang et al. 2020 (BatchCrypt), one key pair for all parties; then Geiping et al. 2020 (arXiv 2003.14053)",
    cost="well under a second on one core for one answer, decrypted and inverted",
    given="the key of one party that helps, the model's settings and words, and how many documents an answer holds",
    either=BY_PARTIES,
    models=("prodlda",),
    measures={**_REBUILT, OPENED: "answer"},
    bears_on=("singling out", "inference"),
    attack=open_answers,
    judge=judge_opened,
    efforts=("answers",),
    limits=("keys of an earlier session", "optimisation, which answers with noise would need"),
    remark="All parties of an encrypted sum hold one secret key, so one colluding party is enough. The profiles ckks and bfv "
    "claim nothing against a coordinator with a colluding party. The threat model lone_coordinator excludes such a party, and "
    "colluding_parties includes it.",
)
