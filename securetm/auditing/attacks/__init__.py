"""The registry of attacks: each name, and the module and object that declare it. It imports no attack.

An attack of another package is found through its entry point in the group `securetm.attacks`.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from securetm.registries import Registry

if TYPE_CHECKING:
    from securetm.auditing.attack import Attack

_OWN = {
    "answer_times": "traffic:ANSWER_TIMES",
    "centre_difference": "centre_inversion:CENTRE_DIFFERENCE",
    "centre_inversion": "centre_inversion:CENTRE_INVERSION",
    "centre_updates": "centre_inversion:CENTRE_UPDATES",
    "collusion": "collusion:COLLUSION",
    "column_frequencies": "hidden_words:COLUMN_FREQUENCIES",
    "column_pairs": "hidden_words:COLUMN_PAIRS",
    "count_reconstruction": "count_reconstruction:ATTACK",
    "decoder_inversion": "gradient_inversion:DECODER_INVERSION",
    "differencing": "differencing:ATTACK",
    "embedding_inversion": "embedding_inversion:EMBEDDING_INVERSION",
    "embedding_sum_inversion": "embedding_inversion:EMBEDDING_SUM_INVERSION",
    "factor_updates": "update_inversion:FACTOR_UPDATES",
    "gradient_inversion": "gradient_inversion:GRADIENT_INVERSION",
    "gradient_matching": "gradient_inversion:GRADIENT_MATCHING",
    "local_epochs": "update_inversion:LOCAL_EPOCHS",
    "many_run_epsilon": "many_runs:MANY_RUN_EPSILON",
    "many_run_pairs": "many_runs:MANY_RUN_PAIRS",
    "many_run_words": "many_runs:MANY_RUN_WORDS",
    "membership": "membership:MEMBERSHIP",
    "membership_counts": "membership:MEMBERSHIP_COUNTS",
    "membership_transcript": "membership:MEMBERSHIP_TRANSCRIPT",
    "one_run_curve": "one_run:ONE_RUN_CURVE",
    "one_run_epsilon": "one_run:ONE_RUN_EPSILON",
    "one_run_pairs": "one_run:ONE_RUN_PAIRS",
    "poisoning": "poisoning:ATTACK",
    "prepared_weights": "prepared_weights:ATTACK",
    "property_inference": "party_inference:PROPERTY_INFERENCE",
    "rare_documents": "rare_documents:ATTACK",
    "rare_pairs": "rare_rows:RARE_PAIRS",
    "rare_rows": "rare_rows:ATTACK",
    "rare_words": "vocabulary:RARE_WORDS",
    "shared_key": "collusion:SHARED_KEY",
    "source_inference": "party_inference:SOURCE_INFERENCE",
    "sparse_sums": "vocabulary:SPARSE_SUMS",
    "sum_inversion": "gradient_inversion:SUM_INVERSION",
    "traffic": "traffic:TRAFFIC",
    "trap_answers": "trap_weights:TRAP_ANSWERS",
    "trap_weights": "trap_weights:TRAP_WEIGHTS",
    "update_inversion": "update_inversion:UPDATE_INVERSION",
    "vocabulary_leakage": "vocabulary:VOCABULARY_LEAKAGE",
    "word_dictionary": "hidden_words:WORD_DICTIONARY",
}

ATTACKS = Registry(
    "attack",
    "securetm.attacks",
    "securetm.auditing.attack:Attack",
    {name: f"{__name__}.{place}" for name, place in _OWN.items()},
    named=True,
)


def attack_names() -> tuple[str, ...]:
    return ATTACKS.names()


def attack_called(name: str) -> Attack:
    attack: Attack = ATTACKS.load(name)
    return attack


# ---- what an attack declares, without importing its arithmetic -----------------------------------------------------------

_UNSAID = object()
_UNLESS_SAID = {"allowed": None, "bears_on": ()}


@cache
def declared(attack: str, field: str) -> Any:
    """A field of an attack, as its file says it: the value, or the source where that has to be computed.

    It may stand in the declaration that this one is a `replace` of. An attack that is declared in another way, as a stranger's
    may be, is loaded and asked.
    """
    module, _, declaration = ATTACKS.find(attack).place.partition(":")
    said = _said(module, declaration, field)
    return getattr(attack_called(attack), field) if said is _UNSAID else said


def _said(module: str, declaration: str, field: str) -> Any:
    source = find_spec(module)
    assert source is not None  # an attack is declared somewhere
    assert source.origin is not None
    body = ast.parse(Path(source.origin).read_text("utf-8")).body
    made = [node for node in body if isinstance(node, ast.Assign) and _plain_name(node.targets[0]) == declaration]
    call = made[0].value if len(made) == 1 else None
    if not isinstance(call, ast.Call) or _plain_name(call.func) not in ("Attack", "replace"):
        return _UNSAID
    given = {one.arg: one.value for one in call.keywords}
    if field in given:
        try:
            return ast.literal_eval(given[field])
        except ValueError:
            return ast.unparse(given[field])
    if None in given:  # more settings, by **
        return _UNSAID
    if not call.args:
        return _UNLESS_SAID[field]
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    }
    base = _plain_name(call.args[0])
    return _said(*imported.get(base, (module, base)), field) if base else _UNSAID


def _plain_name(node: ast.expr) -> str:
    """A plain name; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else ""
