"""All sentences about mistakes and failures that a person reads, out of the tree: `python -m tests.sentences` writes the list.

The list is read as text when it changes. Other tests look at types and facts, and at a few words.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from securetm.errors import error_classes

from .source_trees import files, tree

LIST = Path(__file__).with_name("sentences.txt")
_WORDS = 3  # in a sentence, at least: shorter texts are names of settings and places


def sentences() -> str:
    """One sentence a line, in the order of the alphabet: moving code changes nothing. Facts stand in braces."""
    return "".join(f"{one}\n" for one in sorted({*_of_classes(), *_of_calls()}))


def _of_classes() -> Iterator[str]:
    for name, kind in error_classes().items():
        yield from (f"{name}: {' '.join(text.split())}" for text in (inspect.getdoc(kind) or "", kind.hint) if text)


def _of_calls() -> Iterator[str]:
    """What errors are made with where they are raised, and what `require` says of a setting."""
    makers = {"BadSetting", "Failed", "Mismatch", "Mistake", "check_setting", "require", *error_classes()}
    trees = [tree(path) for path in files()]
    functions = (one for module in trees for one in module.body if isinstance(one, ast.FunctionDef) and one.returns)
    makers |= {one.name for one in functions if ast.unparse(one.returns) in {"Failed", "Mismatch", "Mistake"}}
    for module in trees:
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in makers:
                for said in (*node.args, *(one.value for one in node.keywords)):
                    if len((text := _text(said)).split()) >= _WORDS:
                        yield text


def _text(node: ast.expr) -> str:
    """A text as it stands in the code, without what is put into it."""
    if isinstance(node, ast.Constant):
        return " ".join(node.value.split()) if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return " ".join("".join(str(one.value) if isinstance(one, ast.Constant) else "{…}" for one in node.values).split())
    return ""


if __name__ == "__main__":
    LIST.write_text(sentences(), "utf-8")
