"""What can be read off the source without running it: sizes of files, no mutable state of modules.

That imports run downwards is the work of `lint-imports`. Each allow-list says why an entry is there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from .source_trees import ROOT, files, tree

LONGEST = 800  # lines of a file

# Module-level names that a function changes, with the reason.
HELPERS = "processes are the operating system's: who started them ends them, whatever object asked for them"
MUTATED = {
    "securetm/aggregation/homomorphic/helper_processes.py: _owner": HELPERS,
    "securetm/aggregation/homomorphic/helper_processes.py: _started": HELPERS,
}
# Calls that ask an object what it can do, by file and what they ask, with the reason. None asks a part of the package.
NUMBER = "Python's own protocol of numbers, which numpy's numbers keep too"
SYSTEM = "a function that some operating systems lack"
CLICK = "typer brings click's errors under several names, by version"
MATRIX = "people give a corpus or a matrix of counts, of scipy or of any library like it"
FRAME = "data frames are optional, so their class cannot be named"
GUESSES = {
    "securetm/accounting/ledger/ledger_file.py: getattr(…, 'sqlite_errorcode')": "sqlite3 does not set it on every error",
    "securetm/aggregation/homomorphic/helper_processes.py: hasattr(…, 'sched_getaffinity')": SYSTEM,
    "securetm/aggregation/homomorphic/seal_library.py: hasattr(…, 'memfd_create')": SYSTEM,
    "securetm/cli/main.py: getattr(…, 'ctx')": CLICK,
    "securetm/cli/main.py: getattr(…, 'option_name')": CLICK,
    "securetm/cli/main.py: getattr(…, 'possibilities')": CLICK,
    "securetm/cli/main.py: hasattr(…, 'format_message')": CLICK,
    "securetm/data_classes.py: hasattr(…, '__post_init__')": "what Python's own data classes ask",
    "securetm/data_frames.py: getattr(…, 'index')": FRAME,
    "securetm/auditing/given_run.py: hasattr(…, 'sched_getaffinity')": SYSTEM,
    "securetm/models/given_documents.py: getattr(…, 'columns')": FRAME,
    "securetm/models/given_documents.py: getattr(…, 'ndim')": MATRIX,
    "securetm/models/given_documents.py: hasattr(…, 'counts')": MATRIX,
    "securetm/models/given_documents.py: hasattr(…, 'iloc')": FRAME,
    "securetm/models/given_documents.py: hasattr(…, 'keys')": MATRIX,
    "securetm/plans/recommend.py: getattr(…, name)": "a setting that a plan names, which the model's defaults may lack",
}


def place(path: Path, node: ast.AST) -> str:
    """File and line, as an editor opens them."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def test_no_file_is_long() -> None:
    everything = (*files(), *(ROOT / "tests").rglob("*.py"))
    lengths = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n") for path in everything}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


# ---- state of modules ------------------------------------------------------------------------------------------------

CHANGING = {
    "add", "append", "clear", "discard", "extend", "insert", "move_to_end", "pop", "popitem", "remove", "setdefault", "sort",
    "update",
}  # fmt: skip


def module_names(module: ast.Module) -> set[str]:
    """Names that the module itself assigns."""
    targets = [node.targets if isinstance(node, ast.Assign) else [node.target] for node in module.body
               if isinstance(node, (ast.Assign, ast.AnnAssign))]  # fmt: skip
    return {name.id for several in targets for target in several for name in ast.walk(target) if isinstance(name, ast.Name)}


def base(node: ast.AST) -> str:
    """The name at the front of an expression such as `name[key].part`."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def local_names(function: ast.AST) -> set[str]:
    """Names that a function binds itself, its parameters too."""
    bound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return bound | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}


def changed_names(function: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Names of others whose contents a function changes."""
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            yield from ((name, node) for name in node.names)
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield base(node.value), node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            yield base(node.func.value), node


def test_no_name_of_a_module_means_two_things() -> None:
    """The later meaning would reach the functions above it, too: this happens where two files become one."""
    twice = []
    for path in (*files(), *sorted((ROOT / "lab").rglob("*.py"))):
        seen = set[str]()
        for node in tree(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
            twice += [f"{path.relative_to(ROOT)}: {name}" for name in names & seen]
            seen |= names
    assert not twice


def test_no_function_changes_what_its_module_holds() -> None:
    found = {}
    for path in files():
        owned = module_names(tree(path))
        if not owned and "global " not in path.read_text(encoding="utf-8"):
            continue
        functions = [node for node in ast.walk(tree(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        for function in functions:
            changed = [(name, at) for name, at in changed_names(function) if isinstance(at, ast.Global) or name in owned]
            own = local_names(function) if changed else set()
            for name, node in changed:
                if isinstance(node, ast.Global) or name not in own:
                    found[f"{path.relative_to(ROOT)}: {name}"] = place(path, node)
    assert {name: at for name, at in found.items() if name not in MUTATED} == {}
    assert set(MUTATED) <= set(found), "an entry of the list is no longer needed"


# ---- guesses ---------------------------------------------------------------------------------------------------------


def guessed(node: ast.AST) -> str:
    """What a call asks of an object that no contract declares, or nothing."""
    called = base(node.func) if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and (called, len(node.args)) in (("hasattr", 2), ("getattr", 3)):
        return f"{called}(…, {ast.unparse(node.args[1])})"
    if isinstance(node, ast.Compare) and "__name__" in ast.unparse(node.left) and "type(" in ast.unparse(node.left):
        return ast.unparse(node)
    return ""


def test_no_part_is_asked_what_it_can_do_but_by_its_contract() -> None:
    found = {}
    for path in files():
        for node in ast.walk(tree(path)):
            if asked := guessed(node):
                found[f"{path.relative_to(ROOT)}: {asked}"] = place(path, node)
    assert {name: at for name, at in found.items() if name not in GUESSES} == {}
    assert set(GUESSES) <= set(found), "an entry of the list is no longer needed"
