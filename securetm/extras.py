"""Libraries that only some work needs, and the extra of securetm that installs each."""

from __future__ import annotations

from securetm.errors import Mistake

EXTRA_OF = {
    "flwr": "flower",
    "huggingface_hub": "embeddings",
    "matplotlib": "report",
    "ot": "evaluate",
    "pandas": "pandas",
    "pyarrow": "parquet",
    "ray": "ray",
    "sentence_transformers": "embeddings",
    "sklearn": "evaluate",
    "tenseal": "he",
    "torch": "neural",
    "transformers": "embeddings",
    "typst": "report",
}


def missing_extra(problem: ModuleNotFoundError) -> Mistake | None:
    """What to install for an import that failed; None where no extra of securetm brings it."""
    library = (problem.name or "").partition(".")[0]
    if library not in EXTRA_OF:
        return None
    extra = EXTRA_OF[library]
    hint = "pip install 'securetm[{extra}]'"
    return Mistake("this needs {library}, which is not installed", hint=hint, library=library, extra=extra)
