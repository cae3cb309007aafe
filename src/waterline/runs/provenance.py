"""Where a number came from: versions, code, hardware, command and time."""

import contextlib
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

# Launchers put the user's command here for the processes that they start.
COMMAND = "WATERLINE_COMMAND"

_PACKAGES = (
    "waterline-rl", "numpy", "torch", "torchvision", "pytorch-lightning", "transformers",
    "datasets", "vllm", "math-verify", "hydra-core", "submitit", "wandb", "pandas", "pyarrow",
)  # fmt: skip


def provenance() -> dict[str, Any]:
    """The record of this process: ``time``, ``command``, ``git``, ``versions``, ``hardware``.

    Holds neither host nor user names, so that it can be committed next to a result. ``git`` is None
    when the code is not run from a checkout of its own repository.
    """
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": user_command(),
        "git": _git(Path(__file__).resolve()),
        "versions": {"python": platform.python_version(), **_versions()},
        "hardware": _hardware(),
    }


def user_command() -> str:
    """The command as the user gave it, also in a process that a launcher started for it.

    A launcher's own script says nothing of the settings and lies anywhere: there the settings that
    Hydra was given stand instead. A notebook's kernel is just that.
    """
    if given := os.environ.get(COMMAND):
        return given
    program = Path(sys.argv[0])
    if program.name in ("ipykernel_launcher.py", "colab_kernel_launcher.py"):
        return "a notebook"
    if program.name == "_submit.py" and (settings := _of_hydra()):
        return shlex.join(["python", *settings])
    if program.name == "__main__.py":
        return shlex.join(["python", "-m", program.parent.name, *sys.argv[1:]])
    if program.is_absolute():
        here = Path.cwd()
        program = program.relative_to(here) if program.is_relative_to(here) else Path(program.name)
    return shlex.join(["python", str(program), *sys.argv[1:]])


def _of_hydra() -> list[str]:
    """The script of ``experiments/`` and its settings, as Hydra knows them in a job of a sweep."""
    module = sys.modules.get("hydra.core.hydra_config")
    if module is None or not module.HydraConfig.initialized():
        return []
    known = module.HydraConfig.get()
    return [f"experiments/{known.job.config_name}.py", *known.overrides.task]


def _git(source: Path) -> dict[str, Any] | None:
    # An installed copy may lie in another project's repository; only a tracked file is ours.
    if _ask_git(source.parent, "ls-files", "--error-unmatch", source.name) is None:
        return None
    commit = _ask_git(source.parent, "rev-parse", "HEAD")
    changes = _ask_git(source.parent, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _ask_git(folder: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _hardware() -> dict[str, Any]:
    hardware: dict[str, Any] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
    }
    # Asking torch for devices would import it into processes that need none.
    if (torch := sys.modules.get("torch")) is not None:
        hardware["threads"] = torch.get_num_threads()
        gpus = range(torch.cuda.device_count())
        hardware["gpus"] = [torch.cuda.get_device_name(index) for index in gpus]
    return hardware


def _cpu_model() -> str:
    with contextlib.suppress(OSError):  # there is no such file outside of Linux
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
