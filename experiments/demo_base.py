"""Makes the base of `make demo` a file of data/, with a record of where it comes from.

The supervised start comes first:

    python experiments/train.py experiment=maze/demo method=maxrl stage=base
    python experiments/demo_base.py
"""

import hashlib
import json

from waterline.runs import CHECKOUT, BadInput, RunFolder, State, atomic_write, sentence_errors

RUN = RunFolder(CHECKOUT / "results/maze-demo/base/seed-0")
BASE = CHECKOUT / "data" / "maze-demo-base.pt"
PROVENANCE = BASE.with_suffix(".provenance.json")
TRAIN = "python experiments/train.py experiment=maze/demo method=maxrl stage=base"


def main() -> None:
    if RUN.state() is not State.done:
        raise BadInput(f"{RUN.root} holds no finished run: run `{TRAIN}` first.")
    # final.pt holds the policy alone; the optimizer's state is in last.pt.
    weights = (RUN.checkpoints / "final.pt").read_bytes()
    made = {
        "file": BASE.name,
        "sha256": hashlib.sha256(weights).hexdigest(),
        "bytes": len(weights),
        "commands": [TRAIN, "python experiments/demo_base.py"],
        "run": json.loads(RUN.provenance.read_text(encoding="utf-8")),
    }
    atomic_write(BASE, weights)
    atomic_write(PROVENANCE, json.dumps(made, indent=2) + "\n")
    print(f"{BASE}: {len(weights):,} bytes, sha256 {made['sha256'][:12]}")


if __name__ == "__main__":
    with sentence_errors():
        main()
