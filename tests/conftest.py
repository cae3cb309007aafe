"""What holds for every test: one thread, no network, no display, no test-time randomness."""

import os
import signal

# Before NumPy or torch is imported: thread pools are sized once.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# A shell that runs the tests in the background has Ctrl-C ignored, and their processes inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from hypothesis import settings  # noqa: E402

# The same examples every time; no deadline, since other work may share the cores.
settings.register_profile("waterline", deadline=None, derandomize=True)
settings.load_profile("waterline")
