"""Peak memory of a long stream of 1,000 columns, above what Python and its libraries hold.

Each estimator runs in a fresh process. The stream's own block is allocated and filled before
the first measurement; everything that follows counts: buffers, BLAS, the read-out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from benchmarks.lib.threads import one_thread

from benchmarks.lib.resident import memory_mb

MODULE = "benchmarks.speed.peak_memory"
N_FEATURES, BLOCK_ROWS = 1000, 1000
ROWS, QUICK_ROWS = 1_000_000, 50_000
# For a sketch of 64 rows; the default may choose not to sketch, and then needs more.
LIMIT_MB = {"sketch_size=64": 60.0, "solver=block": 60.0}
CASES = {
    "sketch_size=64": "StreamingPCA(n_components=64, sketch_size=64)",
    "solver=block": "StreamingPCA(64, sketch=FrequentDirections(64, solver='block'))",
    "default": "StreamingPCA(n_components=64)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    n_rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    if options.child:
        with one_thread():
            print(json.dumps(measure(options.child, n_rows)))
        return
    print(f"{n_rows:,} x {N_FEATURES:,} in float64, {8e-6 * n_rows * N_FEATURES:,.0f} MB if held")
    print(f"{'estimator':66}{'before':>10}{'peak':>10}{'extra':>10}{'us/row':>9}")
    for case, text in CASES.items():
        found = in_fresh_process(case, n_rows)
        before, peak = found["before_mb"], found["peak_mb"]
        verdict = ""
        if limit := LIMIT_MB.get(case):
            verdict = "ok" if peak - before < limit else f"FAIL (limit {limit:.0f} MB)"
        print(
            f"{text:66}{before:7.1f} MB{peak:7.1f} MB{peak - before:7.1f} MB"
            f"{found['us_per_row']:9.1f}  {verdict}"
        )
        print(f"    {found['plan']}", flush=True)


def in_fresh_process(case: str, n_rows: int) -> dict[str, float | str]:
    command = [sys.executable, "-m", MODULE, "--child", case, "--rows", str(n_rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


def measure(case: str, n_rows: int) -> dict[str, float | str]:
    """Stream the rows through one estimator; return what memory and time it took."""
    # Imported here: a parent that holds little can not lend its peak to the child.
    import numpy as np

    from sksketch import FrequentDirections, StreamingPCA

    estimators = {
        "sketch_size=64": StreamingPCA(n_components=64, sketch_size=64),
        "solver=block": StreamingPCA(64, sketch=FrequentDirections(64, solver="block")),
        "default": StreamingPCA(n_components=64),
    }
    pca = estimators[case]
    strengths = np.arange(1.0, N_FEATURES + 1) ** -0.75
    base = np.random.default_rng(0).standard_normal((BLOCK_ROWS, N_FEATURES))
    base *= strengths
    block = np.multiply(base, 1.0)
    # The compiler of the loops, which a process loads once whatever it streams.
    StreamingPCA(1).fit(base[:2]).components_  # noqa: B018
    before = memory_mb("VmRSS")
    start = time.process_time()
    for number in range(n_rows // BLOCK_ROWS):
        # Cheap rows that differ: the same block at another scale.
        np.multiply(base, 1.0 + 0.5 * np.sin(number), out=block)
        pca.partial_fit(block)
    pca.components_  # noqa: B018  (the read-out is part of the peak)
    seconds = time.process_time() - start
    return {
        "before_mb": before,
        "peak_mb": memory_mb("VmHWM"),
        "us_per_row": 1e6 * seconds / n_rows,
        "plan": pca.plan_,
    }


if __name__ == "__main__":
    main()
