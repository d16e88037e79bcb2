"""A party of a real federation: everything that can be checked before the first connection, and then the run to its end.

It makes the same party as a simulation does, out of the organisation's own files. Whoever calls it brings the carrier.
"""

from __future__ import annotations

import hashlib
import shlex
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from securetm.accounting.ledger import Ledger
from securetm.answers.block_answers import IN_PROCESS
from securetm.contracts import Engine, Least, Unit
from securetm.contracts.origin import OriginKind, StartingInput
from securetm.corpus.corpus import Corpus
from securetm.corpus.records import Columns
from securetm.credentials.diagnosis import check_own, now_utc, said_of_build
from securetm.credentials.homes import KEYS, check_accepted
from securetm.credentials.keys import Keys, Passphrase
from securetm.credentials.roster import FederationRoster, read_roster
from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.errors import BadSetting, Failed, SecuretmError, named_in
from securetm.federation.budget.ledgers import LedgersOfDocuments, own_budget, runs_in
from securetm.federation.budget.witness import TAG, UNCONFIRMED
from securetm.federation.document_minimum import (
    check_delta,
    check_holds,
    check_kind,
    check_share,
    delta_said,
    documents_held,
    others_hold,
    units_of,
)
from securetm.federation.folder import alone_in
from securetm.federation.origins import before_in_ledger, run_between_organisations
from securetm.federation.party.home import PartyHome
from securetm.federation.party.party import Party
from securetm.federation.party.reply_times import PacedParty, SystemClock
from securetm.federation.party.result import keep_result, spent
from securetm.federation.party.state import PartyWatch
from securetm.federation.questions import HELD_OUT, TRAIN, before_training
from securetm.federation.refusal_errors import NotAllowedHere, reason_of
from securetm.federation.release import MODEL, RELEASE
from securetm.federation.soundness import agreed_apart
from securetm.federation.sources import foreign_language, language_said, read_under
from securetm.federation.store import SqliteStore
from securetm.plans.agreement import Agreement
from securetm.plans.origins import accepted_as, entries_of
from securetm.plans.party_file import PartyFile, PolicyChoice
from securetm.plans.profiles import cohort_of
from securetm.plans.recommend import whole_plan
from securetm.settings import read_toml
from securetm.stages import Stages
from securetm.wording import counted, downward, upward


class Carrier(Protocol):
    """Brings requests to a party and its replies back."""

    def run(self, handle: Callable[[bytes], bytes | memoryview], stop: threading.Event) -> bool:
        """Answers requests until `stop` is set or the run has ended. Returns whether it has."""
        ...


@dataclass(frozen=True)
class Joining:
    """A party that is ready to join: all its files are read and checked, and nothing was sent or written."""

    file: PartyFile
    home: PartyHome
    roster: FederationRoster
    keys: Keys = field(repr=False)
    agreement: Agreement
    corpus: Corpus

    @property
    def run_name(self) -> str:
        """What the ledger calls this run: the same whenever the same plan is run over the same data set."""
        return run_between_organisations(self.roster.federation, self.agreement)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the party's user should know before it takes part, and nobody else is told."""
        said = delta_said(self.agreement, self.units)
        plan, data = self.agreement.plan, self.file.data
        code = foreign_language(plan, self.file.place(data.source), Columns(**data.columns())).language
        told = [] if code is None else [language_said(code, plan, taken=False)]
        told += filter(None, [said_of_build(self.roster)])
        return tuple(one.rstrip(".") for one in (*([] if said is None else [said]), *told))

    @property
    def units(self) -> int:
        """How many units all parties hold at least, as this one knows."""
        others = others_hold(self.file.name, self.roster.holds, self.agreement.profile, self.roster.members)
        return units_of(self.corpus, self.agreement.unit) + others

    def facts(self) -> dict[str, Any]:
        return {
            "party": self.file.name,
            "federation": self.roster.federation,
            "data_set": self.home.data_set,
            "profile": self.agreement.profile.name,
            "profile_digest": self.agreement.profile.digest.hex(),
            "members": list(self.roster.members),
            "agreement": self.agreement.digest.hex(),
            "roster": self.roster.digest.hex(),
            "run": self.run_name,
        }

    def party(self, watch: PartyWatch, engine: Engine = IN_PROCESS) -> Party:
        """Opens the party's stores and its ledger. From now on nobody else may. The engine computes its answers."""
        self.home.check_one_data_set(self.agreement)
        others = self.home.others() if self.agreement.budget is not None else None
        ledger, tag = self._ledger(others)
        store = self.home.store(self.agreement, self.keys.identity, self.corpus)
        own = self.file.name, self.roster.members, self.agreement, self.corpus, store, OperatingSystem(), dict(self.roster.keys)
        budgeted, holds = (ledger, others, self.run_name), dict(self.roster.holds)
        return Party(*own, *budgeted, policy=self.file.policy, holds=holds, ledger_tag=tag, watch=watch, engine=engine)

    def ledgers(self) -> list[Path]:
        """The ledgers that these documents have so far. None is made."""
        unit = self.agreement.budget.unit if self.agreement.budget is not None else None
        return LedgersOfDocuments(self.home.ledgers).ledgers_of(self.corpus, unit, self.home.data_set)

    def runs(self) -> frozenset[str]:
        """The runs that these documents took part in, as their ledgers hold them."""
        return frozenset().union(*map(runs_in, self.ledgers()))

    def spent(self) -> dict[str, Any] | None:
        """What the ledger says now; None where there is none. It may be called while another thread charges it."""
        found = self.ledgers()
        return spent(found[-1], self.run_name, self.agreement) if found else None

    def _ledger(self, others: SqliteStore | None) -> tuple[Ledger, bytes]:
        """Opens the ledger of the documents, under a budget with the one that its owner gave the data set."""
        confirmed = others is None or not others.get(UNCONFIRMED)
        path = self.home.ledger(self.corpus, self.agreement.budget, begins=confirmed)
        own = own_budget(path, self.agreement.budget)
        if own is None:
            return Ledger.open(path, self.file.name, None), bytes(TAG)
        return Ledger.open(path, self.file.name, self.file.privacy.budget(own)), self.home.tag(path, self.keys.first)


Tell = Callable[[str, Keys, FederationRoster, str], None]  # the party, its keys, the roster, and why it does not take part


def prepare(
    path: Path,
    passphrase_of: Callable[[Path], Passphrase | None],
    stages: Stages,
    tell: Tell = lambda *_: None,
    *,
    connects: bool = True,
) -> Joining:
    """Checks all that can be checked before the first connection. Raises the first thing that is wrong, by name.

    `tell` is told if that follows from public facts, so that the coordinator need not wait for this party. One that does not
    connect needs no certificate that is valid now.
    """
    file = PartyFile.read(path)
    home = PartyHome.named_in(file)
    with named_in(path, file.place(file.roster)):
        roster = read_roster(file.place(file.roster))
    check_accepted(home.path, roster)
    keys = Keys.open(home.path / KEYS, passphrase_of(home.path / KEYS))
    check_own(file.name, keys, roster, now_utc() if connects else None)
    home.check_identity(keys.public_identity)
    try:
        return _checked(file, home, roster, keys, stages)
    except SecuretmError as problem:
        if reason := reason_of(problem):
            tell(file.name, keys, roster, reason)
        raise


def _checked(file: PartyFile, home: PartyHome, roster: FederationRoster, keys: Keys, stages: Stages) -> Joining:
    said_of_build(roster)
    check_module(file)
    with named_in(file.path, file.place(file.plan)):
        plan = whole_plan(file.place(file.plan), {})
    agreement = agreed_apart(plan, roster.members, tried=False)
    check_policy(file, agreement, roster)
    check_accepted_inputs(agreement, file.policy, home.path)
    check_ledgers_hold(agreement, file.name, LedgersOfDocuments(home.ledgers).runs())
    corpus = documents_of(file, agreement, stages)
    check_share(file.name, corpus, agreement.profile, roster.members)
    check_holds(file.name, corpus, roster.holds[file.name], Unit.PERSON if agreement.unit is Unit.PERSON else Unit.DOCUMENT)
    joining = Joining(file, home, roster, keys, agreement, corpus)
    check_delta(file.name, joining.units, agreement.profile)  # the ledger's own is checked when it is opened
    check_kind(corpus, agreement)
    check_most_epsilon(agreement, file.policy, joining.runs())
    return joining


def check_module(file: PartyFile) -> None:
    """Refuses, before anything of it is imported, a module in the party's own plan that its policy does not allow."""
    with named_in(file.path, file.place(file.plan)):
        table = read_toml(file.place(file.plan)).get("model")
    places = [table, table.get("settings")] if isinstance(table, Mapping) else []
    for module in [str(place["module"]) for place in places if isinstance(place, Mapping) and place.get("module")]:
        if not (file.policy.allows_module(module) and file.policy.allows_model("torch-module")):
            raise NotAllowedHere("Module", "the module", module, "plan", ", ".join(file.policy.modules or file.policy.models))


def check_policy(file: PartyFile, agreement: Agreement, roster: FederationRoster) -> None:
    """Refuses a plan or a roster that the party's own policy does not allow. No document is read."""
    policy, profile, model = file.policy, agreement.profile, agreement.plan.model.name
    if not policy.allows_profile(profile.name, profile.digest):
        allowed = ", ".join(policy.profiles)
        raise NotAllowedHere("Profile", "profile", f"{profile.name} ({profile.digest.hex()})", "plan", allowed)
    if not policy.allows_model(model):
        raise NotAllowedHere("Model", "model", model, "plan", ", ".join(policy.models))
    stops_by = (HELD_OUT,) if agreement.plan.training.stop == HELD_OUT else ()
    for question in (*before_training(agreement), TRAIN, *stops_by):  # without these there is no run
        if not policy.allows_question(question):
            raise NotAllowedHere("Question", "the question", question, "plan", ", ".join(policy.questions))
    _check_bound(file, agreement)
    _check_roster(policy, agreement, roster)


def _check_bound(file: PartyFile, agreement: Agreement) -> None:
    """Refuses a budget of another unit, or above the most that is allowed; and no budget at all, unless its profile is named.

    A policy that says nothing of budgets allows what the party's own copy of the plan says.
    """
    policy, profile, budget = file.policy, agreement.profile, agreement.budget
    units = (policy.unit,) if policy.unit else tuple(one.value for one in Unit if one.whole_documents)
    if not policy.unit and not file.privacy.epsilon:
        return
    per = f"a budget for each {' or '.join(units)}"
    if budget is None:
        if not policy.names_profile(profile.name, profile.digest):
            allowed = f"profiles with {per}, and profiles without a bound that `profiles` names"
            raise NotAllowedHere("Unbounded", "releases without a bound, of profile", profile.name, "plan", allowed)
        return
    if budget.unit.value not in units:
        raise NotAllowedHere("Unit", "a budget for each", budget.unit.value, "plan", per)
    if 0 < policy.most_epsilon < budget.epsilon:
        most = f"{downward(policy.most_epsilon)} and less, for each {policy.unit}"
        raise NotAllowedHere("Epsilon", "epsilon =", f"{upward(budget.epsilon)} for each {budget.unit.value}", "plan", most)


def _check_roster(policy: PolicyChoice, agreement: Agreement, roster: FederationRoster) -> None:
    parties, shown = agreement.plan.federation.cohort or len(roster.members), roster.coordinator.fingerprint
    asked = cohort_of(agreement.profile, roster.members[:parties], least=Least(policy.least_parties))
    left = min(parties, agreement.profile.aggregation.remaining(asked, len(roster.members)))
    if left < policy.least_parties:
        few = counted(left, "party", "parties")
        raise NotAllowedHere("Parties", "a sum over", few, "plan or roster", f"{policy.least_parties} and more")
    documents = sum(documents_held(agreement.profile, roster.members, roster.holds).values())
    if documents < policy.least_documents:
        held = counted(documents, "document")
        raise NotAllowedHere("Parties", "a sum over", held, "roster", f"{policy.least_documents} and more")
    if not policy.allows_coordinator(shown):
        allowed = ", ".join(policy.coordinators)
        raise NotAllowedHere("Coordinator", "a coordinator with the fingerprint", shown, "roster", allowed)


def documents_of(file: PartyFile, agreement: Agreement, stages: Stages) -> Corpus:
    """Reads the party's documents. Their keys follow from what they say, under the secret of the party's home."""
    data, secret = file.data, PartyHome.named_in(file).secret_of_names()
    how: dict[str, Any] = {"name": data.identity, "secret": secret, **data.columns()}
    with named_in(file.path, file.place(data.source)):
        return read_under(agreement.plan, agreement.budget, file.place(data.source), stages, **how)


def join(
    joining: Joining,
    carrier_of: Callable[[PacedParty], Carrier],
    watch: PartyWatch,
    stop: threading.Event,
    command: tuple[str, ...] = (),
) -> Mapping[str, Any]:
    """Takes part until the run has ended, and writes what came of it. Set `stop`, and the party leaves; it may come back.

    It comes back with that command, if it is not the usual one.
    """
    with (
        alone_in(joining.home.data),
        closing(joining.file.engine.make()) as engine,
        closing(PacedParty(joining.party(watch, engine), SystemClock(stop))) as paced,
    ):
        ended = carrier_of(paced).run(paced.handle, stop) or paced.party.finished is not None
        if not ended:
            raise Failed(
                ("this party left before the run had ended; {answers:answer was|answers were} given, and nothing is lost"),
                hint="come back with `{command}`",
                answers=int(paced.party.store.rows("SELECT COUNT(*) FROM rounds")[0][0]),
                command=shlex.join(command or ("securetm", "join", str(joining.file.path))),
            )
        return keep_result(paced.party, joining.facts())


def check_accepted_inputs(agreement: Agreement, policy: PolicyChoice, home: Path) -> None:
    """Refuses an input that is public or paid for by somebody's word only, unless the party's policy accepts it."""
    for one in agreement.inputs if agreement.budget is not None else ():
        built_in = one.origin.kind is OriginKind.PUBLIC and not one.declared and not one.digest
        if not (built_in or _is_own(one, home) or accepted_as(one) in policy.inputs):
            says = "the plan says that it is" if one.declared else "it says of itself that it is"
            problem = f"rests on somebody's word: {says} {one.origin.in_words()}"
            kept = " and if your documents took part in none of its runs that your ledgers do not hold"
            not_in = kept if one.origin.entries else ""
            instead = f'if you believe it{not_in}, write inputs = ["{accepted_as(one)}"] under [policy] of PARTY.toml'
            raise BadSetting("[origins]", one.setting, repr(one.shown), problem, instead=instead)


def check_ledgers_hold(agreement: Agreement, party: str, runs: Collection[str]) -> None:
    """Refuses to start from a run that names this party, and that none of its ledgers holds: what it spent would be lost."""
    for entry in entries_of(agreement.inputs):
        if entry.run not in runs and not entry.simulated and party in entry.parties:
            problem = f"comes from the run {entry.run}, in which {party} took part, and no ledger of this home holds it"
            instead = "put the ledgers of that run back into this home; without them nobody knows what was spent"
            raise BadSetting("[training]", "continue_from", "a model", problem, instead=instead)


def check_most_epsilon(agreement: Agreement, policy: PolicyChoice, runs: Collection[str]) -> None:
    """Refuses a run that would spend more than the policy allows, with what its documents had spent in what it starts from."""
    before = before_in_ledger(agreement, runs).epsilon
    epsilon = before + (agreement.budget.epsilon if agreement.budget else 0.0)
    if before and 0 < policy.most_epsilon < epsilon:
        asked = "Epsilon", "epsilon =", upward(epsilon)
        raise NotAllowedHere(*asked, "plan with what it starts from", f"{downward(policy.most_epsilon)} and less")


def _is_own(one: StartingInput, home: Path) -> bool:
    """Whether this party itself wrote that very file when a training had ended, with its origin in it."""
    kept = home.glob(f"data/*/runs/*/{RELEASE}/{MODEL}")
    return bool(one.digest) and any(hashlib.sha256(path.read_bytes()).hexdigest() == one.digest for path in kept)
