"""The pure core in an environment of its own: NumPy alone, or torch alone."""

import json
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def numpy_alone(tmp_path_factory) -> Path:
    """The Python of a virtual environment that holds NumPy and this package, and nothing else."""
    folder = tmp_path_factory.mktemp("numpy-alone")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    installed = Path(np.__file__).parent
    for package in (installed, installed.with_name("numpy.libs")):
        if package.exists():
            (site / package.name).symlink_to(package)
    (site / "waterline.pth").write_text(str(ROOT / "src"))
    return folder / "bin" / "python"


def run(python: Path | str, code: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_numpy_is_the_only_required_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (dependency,) = project["dependencies"]
    assert dependency.startswith("numpy>=")


def test_the_environment_has_numpy_alone(numpy_alone):
    code = "import importlib.util as u; print([bool(u.find_spec(n)) for n in {names}])"
    names = ["numpy", "waterline", "torch", "scipy", "pandas", "pip"]
    answer = run(numpy_alone, code.format(names=names))
    assert json.loads(answer.lower()) == [True, True, False, False, False, False]


WITH_NUMPY = """
import numpy as np
from waterline.allocation import UniformAllocator, WaterlineAllocator, fidelity, mixed_probability
from waterline.evaluation import best_at_k_bootstrap, paired_bootstrap, pass_at_k
from waterline.success import DiscountedBeta, Oracle
from waterline.allocation import Outcomes, PilotWaterlineAllocator, Request

history = DiscountedBeta(alpha=0.5, beta=0.5, discount=0.75)
ids = np.array([7, -3, 10**12, 0])
history.observe(ids, np.array([16, 16, 16, 16]), np.array([1, 4, 8, 15]))
history.end_epoch()
p, known = history.estimate(ids)
assert known.all() and (np.diff(p) > 0).all()
plan = WaterlineAllocator(n_min=2, n_max=64, u0=0.05).plan(p, known=known, n0=16)
assert plan.counts.sum() == 64 == len(plan.index) and not plan.uniform
assert UniformAllocator().plan(p, n0=16).counts.tolist() == [16] * 4
p, known = Oracle().estimate(ids, exact=p)
request = Request(p=p, known=known, n0=8, past_trials=history.past(ids)[0], progress=0.5)
pilot = PilotWaterlineAllocator(m=4, n_max=16, u0=0.0)
trials = pilot.start(request).counts
assert pilot.next(Outcomes(trials, np.array([0, 1, 2, 4]), request=request)).totals.sum() == 32
assert fidelity(0.5, 2) == 0.5 and mixed_probability(0.5, 2) == 0.5
assert abs(pass_at_k(4, 2, 1) - 0.5) < 1e-12
assert 0 < np.mean(best_at_k_bootstrap(np.array([8, 8]), np.array([1, 4]), 4)) < 1
difference, low, high = paired_bootstrap(np.array([1.0, 0.5]), np.array([0.5, 0.0]))
assert low <= difference <= high
"""

WITH_TORCH = """
import torch, sys
allowed = {name.partition('.')[0] for name in sys.modules} | set(sys.stdlib_module_names)

class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] not in allowed | {'waterline'}:
            raise ImportError(f'{name} is imported, and the core may use torch alone')

sys.meta_path.insert(0, Forbid())
from waterline.advantages import dr_grpo, grpo, maxrl, pkpo, rloo
from waterline.advantages import PerResponse
from waterline.losses import CrossEntropy, PolicyLoss, class_loss, policy_loss

rewards = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0])
group = torch.tensor([5, 5, 5, -2, -2])
for advantage in (maxrl, grpo, dr_grpo, rloo):
    values = advantage(rewards, group)
    assert values.shape == (5,) and values[3:].abs().max() < 1e-6 < values[0]
length = torch.tensor([3, 1, 2, 1, 1])
assert PerResponse(maxrl)(rewards, group, length, {}).shape == (8,)
logp = torch.full((5, 3), -1.0, requires_grad=True)
loss = policy_loss(
    logp=logp, old_logp=logp.detach(), advantage=maxrl(rewards, group), weight=torch.ones(5),
    mask=torch.ones(5, 3, dtype=torch.bool),
)
log_probs = torch.full((2, 4), 0.25, dtype=torch.float64).log()
exact = class_loss(log_probs, CrossEntropy.weights(torch.tensor([1, 3]), 4), 2.0)
assert abs(exact.exp() - 4) < 1e-12
"""


def test_the_numpy_core_runs_with_numpy_alone(numpy_alone):
    run(numpy_alone, WITH_NUMPY)


def test_the_torch_core_runs_with_torch_alone():
    pytest.importorskip("torch")
    path = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r})\n"
    run(sys.executable, path + WITH_TORCH)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        "waterline.allocation import WaterlineAllocator",
        "waterline.success import DiscountedBeta",
        "waterline.evaluation import pass_at_k, best_at_k_bootstrap, paired_bootstrap",
    ],
)
def test_the_core_is_imported_in_under_300_ms(numpy_alone, names):
    # Processor time, which other work on the machine does not change.
    clock = "import time; start = time.process_time()\n"
    code = f"{clock}from {names}\nprint(time.process_time() - start)"
    assert min(float(run(numpy_alone, code)) for _ in range(5)) < 0.3
