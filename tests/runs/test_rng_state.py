import random
import subprocess
import sys

import numpy as np
import pytest

from waterline.runs import rng_state, set_rng_state


def draw(torch):
    return (
        [random.gauss(0, 1) for _ in range(3)],
        np.random.normal(size=3).tolist(),  # noqa: NPY002
        torch.randn(3).tolist(),
    )


def test_the_global_generators_continue_where_they_were(tmp_path):
    torch = pytest.importorskip("torch")
    # An odd number of normals leaves a cached one in Python's and NumPy's generators.
    draw(torch)
    state = rng_state()
    torch.save(state, tmp_path / "state.pt")
    expected = draw(torch)
    draw(torch)
    set_rng_state(torch.load(tmp_path / "state.pt", weights_only=True))
    assert draw(torch) == expected


def test_torch_is_neither_imported_nor_silently_skipped():
    code = """
import sys
from waterline.runs import rng_state, set_rng_state
state = rng_state()
assert "torch" not in sys.modules and "torch" not in state
set_rng_state(state)
try:
    set_rng_state({**state, "torch": None})
except ValueError as error:
    print(error)
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    assert "import torch" in answer.stdout


ENVIRONMENT = {"PYTHONPATH": ":".join(sys.path)}
