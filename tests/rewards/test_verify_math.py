import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared_data import shared_rows
from waterline.rewards import Verdict, verify_math, verify_math_many
from waterline.rewards.workers import Worker, WorkerFailed, WorkerPool

SRC = Path(__file__).resolve().parents[2] / "src"


def run_python(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def library() -> None:
    pytest.importorskip("math_verify")


@pytest.mark.parametrize(
    ("response", "gold", "verdict"),
    [
        (r"Hence \boxed{42}.", "42", "correct"),
        (r"Hence \boxed{41}.", "42", "wrong"),
        ("I give up.", "42", "unparseable"),
        ("", "42", "unparseable"),
        (r"\boxed{42}", "", "error"),
        (r"\boxed{42}", r"\boxed{}", "error"),
        ("So it is 42 in all.", "42", "correct"),
        (r"\boxed{\text{Tuesday}}", "Tuesday", "correct"),
        (r"\boxed{\text{(B)}}", "B", "correct"),
        ("The answer is (B).", "B", "correct"),
        ("The answer is (C), not B.", r"\text{(B)}", "wrong"),
        (r"\boxed{3^{3^{3^{3}}}}", "42", "unparseable"),
        (r"\boxed{(10^{9})!}", "42", "unparseable"),
        (r"\boxed{\sum_{k=1}^{10^9}\frac{1}{k}}", "42", "unparseable"),
        (r"$2, 4, \ldots, 2n$", r"$2, 3, \ldots, n$", "wrong"),
    ],
)
def test_without_a_worker(response: str, gold: str, verdict: str) -> None:
    assert verify_math(response, gold).verdict == verdict


@pytest.mark.parametrize(
    ("response", "gold", "verdict"),
    [
        (r"\boxed{\sqrt{18}}", r"3\sqrt{2}", "correct"),
        (r"\boxed{\frac{\sqrt{3}}{3}}", r"\frac{1}{\sqrt3}", "correct"),
        (r"\boxed{5\sqrt(3)}", "5", "wrong"),
        (r"\boxed{2+x^2}", "x^2+2", "correct"),
        (r"\boxed{(4,3)}", "(3,4)", "wrong"),
        (r"\boxed{[0,5)}", "[0,5]", "wrong"),
        (r"\boxed{\{7, 5\}}", r"\{5, 7\}", "correct"),
        (r"\boxed{5 \text{ and } 7}", "$5$ and $7$", "correct"),
        (r"\boxed{5, 7}", "5", "wrong"),
        (r"\boxed{5} or \boxed{7}", "5", "wrong"),
        (r"\boxed{\frac{\pi}{3}}", r"60^\circ", "correct"),
        ("exp(3) + 2", r"\boxed{2 + e^{3}}", "correct"),
        (r"\boxed{e^{-70}}", r"\boxed{e^{-71}}", "wrong"),
        (r"\boxed{1/e^{70}}", r"\boxed{e^{-70}}", "correct"),
        (r"\boxed{1.7320508}", r"\sqrt{3}", "correct"),
        (r"\boxed{1.732}", r"\sqrt{3}", "wrong"),
        ("So it is 41 or 42", "42", "wrong"),
        (r"\boxed{x = 4}", "4", "correct"),
    ],
)
def test_by_math_verify(library: None, response: str, gold: str, verdict: str) -> None:
    assert verify_math(response, gold).verdict == verdict


def test_the_answer_is_reported() -> None:
    assert verify_math(r"\boxed{1} then \boxed{41}", "42").extracted == "41"
    assert verify_math("none", "42").extracted is None


HOSTILE = [
    r"\boxed{10^{(4^{4^{4^{4}}}\cdot\log_{10}4)}}",
    r"\boxed{\log_{2^4}(\log_{2^3}(\log_{2^2}(\log_{2^1}x)))}",
    r"\boxed{(x+y+z+w+a+b+c)^{400}}",
    r"\boxed{\prod_{k=1}^{999}(x+k)}",
    r"\boxed{\binom{1000000000}{500000000}}",
    r"\boxed{(((((((2^9)^9)^9)^9)^9)^9)^9)}",
    r"\boxed{\sin(\sin(\sin(\sin(x^{900}))))}",
    "\\boxed{" * 50_000,
    "{" * 100_000,
    "$" * 100_001,
    "9" * 100_000,
    "\\boxed{" + "9" * 5_000 + "}",
    "1,000" * 20_000,
    "1 000 " * 20_000,
    "1/" * 50_000,
    "answer is " * 20_000,
    "final answer is " * 20_000,
    "1 or " * 20_000,
    "#### " * 20_000,
    "\\" * 99_999,
    r"\$" * 50_000,
    "\0\ud800\boxed{\0}",
]


@pytest.mark.parametrize("response", HOSTILE, ids=lambda text: text[:20].encode("ascii", "replace"))
def test_hostile_input_ends(library: None, response: str) -> None:
    verify_math(r"\boxed{\sqrt{8}}", r"2\sqrt{2}")  # a worker is running
    start = time.monotonic()
    verdict = verify_math(response, "42").verdict
    assert time.monotonic() - start < 5
    assert verdict != Verdict.correct


def test_only_the_hanging_child_is_killed(library: None) -> None:
    pool = WorkerPool(size=1, seconds=1.0)
    try:
        assert pool.ask(r"\boxed{\sqrt{2}}", r"\boxed{\sqrt{2}}") == "correct"
        [worker] = pool._all
        start = time.monotonic()
        slow = r"\boxed{(x+y+z+w+a+b+c)^{400}}"
        assert pool.ask(r"\boxed{5}", slow) == "timeout"
        assert 0.9 < time.monotonic() - start < 4
        assert pool.ask(r"\boxed{\sqrt{2}}", r"\boxed{\sqrt{3}}") == "wrong"
        assert pool._all == {worker}
    finally:
        pool.close()
    assert worker._process.returncode is not None


def test_processor_time_is_limited(library: None) -> None:
    pool = WorkerPool(size=1, seconds=0.5)
    try:
        assert pool.ask(r"\boxed{\sqrt{2}}", r"\boxed{\sqrt{2}}") == "correct"
        [worker] = pool._all
        os.killpg(worker.pid, signal.SIGSTOP)
        threading.Timer(1.0, os.killpg, (worker.pid, signal.SIGCONT)).start()
        # Waiting for a processor takes none: a busy machine changes no verdict.
        assert pool.ask(r"\boxed{\sqrt{8}}", r"\boxed{2\sqrt{2}}") == "correct"
        assert pool.ask(r"\boxed{5}", r"\boxed{\prod_{k=1}^{9999}(x+k)}") == "timeout"
    finally:
        pool.close()


def test_a_killed_worker_is_replaced(library: None) -> None:
    pool = WorkerPool(size=1)
    try:
        assert pool.ask(r"\boxed{\sqrt{2}}", r"\boxed{\sqrt{2}}") == "correct"
        [worker] = pool._all
        os.killpg(worker.pid, signal.SIGKILL)
        assert pool.ask(r"\boxed{\sqrt{2}}", r"\boxed{\sqrt{2}}") == "correct"
        assert pool._all != {worker}
    finally:
        pool.close()


def test_a_dead_worker_says_so(library: None) -> None:
    worker = Worker()
    worker.kill()
    with pytest.raises((WorkerFailed, ValueError)):
        worker.ask("5", "5", 1.0)


def test_threads(library: None) -> None:
    result: list[str] = []

    def ask() -> None:
        result.append(verify_math(r"\boxed{\sqrt{12}}", r"2\sqrt{3}").verdict)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(60)
    assert result == ["correct"]

    golds = [rf"{k}\sqrt{{2}}" for k in range(2, 42)]
    responses = [rf"\boxed{{\sqrt{{{2 * k * k + (k % 2)}}}}}" for k in range(2, 42)]
    with ThreadPoolExecutor(8) as threads:
        verdicts = [r.verdict for r in threads.map(verify_math, responses, golds)]
    assert verdicts == ["wrong" if k % 2 else "correct" for k in range(2, 42)]
    assert [r.verdict for r in verify_math_many(responses, golds)] == verdicts


def test_a_script_without_a_main_guard(library: None, tmp_path: Path) -> None:
    script = tmp_path / "grade.py"
    script.write_text(
        "from waterline.rewards import verify_math\n"
        "print(verify_math(r'\\boxed{\\sqrt{12}}', r'2\\sqrt{3}').verdict, 'once')\n"
    )
    # Files that would shadow libraries of the worker must not be picked up.
    (tmp_path / "sympy.py").write_text("raise SystemExit('shadowed')\n")
    assert run_python("grade.py", cwd=tmp_path) == "correct once"


def test_code_without_a_file_and_a_fork(library: None, tmp_path: Path) -> None:
    code = (
        "import os\n"
        "from waterline.rewards import verify_math\n"
        "ask = lambda: verify_math(r'\\boxed{\\sqrt{12}}', r'2\\sqrt{3}').verdict.value\n"
        "print(ask(), flush=True)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    print(ask(), flush=True)\n"
        "    raise SystemExit\n"
        "os.waitpid(pid, 0)\n"
        "print(ask())\n"
    )
    assert run_python("-c", code, cwd=tmp_path).split() == ["correct"] * 3


def test_workers_end_with_their_parent(library: None, tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from waterline.rewards import verify_math as v\n"
        "from waterline.rewards.math import _pool\n"
        "v(r'\\boxed{\\sqrt{12}}', r'2\\sqrt{3}')\n"
        "print(*(w.pid for w in _pool._all), flush=True)\n"
    )
    for ending in ("", "os.kill(os.getpid(), signal.SIGKILL)\n"):
        done = subprocess.run(
            [sys.executable, "-c", code + ending],
            env={**os.environ, "PYTHONPATH": str(SRC)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        pids = [int(pid) for pid in done.stdout.split()]
        assert pids
        deadline = time.monotonic() + 10
        while any(running(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(running(pid) for pid in pids)


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_importing_needs_the_standard_library_alone(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from waterline.rewards import verify_math, verify_maze, Verdict\n"
        "assert verify_math('7', '7').verdict == 'correct'\n"
        "heavy = {'numpy', 'torch', 'sympy', 'math_verify', 'transformers', 'multiprocessing'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    assert run_python("-c", code, cwd=tmp_path) == "[]"


def test_gold_solutions_of_gsm8k() -> None:
    rows = shared_rows("gsm8k/test.jsonl")
    golds = [row["answer"].rpartition("#### ")[2].replace(",", "") for row in rows]
    for row, gold in zip(rows, golds, strict=True):
        assert verify_math(row["answer"], gold).verdict == "correct"
        assert verify_math(f"{row['answer']}\n#### {gold}1", gold).verdict == "wrong"


def test_gold_answers_of_math500() -> None:
    rows = shared_rows("math500/test.jsonl")
    for row in rows:
        assert verify_math(rf"\boxed{{{row['answer']}}}", row["answer"]).verdict == "correct"
        assert verify_math(row["solution"], row["answer"]).verdict == "correct"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "agreement"), [("pairs", 0.9), ("model_outputs", 1.0)])
def test_agreement_with_labelled_answers(library: None, name: str, agreement: float) -> None:
    rows = shared_rows(f"answer_verification/{name}.jsonl")
    verdicts = verify_math_many([r["output"] for r in rows], [r["gold"] for r in rows])
    agreed = [
        (v.verdict == "correct") == bool(r["expected"]) for v, r in zip(verdicts, rows, strict=True)
    ]
    assert sum(agreed) / len(agreed) >= agreement
