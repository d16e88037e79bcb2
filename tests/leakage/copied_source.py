"""A copy of the package's source that tests change, and hashes of evidence that are made of the copy. It holds no test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from securetm.leakage import evidence_hashes, source_code
from securetm.leakage.source_code import SourceText


def forget() -> None:
    """What was computed from files is computed again."""
    for cached in (
        evidence_hashes.attack_hash,
        evidence_hashes._parts,
        evidence_hashes._corpus_hash,
        evidence_hashes._judging_hash,
        evidence_hashes._trying_hash,
        evidence_hashes._federation_hash,
    ):
        cached.cache_clear()


@dataclass(frozen=True)
class CopiedSource:
    """The copy. What a test changes of it is put back after the test."""

    folder: Path
    code_of: Callable[[Path], SourceText]  # parses each content once for all tests
    before: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def made(cls, place: Path) -> CopiedSource:
        """The whole source once more."""
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        known: dict[bytes, SourceText] = {}

        def code_of(path: Path) -> SourceText:
            content = path.read_bytes()
            if content not in known:
                known[content] = source_code.code_of.__wrapped__(path)
            return known[content]

        return cls(Path(shutil.copytree(evidence_hashes._HOUSE, place / "securetm", ignore=ignored)), code_of)

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hashes are made of the copy."""
        monkeypatch.setattr(evidence_hashes, "_HOUSE", self.folder)
        monkeypatch.setattr(evidence_hashes, "code_of", self.code_of)
        forget()

    def change(self, name: str, how: Callable[[str], str] = lambda text: f"{text}\nANOTHER = 1\n") -> None:
        """Makes another text of a file; by default it gets one statement more."""
        path = self.folder / name
        text = self.before.setdefault(path, path.read_text("utf-8"))
        path.write_text(how(text), "utf-8")
        forget()

    def restore(self) -> None:
        """Every file is as it was."""
        for path, text in self.before.items():
            path.write_text(text, "utf-8")
        self.before.clear()
