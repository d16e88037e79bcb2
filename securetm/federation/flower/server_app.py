"""The Flower ServerApp of a federation of separate organisations: the same coordinator as `securetm serve`, behind SuperLink.

It reads the coordinator's own plan, keys and roster from this machine, and nothing of them from the app that was uploaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from logging import getLogger
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from securetm.credentials.keys import Passphrase, are_encrypted, passphrase_needed
from securetm.federation.coordinator.serving import CoordinatorFiles, Serving, opened
from securetm.federation.flower.flower_message import BadFlowerSetting
from securetm.federation.flower.nodes import FlowerParties
from securetm.plans.recommend import whole_plan

app = ServerApp()
_log = getLogger("flwr")


@app.main()  # type: ignore[untyped-decorator]
def main(grid: Grid, context: Context) -> None:
    """Begins the run of the plan that `plan` names, or goes on with it, and takes it to its end."""
    result = conduct(grid, context.run_config)
    _log.info("securetm: %d rounds, kept in %s", result["rounds"], result["directory"])


def conduct(grid: Grid, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Coordinates the parties of the roster, whichever nodes they are behind."""
    path = Path(str(settings.get("plan") or ""))
    if not path.is_absolute():
        raise BadFlowerSetting("plan", "must be an absolute path: Flower runs the app in a folder of its own")
    plan = whole_plan(path, {})
    choice, files = plan.coordinator, CoordinatorFiles.read(plan.coordinator, path.parent, _passphrase)
    folder, status = opened(plan, path.parent / choice.out, files, beside=sys.stderr)
    roster, identity = files.roster, files.keys.identity
    parties = FlowerParties(grid, roster.members, roster.keys, identity, roster.digest, choice.deadline, status)
    with parties.introduced():
        return Serving(folder, parties, status, choice, "flwr run").run()


def _passphrase(folder: Path) -> Passphrase | None:
    """The passphrase of the coordinator's keys, which nobody can be asked for here: from SuperLink's own environment."""
    if not are_encrypted(folder):
        return None
    if (text := os.environ.pop("SECURETM_PASSPHRASE", None)) is None:
        raise passphrase_needed(str(folder))
    return Passphrase(text)
