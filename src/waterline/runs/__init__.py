"""What every room may use: seeds, atomic files, run folders, configuration checks.

Imports no other room.
"""

from waterline.runs.atomic import atomic_write, remove_partial_files
from waterline.runs.checks import BadInput, RunFailed, as_bad_input, sentence_errors, unknown_name
from waterline.runs.folder import RunFolder, State
from waterline.runs.identity import identity, read_settings
from waterline.runs.lock import FolderBusy, FolderLock
from waterline.runs.metrics_log import MetricsLog, read_metrics
from waterline.runs.paths import CHECKOUT, from_record
from waterline.runs.provenance import provenance
from waterline.runs.rng_state import rng_state, set_rng_state
from waterline.runs.seeds import permutation, stream_key, uniforms
from waterline.runs.settings_name import settings_name
from waterline.runs.targets import build

__all__ = [
    "CHECKOUT",
    "BadInput",
    "FolderBusy",
    "FolderLock",
    "MetricsLog",
    "RunFailed",
    "RunFolder",
    "State",
    "as_bad_input",
    "atomic_write",
    "build",
    "from_record",
    "identity",
    "permutation",
    "provenance",
    "read_metrics",
    "read_settings",
    "remove_partial_files",
    "rng_state",
    "sentence_errors",
    "set_rng_state",
    "settings_name",
    "stream_key",
    "uniforms",
    "unknown_name",
]
