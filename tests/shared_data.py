"""Optional real data beside the project; tests that need it are skipped elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """The path of one shared data file; skips the calling test where there is none."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"the optional data file {name} is not in {FOLDER}")
    return path


def shared_rows(name: str) -> list[dict[str, Any]]:
    """The rows of one shared JSON-lines file; skips the calling test where there is none."""
    with shared_data(name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
