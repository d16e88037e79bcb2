"""contextualized-topic-models' CombinedTM, trained an epoch at a time on request, so that another model can take turns with it.

Run by an interpreter that has it: python ctm_epochs.py NAME COUNTS.npz EMBEDDINGS.npy TOPICS BATCH SEED
Each line of input is a number of epochs and a file for topics, or "-"; each line of output is one JSON document.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse


def made(counts: Any, embeddings: Any, topics: int, batch: int, seed: int) -> tuple[Any, Any]:
    """The peer's model with its own settings, on one thread and without processes that load data, and its documents."""
    import torch
    from contextualized_topic_models.datasets.dataset import CTMDataset  # type: ignore[import-not-found]
    from contextualized_topic_models.models.ctm import CombinedTM  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    words = counts.shape[1]
    sizes = {"bow_size": words, "contextual_size": embeddings.shape[1], "n_components": topics}
    model = CombinedTM(**sizes, batch_size=batch, num_data_loader_workers=0)
    return model, CTMDataset(embeddings, sparse.csr_matrix(counts), {word: str(word) for word in range(words)})


def main() -> None:
    name, path, beside, topics, batch, seed = sys.argv[1:]
    warnings.simplefilter("ignore")
    model, documents = made(sparse.load_npz(path), np.load(beside), int(topics), int(batch), int(seed))
    print(json.dumps({"version": version(name), "instructions": f"torch {version('torch')}"}), flush=True)  # noqa: T201
    for line in sys.stdin:
        epochs, out = line.split()
        begun = time.perf_counter()
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):  # its progress bar
            model.num_epochs = int(epochs)
            if model.num_epochs:
                model.fit(documents, do_train_predictions=False)
        seconds = time.perf_counter() - begun
        if out != "-":
            scores = model.model.beta.detach().double().numpy()
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            np.savez(out, topics=shares / shares.sum(axis=1, keepdims=True), alpha=np.ones(len(shares)))
        print(json.dumps({"seconds": seconds}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
