"""The states of the global generators, as plain data that a checkpoint can hold."""

import random
import sys
from typing import Any

import numpy as np


def rng_state() -> dict[str, Any]:
    """The states of the generators of ``random``, NumPy and, once it is imported, torch.

    Plain lists, tuples and tensors only, so that ``torch.load(weights_only=True)`` reads them.
    """
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002
    assert isinstance(legacy, dict)
    numpy_state = {**legacy, "state": {**legacy["state"], "key": legacy["state"]["key"].tolist()}}
    state: dict[str, Any] = {"python": random.getstate(), "numpy": numpy_state}
    if (torch := sys.modules.get("torch")) is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Put the generators back to what :func:`rng_state` returned.

    Raises:
        ValueError: The state holds torch's generators and torch is not imported.
    """
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    saved = state["numpy"]
    key = np.asarray(saved["state"]["key"], dtype=np.uint32)
    np.random.set_state({**saved, "state": {**saved["state"], "key": key}})  # noqa: NPY002
    if "torch" in state:
        if (torch := sys.modules.get("torch")) is None:
            raise ValueError("The state holds torch's: import torch before set_rng_state.")
        torch.set_rng_state(state["torch"])
        if "cuda" in state:
            torch.cuda.set_rng_state_all(state["cuda"])
