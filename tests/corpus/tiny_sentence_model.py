"""A sentence-transformers model of a few thousand random weights, for tests: a folder as a user would name it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

WORDS = "the cat dog horse sits runs on a mat hill and of rain sun one two three four".split()


def tiny_model(folder: Path, *, size: int = 16, seed: int = 0, words: Sequence[str] = WORDS) -> Path:
    """Writes the model into this folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(seed)
    parts = folder.with_name(f"{folder.name}-parts")
    parts.mkdir(parents=True)
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (parts / "vocab.txt").write_text("\n".join([*marks, *words]))
    BertTokenizerFast(str(parts / "vocab.txt"), do_lower_case=True).save_pretrained(str(parts))
    few = {"hidden_size": size, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * size}
    BertModel(BertConfig(vocab_size=len(words) + len(marks), max_position_embeddings=64, **few)).save_pretrained(str(parts))
    network = Transformer(str(parts), max_seq_length=32)
    SentenceTransformer(modules=[network, Pooling(size)], device="cpu").save(str(folder))
    return folder
