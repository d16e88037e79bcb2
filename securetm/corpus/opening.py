"""Opens documents wherever they are: a corpus on disk stays there, and documents of any other form are read into memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from securetm.corpus.building import Embed
from securetm.corpus.corpus import PartyCorpus
from securetm.corpus.files import OnProgress
from securetm.corpus.readers import read_corpus
from securetm.corpus.shards.manifest import Manifest, is_stored
from securetm.corpus.shards.shard_errors import ColumnsWereChosen, OtherTokeniser
from securetm.corpus.shards.sharded_corpus import ShardedCorpus
from securetm.corpus.tokeniser import Tokeniser


def open_corpus(
    path: str | Path,
    *,
    tokeniser: Tokeniser,
    name: str | None = None,
    embed: Embed | None = None,
    on_progress: OnProgress | None = None,
    secret: bytes = b"",
    **columns: Any,
) -> PartyCorpus:
    """The documents of a path, for a party. A corpus on disk must have been built with this tokeniser and these columns."""
    if not is_stored(Path(path)):
        made: dict[str, Any] = {"tokeniser": tokeniser, "name": name, "embed": embed, "secret": secret}
        return read_corpus(path, on_progress=on_progress, **made, **columns)
    corpus = ShardedCorpus.open(Path(path), name, secret)
    _check_settings(str(path), corpus.view.store.manifest, tokeniser, columns)
    return corpus


def _check_settings(path: str, manifest: Manifest, tokeniser: Tokeniser, columns: Mapping[str, str | None]) -> None:
    """Refuses settings that would have made other documents of the same source."""
    wanted: Mapping[str, Any] = tokeniser.settings() or {"words": "a function"}
    for setting, value in wanted.items():
        found = manifest.tokeniser.get(setting)
        if found != (list(value) if isinstance(value, tuple) else value):
            raise OtherTokeniser(path, setting, _short(found), _short(value))
    for role, column in columns.items():
        if column and manifest.columns.get(role) != column:
            raise ColumnsWereChosen(path, role, column)


def _short(value: Any) -> str:
    return f"{len(value)} words" if isinstance(value, list | tuple) else str(value)
