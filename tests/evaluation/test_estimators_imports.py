import os
import subprocess
import sys
from pathlib import Path

import waterline.evaluation


def test_the_pure_core_needs_numpy_alone():
    code = (
        "import sys, time, numpy; start = time.perf_counter();"
        "import waterline.allocation, waterline.success, waterline.evaluation;"
        "took = time.perf_counter() - start;"
        "third = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names);"
        "print(sorted(name for name in third"
        " if name in ('torch', 'pandas', 'scipy', 'pyarrow', 'lightning', 'pytorch_lightning',"
        " 'transformers', 'hydra', 'omegaconf', 'matplotlib')), took)"
    )
    env = os.environ | {"PYTHONPATH": str(Path(waterline.__file__).parents[1])}
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    heavy, took = out.stdout.rsplit(maxsplit=1)
    assert heavy == "[]"
    assert float(took) < 0.3


def test_unknown_names_are_attribute_errors():
    assert not hasattr(waterline.evaluation, "no_such_estimator")
