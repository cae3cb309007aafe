"""The step is a line: from a task to a loss the imports know no way back up."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

from test_import_order import LINE, SOURCE, dotted, imports

MODULES = {
    dotted(path).removesuffix(".__init__"): path for path in sorted(SOURCE.rglob("*.py"))
}  # fmt: skip
STEP = "waterline.training.step"


def imported(module: str) -> set[str]:
    """The modules of the package that a module imports when it is loaded, by itself or inside."""
    path = MODULES[module]
    code = path.read_text()
    # An __init__ counts as a module of its own package for relative names.
    inside = f"{module}.__init__" if path.name == "__init__.py" else module
    found = set()
    for name in imports(code, inside):
        while name and name not in MODULES:
            name = name.rpartition(".")[0]
        found.add(name)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
    return found - {"", module}


GRAPH = {module: imported(module) for module in MODULES}


def reached(start: str) -> set[str]:
    """Every module of the package that loading ``start`` loads."""
    seen, waiting = set(), [start]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += GRAPH[module]
    return seen


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("name", LINE)
def test_whatever_is_reached_from_a_room_stands_above_it(name):
    above = {*LINE[: LINE.index(name) + 1], "runs", ""}
    for module in MODULES:
        if room(module) == name:
            assert {room(other) for other in reached(module)} <= above, module


def test_no_module_reaches_itself():
    # A package's __init__ and its own modules may know each other: they are one door.
    for module, others in GRAPH.items():
        for other in others:
            one_door = module.startswith(f"{other}.") or other.startswith(f"{module}.")
            assert one_door or module not in reached(other), f"{module} and {other}"


def test_the_step_knows_the_rooms_by_their_protocols_alone():
    others = reached(STEP) - {STEP, "waterline.training"}
    assert {room(module) for module in others} <= {
        "", "tasks", "success", "allocation", "rewards", "advantages", "runs",
    }  # fmt: skip
    # Each of these is imported whole: no file of a room is reached into.
    direct = {module for module in GRAPH[STEP] if module.count(".") > 1}
    assert direct == set()
    for kind in ("sequences", "labels"):
        candidates = f"waterline.training.{kind}.candidates"
        assert STEP in reached(candidates)


def function(module: str, name: str) -> tuple[ast.FunctionDef, str]:
    code = MODULES[module].read_text()
    (found,) = [
        node
        for node in ast.parse(code).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    return found, ast.get_source_segment(code, found)


def lines_of_code(node: ast.FunctionDef, code: str) -> int:
    """Lines with a token that is neither a comment nor of the docstring."""
    doc = node.body[0]
    first, last = doc.lineno - node.lineno + 1, doc.end_lineno - node.lineno + 1
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
               tokenize.ENDMARKER)  # fmt: skip
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    lines = {token.start[0] for token in tokens if token.type not in skipped}
    return len([line for line in lines if not first <= line <= last])


def test_the_step_is_one_plain_function():
    node, code = function(STEP, "run_step")
    assert ast.get_docstring(node)
    assert lines_of_code(node, code) <= 45
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    assert names.isdisjoint({"isinstance", "issubclass", "hasattr", "getattr"})


def test_the_step_names_the_rooms_in_their_order():
    _, code = function(STEP, "run_step")
    order = ["allocator.start", "candidates.sample", "allocator.next", "candidates.responses",
             "pieces.advantage", "allocator.keep", "learn(", "success.observe"]  # fmt: skip
    body = code[code.index('"""', code.index('"""') + 3) :]
    places = [body.index(name) for name in order]
    assert places == sorted(places)


def test_the_step_names_no_task():
    text = MODULES[STEP].read_text().lower()
    tasks = [path.stem for path in (SOURCE / "tasks").iterdir() if path.is_dir()]
    kinds = ["maze", "glyph", "imagenet", "image", "cross_entropy", "isinstance"]
    names = [name for name in {*tasks, *kinds} if not name.startswith("__")]
    assert [name for name in names if re.search(rf"\b{name}s?\b", text)] == []


@pytest.mark.parametrize("piece", ["task", "loss", "allocator", "engine", "verifier", "policy"])
def test_nobody_asks_a_piece_for_its_type(piece):
    asks = re.compile(rf"isinstance\(\s*(?:\w+\.)*{piece}\b")
    where = [name for name, path in MODULES.items() if asks.search(path.read_text())]
    # The comparison of gradients takes the exact mean of MaxRL where it has one.
    allowed = {"allocator": ["waterline.training.gradients.shared_parameters"]}
    assert where == allowed.get(piece, [])


def folders() -> list[Path]:
    return [SOURCE, *(path for path in SOURCE.rglob("*") if path.is_dir())]


def test_no_folder_has_more_than_twenty_files():
    sizes = {folder: sum(path.is_file() for path in folder.iterdir()) for folder in folders()}
    full = {str(f.relative_to(SOURCE)): n for f, n in sizes.items() if n > 20}
    assert full == {}
