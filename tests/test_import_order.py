"""Imports follow the line of one training step: a room imports rooms above it, never below."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "waterline"

LINE = [
    "tasks",
    "success",
    "allocation",
    "policies",
    "rollouts",
    "rewards",
    "advantages",
    "losses",
    "evaluation",
    "training",
    "reporting",
]
# Next to the line, and what each pure room may use besides the standard library and itself.
RUNS = "runs"
# Starts and watches jobs: it may use every room, and no room may use it.
LAUNCH = "launch"
PLAIN_DATA = ("numpy", "yaml", "pydantic", "annotated_types")
PURE = {"success": "numpy", "allocation": "numpy", "advantages": "torch", "losses": "torch"}
ESTIMATORS = ("pass_at_k", "best_at_k_bootstrap", "paired_bootstrap")
LIGHTNING = {"pytorch_lightning", "lightning", "lightning_fabric"}


def imports(code: str, module: str) -> Iterator[str]:
    """The absolute names of every module that ``code`` imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            # `from waterline import losses` names the room only in the alias.
            whole = base == "waterline"
            yield from (f"{base}.{alias.name}" if whole else base for alias in node.names)


def violations(code: str, room: str, module: str) -> list[str]:
    """What one module of a room imports against the rules."""
    wrong = []
    for name in imports(code, module):
        top, _, rest = name.partition(".")
        other = rest.split(".")[0]
        if top != "waterline":
            foreign = top not in sys.stdlib_module_names
            if top in LIGHTNING and room != "training":
                wrong.append(f"{name}: only training knows Lightning")
            elif room in PURE and foreign and top != PURE[room]:
                wrong.append(f"{name}: {room} needs {PURE[room]} alone")
            elif (
                room == RUNS
                and foreign
                and top not in ("numpy", "yaml", "pydantic", "annotated_types")
            ):
                wrong.append(f"{name}: runs needs NumPy, PyYAML and pydantic alone")
        elif other not in (room, "__version__"):
            if room in PURE or room == RUNS:
                wrong.append(f"{name}: {room} imports no other room")
            elif room != LAUNCH and other == LAUNCH:
                wrong.append(f"{name}: no room starts jobs")
            elif room != LAUNCH and other != RUNS and LINE.index(other) > LINE.index(room):
                wrong.append(f"{name}: {other} is below {room}")
    return wrong


def modules(room: str) -> list[Path]:
    return sorted((SOURCE / room).rglob("*.py"))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


def test_every_folder_has_its_place_in_the_line():
    folders = {path.name for path in SOURCE.iterdir() if any(path.glob("*.py"))}
    assert folders == {*LINE, RUNS, LAUNCH}


def test_the_package_imports_none_of_its_rooms():
    assert list(imports((SOURCE / "__init__.py").read_text(), "waterline.__init__")) == []


@pytest.mark.parametrize("room", [*LINE, RUNS, LAUNCH])
def test_a_room_imports_only_what_it_may(room):
    wrong = [
        f"{path.relative_to(SOURCE)} imports {violation}"
        for path in modules(room)
        for violation in violations(path.read_text(), room, dotted(path))
    ]
    assert wrong == []


def closure(start: str, by_module: dict[str, Path]) -> set[str]:
    """The modules of this project that ``start`` imports, and those that they import."""
    waiting, seen = [start], set()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        for found in imports(by_module[module].read_text(), module):
            name = found if found in by_module else f"{found}.__init__"
            if name in by_module and name not in seen:
                waiting.append(name)
    return seen


def test_the_step_knows_no_kind_of_response():
    """Its own imports are protocols, and no way leads back to it or to another stage."""
    by_module = {dotted(path): path for room in [*LINE, RUNS] for path in modules(room)}
    step = "waterline.training.step"
    own = {found.split(".")[1] for found in imports(by_module[step].read_text(), step)
           if found.startswith("waterline.")}  # fmt: skip
    assert own == {"success", "allocation", "advantages", "rewards"}
    seen = closure(step, by_module)
    assert [module for module in seen if module.startswith("waterline.training.")] == [step]
    # A verifier may read the task's language; tables, policies and losses are behind `learn`.
    assert {module.split(".")[1] for module in seen} == {*own, "training", "tasks"}


def defines(path: Path, name: str) -> bool:
    tree = ast.parse(path.read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_estimators_need_numpy_alone(name):
    by_module = {dotted(path): path for path in modules("evaluation")}
    waiting = [module for module, path in by_module.items() if defines(path, name)]
    assert len(waiting) == 1
    seen = set()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        for found in imports(by_module[module].read_text(), module):
            if found in by_module:
                waiting += [found] * (found not in seen)
            else:
                top = found.partition(".")[0]
                assert top == "numpy" or top in sys.stdlib_module_names, f"{module}: {found}"


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("policies", "from waterline.training import step"),
        ("rollouts", "def f():\n    import waterline.rewards.math"),
        ("tasks", "from waterline import losses"),
        ("tasks", "from ..losses import policy_loss"),
        ("evaluation", "import pytorch_lightning.callbacks"),
        ("losses", "import numpy as np"),
        ("allocation", "import scipy.optimize"),
        ("advantages", "from waterline.runs import BadInput"),
        ("success", "from waterline.allocation import Plan"),
        ("runs", "from waterline.tasks import Prompt"),
        ("runs", "import torch"),
        ("training", "from waterline.launch.jobs import run_local"),
        ("launch", "import pytorch_lightning"),
    ],
)
def test_the_rules_see_a_violation(room, code):
    assert violations(code, room, f"waterline.{room}.module") != []


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("training", "import lightning\nfrom waterline.losses import policy_loss"),
        ("rollouts", "from waterline.policies import Policy\nfrom waterline.runs import uniforms"),
        ("losses", "import math\nimport torch.nn.functional\nfrom waterline.losses import ratio"),
        ("losses", "from .ratio import clip\nfrom . import ratio"),
        ("runs", "import numpy, fcntl\nfrom waterline.runs.atomic import atomic_write"),
    ],
)
def test_the_rules_let_the_rest_pass(room, code):
    assert violations(code, room, f"waterline.{room}.module") == []
