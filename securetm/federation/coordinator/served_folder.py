"""The run folder of a coordinator that serves parties over a network: what a coordinator may know, and nothing of a party.

It is read like the folder of a simulated run; the parties' folders and ledgers are not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from securetm.contracts import Origin
from securetm.entropy import OperatingSystem
from securetm.federation.file_digests import KEPT, RUN, bind
from securetm.federation.folder import LEDGERS, RunFolder, check_free, reopen, write_record
from securetm.federation.origins import product_of, run_between_organisations
from securetm.federation.serving_errors import AnotherPlanThere
from securetm.federation.store import read_json
from securetm.plans.agreement import Agreement
from securetm.private_files import private_folder

LOG = "serve.jsonl"


def served_folder(
    path: Path, agreement: Agreement, federation: str, keys: Mapping[str, bytes], *, with_content: bool = False
) -> RunFolder:
    """Opens the run in this folder if it is of the same federation and agreement; makes a new one if there is none.

    Members and their keys are those of the present roster: a party may have come, left, or changed its keys.
    """
    if not (path / KEPT).is_file() or not (path / RUN).is_file():
        return _begun(path, agreement, federation, keys, with_content)
    folder = reopen(path, str(agreement.plan.model.settings.get("module", "")))
    same = {
        "plan": folder.agreement.digest == agreement.digest,
        "profile": folder.agreement.profile.digest == agreement.profile.digest,
        "federation": read_json(path / RUN).get("federation") == federation,
    }
    for what, fits in same.items():
        if not fits:
            raise AnotherPlanThere(str(path), what)
    return replace(folder, agreement=agreement, members=tuple(keys), keys=dict(keys))


def origin_of_served(folder: RunFolder) -> Origin:
    """The origin of what this federation learned: no party spends more than the run's budget."""
    run = run_between_organisations(str(read_json(folder.path / RUN)["federation"]), folder.agreement)
    return product_of(folder.agreement, run, folder.members)


def _begun(path: Path, agreement: Agreement, federation: str, keys: Mapping[str, bytes], with_content: bool) -> RunFolder:
    if not (path / "coordinator").exists():  # killed before it had begun
        (path / RUN).unlink(missing_ok=True)
    check_free(path)
    private_folder(path)
    name = f"{path.resolve().name} {OperatingSystem().bytes(4).hex()}"
    folder = RunFolder(path, agreement, tuple(keys), with_content, dict(keys), name, path / LEDGERS)
    write_record(folder, {"federation": federation})
    bind(path, [path / RUN])
    return folder
