"""Times the waterline with its prefix search: a table, and a last line of JSON.

python benchmarks/allocation.py
"""

import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time

import numpy as np

from waterline.allocation import WaterlineAllocator

TARGET_MS = {256: 2.0, 4096: 25.0}
CASES = {"history": (0.5, 0.05), "even": (1.0, 0.05), "strict": (0.5, 0.5)}  # Beta(a, a), u0


def milliseconds(allocator: WaterlineAllocator, batches: list[np.ndarray]) -> np.ndarray:
    """(batches, 2) wall and CPU time of one plan; the second does not see busy neighbours."""
    allocator.plan(batches[0], n0=16)  # warm up
    times = []
    for p in batches:
        wall, cpu = time.perf_counter(), time.thread_time()
        allocator.plan(p, n0=16)
        times.append((time.perf_counter() - wall, time.thread_time() - cpu))
    return 1e3 * np.array(times)


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)
    rows = []
    print("     B  estimates    u0  wall ms  CPU ms  CPU p95  target")
    for batch in (32, 256, 1024, 4096):
        for name, (a, u0) in CASES.items():
            batches = [np.clip(rng.beta(a, a, batch), 1e-6, 1 - 1e-6) for _ in range(100)]
            times = milliseconds(WaterlineAllocator(u0=u0), batches)
            row = {
                "batch": batch,
                "estimates": name,
                "u0": u0,
                "wall_ms": round(float(np.median(times[:, 0])), 3),
                "cpu_ms": round(float(np.median(times[:, 1])), 3),
                "cpu_p95_ms": round(float(np.percentile(times[:, 1], 95)), 3),
                "target_ms": TARGET_MS.get(batch),
            }
            rows.append(row)
            print(
                f"{batch:>6} {name:>10} {u0:>5} {row['wall_ms']:>8.3f} {row['cpu_ms']:>7.3f} "
                f"{row['cpu_p95_ms']:>8.3f} {row['target_ms'] or '':>7}"
            )
    print(json.dumps({"benchmark": "allocation", "rows": rows}))


if __name__ == "__main__":
    main()
