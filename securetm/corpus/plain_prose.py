"""A docstring without doctests, literal blocks, tables of parameters and markup: sentences stay. It parses no Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

_RULE = re.compile(r"^\s*([-=~^\"'#*+])\1{2,}[\s\-=~^\"'#*+|]*$")
_DOCTEST = re.compile(r"^\s*(>>>|\.\.\.(\s|$)|In \[\d+\]:|\$ )")
_CODE_DIRECTIVE = re.compile(
    r"^\s*\.\.\s+(math|code|code-block|sourcecode|plot|ipython|test\w+|doctest|image|figure|table|highlight|include|"
    r"currentmodule|autosummary|auto\w+|toctree|_[^:]*|\[)(::|:|\s|$)"
)
_DIRECTIVE = re.compile(r"^\s*\.\.\s+[\w-]+::")
_TYPED = re.compile(r"^\s*[*`\w][*`\w, .]*\s:\s.*$")  # numpydoc's "axis : int, optional"
_NAMED = re.compile(r"^\s*(?:[-*]\s+)?[*`]*\w+[`*]*\s*(?:\([^)]*\))?:(?=\s|$)")  # Google's "dim (int): ..." and "Args:"
_FIELD = re.compile(r"^\s*:\w+[^:]*:\s")  # Sphinx's ":param x: ..."
_INLINE = re.compile(r":math:`[^`]*`|``[^`]*``|\$[^$\n]*\$|https?://[^\s>`]+|\{[^}\n]*\}")
_ROLE = re.compile(r":[\w:+-]+:(?=`)")
_TARGET = re.compile(r"`[~!]?(?:[\w.]+\.)?([^`<]*)(?:<[^`]*>)?`_?")


def prose(docstring: str) -> str:
    """The sentences of a docstring; blank lines, which end a sentence, are kept."""
    lines = (_FIELD.sub("", _NAMED.sub("", line, count=1), count=1) for line in _without_code(docstring.splitlines()))
    text = "\n".join(lines)  # without the names that lines describe
    text = _TARGET.sub(r"\1", _ROLE.sub("", _INLINE.sub(" ", text)))
    return text.strip()


def _without_code(lines: list[str]) -> Iterator[str]:
    hidden = -1  # lines indented deeper than this belong to a block of code
    answering = False  # the output of a doctest goes up to the next blank line
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            answering = False
            yield ""
            continue
        if hidden >= 0 and indent > hidden:
            continue
        opens_code = _CODE_DIRECTIVE.match(line) or (line.rstrip().endswith("::") and not _DIRECTIVE.match(line))
        hidden = indent if opens_code else -1
        answering = answering or bool(_DOCTEST.match(line))
        if not (answering or _is_markup(line, lines[number + 1] if number + 1 < len(lines) else "")):
            yield _DIRECTIVE.sub("", line).removesuffix("::")


def _is_markup(line: str, below: str) -> bool:
    """Whether a line is a rule, a heading above one, or only a name with its type."""
    return bool(_RULE.match(line) or _RULE.match(below) or _TYPED.match(line) or _CODE_DIRECTIVE.match(line))
