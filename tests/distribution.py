"""Which tests go to which process when there are several: whole files, and long tests that share nothing one by one and first.

A long file that comes last leaves the other processes idle. It is a plugin of pytest and tests nothing itself.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

MEMORY, ROOM = Path("/dev/shm"), 4 << 30  # a file system in memory, and the bytes that must be free there
APART = ("tests/docs/test_blocks.py",)
SOURCE = (  # they read the whole source, which is parsed once
    "tests/test_house.py",
    "tests/test_sentences.py",
    "tests/test_wording.py",
    "tests/test_kernel_cache.py",
    "tests/mutations/test_faults.py",
)
EMBEDDING = (
    "tests/corpus/test_text_embeddings.py",
    "tests/federation/test_embeddings_at_the_party.py",
)  # one model, loaded once
# On a fresh clone the first file compiles the kernels that most tests use; meanwhile the other process runs files without any.
LONG = (
    "tests/auditing/test_baselines.py",
    "tests/docs/test_site.py",
    "tests/test_packaging.py",
    "tests/test_imports.py",
    "tests/test_example_package.py",
    *APART,
    "tests/federation/test_private_runs.py",
    "tests/cli/test_audit.py",
    "tests/cli/test_cli.py",
    "tests/federation/test_resume.py",
    "tests/auditing/test_prepared_weights.py",
    "tests/auditing/test_membership.py",
    "tests/federation/test_degenerate_corpora.py",
)


def pytest_configure() -> None:
    """Folders of tests lie in memory where there is room: federations write small files durably, thousands of times."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_sessionstart(session: pytest.Session) -> None:
    """On a fresh clone pytest rewrites the assertions of every test file. Of two processes each rewrites one half.

    The second begins at the end; what one has rewritten is on the disk when the other comes to it.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and not session.config.option.file_or_dir:
        for path in sorted(session.path.glob("tests/**/test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # collection says what is wrong with a file
                import_module(".".join(path.relative_to(session.path).with_suffix("").parts))


def group_of(nodeid: str) -> str:
    """Tests of one group run in one process, one after the other."""
    file = nodeid.split("::", 1)[0]
    if file in APART:
        return nodeid
    return next((group[0] for group in (SOURCE, EMBEDDING) if file in group), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, in the order above."""
    place = {file: at for at, file in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.nodeid.split("::", 1)[0], len(LONG)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What hands groups out in the order in which they were collected, where whole files are asked for."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Groups(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return Groups(config, log)
