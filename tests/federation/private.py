"""What the tests of private runs share: a public list of words, plans with a budget, and a party with its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from securetm.accounting.ledger import Ledger
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.store import COMMON, SqliteStore
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.sessions.identities import public_identity

from .conftest import FIVE, SHARED, small_plan
from .played import Played

PUBLIC = tuple(sorted({*SHARED, *(word for subject in FIVE.values() for word in subject)}))


def public_words(folder: Path) -> str:
    """A file of words that are nobody's secret."""
    path = folder / "words.txt"
    path.write_text("\n".join(PUBLIC), "utf-8")
    return str(path)


def private_plan(folder: Path, profile: str, **more: Any) -> Plan:
    """A small plan under a profile with a budget."""
    declared = {"origins__vocabulary": "words that the tests made up", **more}
    return small_plan(profile=profile, vocabulary__source="file", vocabulary__file=public_words(folder), **declared)


def paid(ledger: Path) -> list[Any]:
    """What that ledger holds of each answer that was paid for."""
    with Ledger.read(ledger) as opened:
        return [entry.content for entry in opened.entries() if entry.content["kind"] == "spent"]


def settle(played: Played, party: Party) -> None:
    """Invited, with the public words."""
    for body in (played.invite(), played.adopt(PUBLIC)):
        assert isinstance(played.send(party, body), wire.Accepted)


def stores(names: Mapping[str, Corpus], folder: Path) -> tuple[dict[str, PartyStore], dict[str, bytes]]:
    """Each party's own store, and everybody's public identity."""
    made = {name: PartyStore(folder / name) for name in names}
    return made, {name: public_identity(store, OperatingSystem()) for name, store in made.items()}


def paying_parties(plan: Plan, corpora: Mapping[str, Corpus], folder: Path) -> dict[str, Party]:
    """Real parties, each with a ledger of its own."""
    own, keys = stores(corpora, folder)
    agreement = agree(plan)
    assert agreement.budget is not None
    made = {}
    for name, corpus in corpora.items():
        ledger = Ledger.open(folder / f"{name}.ledger", name, agreement.budget)
        others = SqliteStore(folder / f"{name}.others", COMMON)
        made[name] = Party(name, tuple(corpora), agreement, corpus, own[name], OperatingSystem(), keys, ledger, others, "a run")
    return made
