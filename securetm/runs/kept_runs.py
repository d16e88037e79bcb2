"""The runs that lie in a folder: what each one is, and how it is deleted. It trains nothing and changes no run.

What a run kept is deleted, and nothing else: no ledger that belongs to documents, nothing that a party has to remember of its
answers, no file that somebody put into the folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from securetm.data_classes import dataclass
from securetm.errors import BadSetting, FileNotWritten, Mistake, SecuretmError, refused_as
from securetm.federation.folder import KEPT, LEDGERS, LOG, PLAN, RESULT, RUN, NotARun, alone_in, check, result_of
from securetm.federation.health import LOCK
from securetm.federation.party.party import WORDS
from securetm.federation.party.result import REPORT
from securetm.federation.release import RELEASE
from securetm.federation.store import DamagedStore, read_json
from securetm.federation.topic_labels import LABELS
from securetm.resources import user_cache

SIMULATION, COORDINATOR, PARTY = "simulation", "coordinator", "party"
_FOLDERS = (RELEASE, "coordinator", "parties", "transcript", "audits")
_FILES = (LABELS, LOG, LOCK, RESULT, KEPT, PLAN, RUN)  # the record goes last: until then it is a run
_AT_HOME = "data/*/runs/*"  # where a party keeps runs
_NAMES_FEDERATION, _HEAD = b'"federation"', 4096  # what every report says, and within how many bytes
_AT_PARTY = (LABELS, WORDS, REPORT)  # what it has to remember of its answers stays


@dataclass(frozen=True)
class KeptRun:
    """One run as it lies on disk. A figure that is not known is None."""

    name: str
    directory: str
    begun: str  # UTC; of a party's run when it ended
    size: int  # bytes on disk
    kind: str = SIMULATION  # or coordinator, or party
    model: str = ""
    profile: str = ""
    parties: int | None = None
    finished: bool = False
    rounds: int | None = None
    perplexity: float | None = None
    ratio: float | None = None  # of the perplexity to that of word frequencies alone
    npmi: float | None = None
    epsilon: float | None = None  # the most that one party spent
    unit: str | None = None
    seconds: float | None = None
    bytes_sent: int | None = None
    trouble: str = ""  # why its files cannot be read


def runs_in(place: Path) -> list[KeptRun]:
    """The run in this folder, or the runs beneath it: those in a folder of runs, or those at home with a party."""
    beneath = sorted([*place.glob("*"), *place.glob(_AT_HOME)]) if place.is_dir() else []
    return [_told(path) for path in (place, *beneath) if _is_run(path)]


def found_run(name: str, place: Path) -> Path:
    """The folder of the run of that name, also where it lies in a party's home, or at that path. Refuses what is no run."""
    at_home = [path for path in sorted(place.glob(_AT_HOME)) if path.name == name]
    for path in (place / name, *at_home, Path(name)):
        if path.is_symlink():
            raise BadSetting("", "RUN", name, "is a link, and not the folder of a run")
        if _is_run(path):
            return path
    there = [path for path in (place / name, Path(name)) if path.exists()]
    meant = place / name if Path(name).name == name else Path(name)
    raise NotARun(str(next(iter(there), meant)), "run")


def delete(path: Path) -> tuple[str, ...]:
    """Deletes what a run kept, and its folder if nothing else is in it. Returns the names of what was left there.

    Refuses a run that a process is working on, and one whose folder holds ledgers of documents, which outlive runs.
    """
    if not _is_run(path) or path.is_symlink():
        raise NotARun(str(path), "run")
    if not (path / RUN).is_file():
        return _deleted(path, (RELEASE,), _AT_PARTY)
    trial = _check_ledgers(path)
    if _is_another_programs(path):
        raise NotARun(str(path), "run")
    with alone_in(path):
        return _deleted(path, (*_FOLDERS, *([LEDGERS] if trial else [])), _FILES)


def kept_cache() -> Path | None:
    """The folder of this user's cache, if there is one: documentation strings and embeddings, which can be computed again."""
    folder = user_cache()
    return folder if folder.is_dir() else None


def delete_cache(folder: Path) -> None:
    with refused_as(FileNotWritten, folder):
        shutil.rmtree(folder)


def _is_run(path: Path) -> bool:
    return (path / RUN).is_file() or _is_report(path / REPORT)


def _is_report(file: Path) -> bool:
    """Whether a party's report begins so. Other tools call their files the same."""
    try:
        with file.open("rb") as stream:
            return _NAMES_FEDERATION in stream.read(_HEAD)
    except OSError:
        return False


def _told(path: Path) -> KeptRun:
    read = _at_party if not (path / RUN).is_file() else _of_result if (path / RESULT).is_file() else _of_record
    try:
        facts = read(path)
    except (SecuretmError, OSError) as problem:
        facts = {"trouble": str(problem)}
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        facts = {"trouble": str(DamagedStore(str(path), "it is not the record of a run"))}
    size = sum(one.lstat().st_size for one in path.rglob("*") if one.is_file() and not one.is_symlink())
    record = path / RUN if (path / RUN).is_file() else path / REPORT  # no other file says when the run began
    begun = datetime.fromtimestamp(record.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return KeptRun(**{"name": path.resolve().name, "directory": str(path), "begun": begun, "size": size, **facts})


def _of_result(path: Path) -> dict[str, Any]:
    result = result_of(path)
    return {
        **_of_record(path),
        "finished": True,
        "parties": len(result["parties"]),
        **{name: result[name] for name in ("model", "profile", "rounds", "seconds")},
        **_figures(result["quality"]),
        "ratio": over_frequencies(result),
        **_spent(result["spent"]),
        "bytes_sent": result["bytes_up"] + result["bytes_down"],
    }


def _of_record(path: Path) -> dict[str, Any]:
    facts = read_json(path / RUN)
    check(path, path / RUN)
    kind = COORDINATOR if "federation" in facts else SIMULATION
    plan = facts["plan"]
    return {"kind": kind, "model": plan["model"]["name"], "profile": plan["profile"], "parties": len(facts["members"])}


def _at_party(path: Path) -> dict[str, Any]:
    report = read_json(path / REPORT)
    return {
        "kind": PARTY,
        "finished": True,
        "begun": str(report["ended"]),
        "profile": report["plan"]["profile"],
        **{name: report[name] for name in ("model", "rounds")},
        **_figures(report["quality"]),
        **_spent([report["spent"]] if report["spent"] else []),
    }


def _figures(quality: Mapping[str, float]) -> dict[str, float | None]:
    return {"perplexity": quality.get("held_out"), "npmi": quality.get("npmi")}


def over_frequencies(result: Mapping[str, Any]) -> float | None:
    """The perplexity over that of word frequencies alone, on the same words; below 1 the model predicts better."""
    told = result.get("baseline") or {}
    model, alone = told.get("model"), told.get("word_frequencies")
    return model / alone if model is not None and alone else None


def _spent(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    units = [one["unit"] for one in each if one["epsilon"] is not None]
    return {"epsilon": epsilon_told(each), "unit": units[0]} if units else {}


def epsilon_told(spent: Sequence[Mapping[str, Any]]) -> float | None:
    """The most that a run told of one party's documents, together with the runs that it started from; None without a budget.

    The sum of their epsilons bounds that. So does what all runs told by the ledger, which holds these and which a coordinator
    does not know: the smaller one counts, if its delta is no larger.
    """

    def of_party(one: Mapping[str, Any]) -> float:
        whole = one.get("all_runs") if one.get("from_origins") else None
        comparable = whole is not None and one["all_runs_delta"] <= one["delta"]
        return float(min(one["epsilon"], whole) if comparable else one["epsilon"])

    return max((of_party(one) for one in spent if one["epsilon"] is not None), default=None)


def _is_another_programs(path: Path) -> bool:
    """Whether the record is a table that says nothing of a run; one that cannot be read may have been a run's."""
    try:
        facts = read_json(path / RUN)
    except SecuretmError:
        return False
    return bool(facts) and not {"plan", "members"} & facts.keys()


def _check_ledgers(path: Path) -> bool:
    """Whether the run has ledgers of its own. Refuses a folder with ledgers that are not this run's alone."""
    try:
        trial = str(read_json(path / RUN)["ledgers"]) == LEDGERS
    except (SecuretmError, KeyError):
        trial = False  # then no ledger in it may be deleted
    own = path / LEDGERS
    others = [one for one in path.rglob("*.ledger") if not (trial and own in one.parents)]
    if others:
        raise Mistake(
            "{path} holds a ledger that is not of this run alone: {ledger}",
            hint="what was spent of documents has to outlive runs: move the folder of ledgers to another place first",
            path=str(path),
            ledger=str(others[0]),
        )
    return trial


def _deleted(path: Path, folders: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    with refused_as(FileNotWritten, path):
        for name in folders:
            if (path / name).is_dir() and not (path / name).is_symlink():
                shutil.rmtree(path / name)
        for name in files:
            (path / name).unlink(missing_ok=True)
        left = tuple(sorted(one.name for one in path.iterdir()))
        if not left:
            path.rmdir()
    return left
