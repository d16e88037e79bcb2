"""What a party under a budget lets a training start from. It checks this by its own files, since a coordinator may lie.

What is built in is public by securetm's own code. A model that the party wrote at its own home has an origin that the party
wrote. Everything else rests on somebody's word, so the party's owner has to accept it, by its digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

from securetm.contracts import OriginKind, StartingInput
from securetm.errors import BadSetting
from securetm.federation.joining_errors import NotAllowedHere
from securetm.federation.origins import before_in_ledger
from securetm.federation.release import MODEL, RELEASE
from securetm.plans.agreement import Agreement
from securetm.plans.origins import accepted_as, entries_of
from securetm.plans.party_file import PolicyChoice
from securetm.wording import downward, upward


def check_accepted_inputs(agreement: Agreement, policy: PolicyChoice, home: Path) -> None:
    """Refuses an input that is public or paid for by somebody's word only, unless the party's policy accepts it."""
    for one in agreement.inputs if agreement.budget is not None else ():
        if not (_is_built_in(one) or _is_own(one, home) or accepted_as(one) in policy.inputs):
            says = "the plan says that it is" if one.declared else "it says of itself that it is"
            problem = f"rests on somebody's word: {says} {one.origin.in_words()}"
            not_in = (
                " and if your documents took part in none of its runs that your ledgers do not hold"
                if one.origin.entries
                else ""
            )
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
        raise NotAllowedHere(
            "epsilon =", upward(epsilon), "plan with what it starts from", f"{downward(policy.most_epsilon)} and less"
        )


def _is_built_in(one: StartingInput) -> bool:
    return one.origin.kind is OriginKind.PUBLIC and not one.declared and not one.digest


def _is_own(one: StartingInput, home: Path) -> bool:
    """Whether this party itself wrote that very file when a training had ended, with its origin in it."""
    kept = home.glob(f"data/*/runs/*/{RELEASE}/{MODEL}")
    return bool(one.digest) and any(hashlib.sha256(path.read_bytes()).hexdigest() == one.digest for path in kept)
