"""The published vectors drive the implementation: the same bytes from the same seeds, and every bad message its refusal."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from securetm.aggregation.masked import shamir
from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import Kind, read_share
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Block, Cohort, Domain, Exchange, Roster, Terms
from securetm.entropy import Seeded
from securetm.errors import Malformed, Refused
from securetm.resources import data_folder
from securetm.sessions.framing import VERSION, Reader
from securetm.testing.few_documents import EmptyStore
from securetm.testing.known_secrets import KnownSecrets
from tests.aggregation.make_vectors import FILES, text
from tests.aggregation.played import COORDINATOR, flat, public_identity


def vectors(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data_folder("protocols") / "vectors" / name).read_text())
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_what_their_maker_makes(name: str) -> None:
    assert (data_folder("protocols") / "vectors" / name).read_text() == text(FILES[name]())


# ---- Shamir ----------------------------------------------------------------------------------------------------------

SHAMIR = vectors("shamir.json")


class Given:
    """Entropy that is written in the vector."""

    def __init__(self, drawn: str) -> None:
        self.drawn = bytes.fromhex(drawn)

    def bytes(self, n: int) -> bytes:
        taken, self.drawn = self.drawn[:n], self.drawn[n:]
        return taken


@pytest.mark.parametrize("case", SHAMIR["good"], ids=lambda case: case["name"])
def test_shares_are_as_published(case: dict[str, Any]) -> None:
    points, secrets = [int(point) for point in case["shares"]], [bytes.fromhex(secret) for secret in case["secrets"]]
    dealt = shamir.deal(secrets, points, case["threshold"], Given(case["drawn"]))
    assert [[share.to_bytes(33, "big").hex() for share in row] for row in dealt] == list(case["shares"].values())
    used = tuple(points[-case["threshold"] :])
    for n, secret in enumerate(secrets):
        shares = [int(case["shares"][str(point)][n], 16) for point in used]
        assert shamir.combine(used, shares) == int.from_bytes(secret, "big")


@pytest.mark.parametrize("case", SHAMIR["bad"], ids=lambda case: case["name"])
def test_false_shares_make_the_published_other_value(case: dict[str, Any]) -> None:
    found = shamir.combine(tuple(case["points"]), [int(share, 16) for share in case["shares"]])
    assert found == int(case["value"], 16)
    assert found.to_bytes(33, "big").hex()[2:] not in SHAMIR["good"][1]["secrets"][:1]
    assert case["why"]


@pytest.mark.parametrize("case", SHAMIR["not_a_share"], ids=lambda case: case["name"])
def test_what_is_no_share_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read_share(Reader(bytes((VERSION, Kind.UNMASKED)) + bytes.fromhex(case["share"]), "somebody"))


# ---- sessions --------------------------------------------------------------------------------------------------------

MASKED = vectors("masked_sum.json")
SESSIONS = {"with consistency" if one["consistency"] else "without": one for one in MASKED["sessions"]}
BAD = [(name, n) for name, one in SESSIONS.items() for n in range(len(one["bad"]))]


class Replayed:
    """Seats made of a published session, to which its messages are delivered; what they say must be what is published."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts, members = facts, tuple(facts["roster"]["members"])
        roster = Roster(
            bytes.fromhex(facts["roster"]["session"]),
            bytes.fromhex(facts["roster"]["profile"]),
            members,
            {m: public_identity(m) for m in members},
        )
        aggregation = MaskedSum(consistency=facts["consistency"], threshold=facts["threshold"], colluding=facts["colluding"])
        stores = {m: EmptyStore({"identity": bytes.fromhex(facts["private"][m]["identity"])}) for m in members}
        entropy = {m: Seeded(bytes.fromhex(facts["private"][m]["entropy"]), unsafe=True) for m in members}
        self.parties = {m: aggregation.party(m, roster, entropy[m], stores[m]) for m in members}
        self.middle = aggregation.coordinator(roster, EmptyStore({}))
        layout = tuple(Block(name, tuple(shape)) for name, shape in MASKED["terms"]["layout"])
        self.members, self.threshold = members, facts["threshold"]
        terms = Terms(layout, domain=Domain.INTEGER, reach=MASKED["terms"]["reach"])
        self.terms = aggregation.admit(terms, self.cohort(0))
        self.known = KnownSecrets(in_turn=True)
        for row in facts["told"]:
            pair = bytes.fromhex(row["secret"]), bytes.fromhex(row["ciphertext"])
            self.known.told.setdefault(bytes.fromhex(row["key"]), []).append(pair)
        self.roles: dict[str, Exchange] = {}
        self.said: set[tuple[str, str, str]] = set()
        self.where = ""

    def cohort(self, number: int) -> Cohort:
        return Cohort(bytes.fromhex(self.facts["answers"][number]["round_id"]), number, self.members, 1)

    def enter(self, where: str) -> None:
        """Every role begins the set-up or the round that the next step belongs to."""
        self.where = where
        if where.startswith("round"):
            cohort = self.cohort(int(where.split()[1]))
            vector = {m: blocks_of(np.array(self.facts["vectors"][m]), self.terms) for m in self.members}
            self.roles = {m: session.round(cohort, self.terms, vector[m]) for m, session in self.parties.items()}
            self.roles[COORDINATOR] = self.middle.round(cohort, self.terms)
        else:
            self.roles = {m: session.prepare(self.facts["rounds"]) for m, session in self.parties.items()}
            self.roles[COORDINATOR] = self.middle.prepare(self.facts["rounds"])
        for name, role in self.roles.items():
            self.note(name, role.begin())

    def note(self, sender: str, parcels: Any) -> None:
        self.said |= {(sender, to, message.hex()) for to, message in parcels}

    def step(self, step: dict[str, str], instead: str | None = None) -> None:
        if step["in"] != self.where:
            self.enter(step["in"])
        if "ends" in step:
            self.note(COORDINATOR, self.roles[COORDINATOR].expire(()))
            return
        assert (step["from"], step["to"], step["message"]) in self.said
        message = bytes.fromhex(step["message"] if instead is None else instead)
        self.note(step["to"], self.roles[step["to"]].receive(step["from"], message))


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_as_published(name: str) -> None:
    facts = SESSIONS[name]
    replayed = Replayed(facts)
    opened = []
    with replayed.known.come_again():
        for step, then in zip(facts["steps"], [*facts["steps"][1:], {"in": "the end"}], strict=True):
            replayed.step(step)
            if then["in"] != step["in"] and step["in"].startswith("round"):
                opened.append(replayed.middle.answer(replayed.cohort(len(opened)).round_id))
    assert [flat(answer).tolist() for answer in opened] == [answer["total"] for answer in facts["answers"]]
    assert [list(answer.survivors) for answer in opened] == [answer["survivors"] for answer in facts["answers"]]
    for answer in facts["answers"]:
        assert answer["total"] == np.sum([facts["vectors"][m] for m in answer["survivors"]], axis=0).tolist()


@pytest.mark.parametrize(("name", "number"), BAD)
def test_a_bad_message_ends_in_its_refusal(name: str, number: int) -> None:
    facts = SESSIONS[name]
    bad, replayed = facts["bad"][number], Replayed(facts)
    at = int(bad["instead_of"])
    with replayed.known.come_again():
        for step in facts["steps"][:at]:
            replayed.step(step)
        with pytest.raises(Refused) as caught:
            go_on(replayed, facts["steps"][at:], bad["message"])
    assert type(caught.value).__name__ == bad["refusal"]
    assert bad["why"]


def go_on(replayed: Replayed, steps: list[dict[str, str]], instead: str) -> None:
    """A bad message is refused when it comes, or when its wave is over and shares are put together."""
    replayed.step(steps[0], instead=instead)
    for step in steps[1:]:
        replayed.step(step)


def test_every_kind_of_message_has_a_bad_one() -> None:
    met = {bad["kind"] for one in SESSIONS.values() for bad in one["bad"]}
    assert {
        "commit",
        "commits",
        "reveal",
        "reveals",
        "shares",
        "delivery",
        "stored",
        "masked",
        "survivors",
        "unmask",
        "unmasked",
    } <= met
