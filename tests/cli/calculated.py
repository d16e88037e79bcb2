"""Asks the calculator on the command line, also about ledgers made here. It tests nothing itself."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit

from .conftest import Said, securetm


def budget(arguments: str) -> Said:
    return securetm("budget", *shlex.split(arguments))


def found(arguments: str) -> Any:
    said = budget(f"{arguments} --json")
    assert said.code == 0, said.err
    return said.json


def by(result: Any) -> dict[str, float]:
    return {row["accountant"]: row["epsilon"] for row in result["by_accountant"]}


def write_ledger(path: Path, *runs: str) -> None:
    with Ledger.open(path, "north", Budget(Unit.DOCUMENT, 3.0, 1e-5), "news") as ledger:
        for run in runs:
            for serial in range(6):
                spend = Spend(PoissonSampledDpEvent(0.05, GaussianDpEvent(2.0)))
                about = {"profile": "dp-local", "digest": "ab", "unit": "document", "question": "train", "serial": serial}
                ledger.charge(run, spend, about)
