"""Packages that find topics from embeddings, in a process of the peers' environment. This file imports none of them."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lab.peers.other_packages import PeerMissing, command, interpreter
from securetm.contracts import Array
from securetm.corpus.corpus import Corpus
from securetm.corpus.text_embeddings import TextEmbedder
from securetm.corpus.tokeniser import prune

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class SemanticPackages:
    """The packages on one corpus. Their process waits between two fits, and ends with this one.

    They are given the corpus's own most frequent words, because nothing is to be protected.
    """

    def __init__(self, corpus: Corpus, topics: int, words: int) -> None:
        python = interpreter()
        if python is None:
            raise PeerMissing("BERTopic, S3 and FASTopic")
        self._place = tempfile.TemporaryDirectory()
        self._folder = Path(self._place.name)
        listed = prune(corpus, max_words=words)
        sparse.save_npz(self._folder / "counts.npz", sparse.csr_matrix(corpus.project(listed).counts))
        (self._folder / "words.json").write_text(json.dumps(listed), "utf-8")
        np.save(self._folder / "embeddings.npy", np.asarray(corpus.embeddings, dtype=np.float32))
        np.save(self._folder / "vectors.npy", TextEmbedder().embed(listed))
        self._log = (self._folder / "log.txt").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(  # noqa: S603
            command(python, "semantic.py", self._folder, topics),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **_ONE_THREAD},
        )

    def fitted(self, system: str, seed: int) -> tuple[dict[str, Any], Array, Array]:
        """What a fit says of itself; documents x topics; each document's topic, or -1."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{system} {seed}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._log.seek(0)
            complaint = self._log.read()
            if "ModuleNotFoundError" in complaint:
                raise PeerMissing(system)
            raise RuntimeError(complaint)
        with np.load(self._folder / "found.npz") as found:
            return dict(json.loads(line)), found["shares"], found["topics"]
