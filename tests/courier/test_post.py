"""`securetm post`, one pass of a member, as a timer runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from securetm.federation.courier import one_pass
from securetm.federation.party.failure_log import Failure

from ..cli.conftest import securetm
from ..federation.joined import NAMES, PLAN
from .passing import ByCourier


def test_a_party_that_cannot_answer_ends_with_3(keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ByCourier.of(keys, tmp_path, PLAN)

    def failing(joining: Any, place: Any, status: Any) -> one_pass.Pass:
        status.failed(Failure("LedgerRolledBack", "the ledger is older than others saw it", "put the newest copy back"))
        return one_pass.Pass(1, 2, ("coordinator",), {}, 0)

    monkeypatch.setattr(one_pass, "pass_of_party", failing)
    said = securetm("post", str(run.organisations.file(NAMES[0])), "--courier", str(run.letters))
    assert said.code == 3
    assert "Taken in: 1 letter. Awaited: coordinator." in said.out
    assert "error: this party could not answer: LedgerRolledBack: the ledger is older than others saw it" in said.err
    assert "hint: put the newest copy back" in said.err
