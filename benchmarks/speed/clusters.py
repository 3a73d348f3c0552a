"""Distributed SVD on one and two worker processes, beside dask's own and dask-ml's.

Every partition is made on the worker that learns from it, so nothing but the work itself is
measured. Strong scaling: the same partitions on two workers instead of one. Weak scaling: twice
as many partitions on two workers. Runs on one and on two workers take turns, and the ratios are
medians over the rounds: of seconds on the clock, to which other processes add theirs, and of the
processor time of the busier worker, which is what a quiet machine would take. What the machine
allows is measured beside them: the same work on the same workers as one task for each, so that
there is nothing to schedule, to move or to merge.

The error is the energy that the k directions miss of what the best k directions have.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import distributed
import numpy as np

from sksketch import StreamingSVD, fit_dask

K, SKETCH_SIZE, RANK = 20, 64, 40
# What is asked of two workers on a quiet machine.
LEAST_SPEEDUP = 1.7


def make_rows(number: int, n_rows: int, n_features: int) -> np.ndarray:
    """Return the rows of one partition: a slowly falling spectrum and noise."""
    fixed = np.random.default_rng(12345).standard_normal((RANK, n_features))
    rng = np.random.default_rng(number)
    scales = 1.0 / np.sqrt(np.arange(1, RANK + 1))
    return (rng.standard_normal((n_rows, RANK)) * scales) @ fixed + rng.standard_normal(
        (n_rows, n_features)
    )


def partitions(n_parts: int, n_rows: int, n_features: int) -> list[Any]:
    make = dask.delayed(make_rows, pure=False)
    return [make(number, n_rows, n_features) for number in range(n_parts)]


def as_array(n_parts: int, n_rows: int, n_features: int) -> Any:
    shape = (n_rows, n_features)
    blocks = partitions(n_parts, n_rows, n_features)
    return da.concatenate([da.from_delayed(block, shape, float) for block in blocks])


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """Give a client of that many processes with one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
            memory_limit=0,
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        client.run(warm_up)
        yield client


def warm_up() -> None:
    """Load and compile what the first partition would wait for."""
    from sksketch import StreamingSVD

    StreamingSVD(2, sketch="rfd", sketch_size=4).partial_fit(np.eye(40)).components_.sum()


def memory_mb(peak: bool = True) -> float:
    """Return the memory of this process: now, or at most since the last reset."""
    name = "VmHWM" if peak else "VmRSS"
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def reset_peak() -> float:
    """Forget the peak, where the system allows it, and return what is held now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return memory_mb(peak=False)


class Timed(NamedTuple):
    """Seconds on the clock and of the busier worker, its growth in MB, and what came back."""

    seconds: float
    busy: float
    memory: float
    result: Any


def timed(client: Any, work: Callable[[], Any]) -> Timed:
    """Run something on a cluster."""
    before, spent = client.run(reset_peak), client.run(time.process_time)
    with client.as_current(), dask.config.set(scheduler=client):
        start = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - start
    after, in_all = client.run(memory_mb), client.run(time.process_time)
    memory = max(after[worker] - before[worker] for worker in before)
    return Timed(seconds, max(in_all[w] - spent[w] for w in spent), memory, result)


def sketched(sizes: tuple[int, int, int]) -> np.ndarray:
    svd = StreamingSVD(K, sketch="rfd", sketch_size=SKETCH_SIZE)
    return fit_dask(svd, partitions(*sizes)).components_


def learn_each(numbers: list[int], n_rows: int, n_features: int) -> None:
    """Learn partitions one after the other, each by a model of its own."""
    for number in numbers:
        svd = StreamingSVD(K, sketch="rfd", sketch_size=SKETCH_SIZE)
        svd.partial_fit(make_rows(number, n_rows, n_features)).sketch_.compact()


def unscheduled(client: Any, sizes: tuple[int, int, int]) -> None:
    """Give every worker its share of the partitions as one task."""
    workers, numbers = list(client.scheduler_info()["workers"]), list(range(sizes[0]))
    shares = [numbers[i :: len(workers)] for i in range(len(workers))]
    client.gather(
        [
            client.submit(learn_each, share, *sizes[1:], workers=[worker], pure=False)
            for worker, share in zip(workers, shares, strict=True)
        ]
    )


def compressed(sizes: tuple[int, int, int], n_power_iter: int) -> np.ndarray:
    _, _, V = da.linalg.svd_compressed(as_array(*sizes), K, n_power_iter=n_power_iter, seed=0)
    return np.asarray(V.compute())


def dask_ml(name: str, sizes: tuple[int, int, int], **options: Any) -> np.ndarray:
    from dask_ml import decomposition

    model = getattr(decomposition, name)(n_components=K, **options)
    return np.asarray(model.fit(as_array(*sizes)).components_)


PEERS: dict[str, Callable[[tuple[int, int, int]], np.ndarray]] = {
    "StreamingSVD": sketched,
    "svd_compressed": lambda sizes: compressed(sizes, 0),
    "svd_compressed, 2 passes": lambda sizes: compressed(sizes, 2),
    "dask-ml TruncatedSVD": lambda sizes: dask_ml("TruncatedSVD", sizes, algorithm="randomized"),
    "dask-ml PCA": lambda sizes: dask_ml("PCA", sizes, svd_solver="randomized", random_state=0),
    "dask-ml IncrementalPCA": lambda sizes: dask_ml("IncrementalPCA", sizes),
}


def covariance(sizes: tuple[int, int, int]) -> np.ndarray:
    total = np.zeros((sizes[2], sizes[2]))
    for number in range(sizes[0]):
        X = make_rows(number, *sizes[1:])
        total += X.T @ X
    return total


def missed(V: np.ndarray, C: np.ndarray) -> float:
    """Return the part of the best K directions' energy that the rows of V miss."""
    best = np.linalg.eigvalsh(C)[-K:].sum()
    Q = np.linalg.qr(V.T)[0]
    return float(1.0 - np.einsum("ij,ij->", Q, C @ Q) / best)


def scaling(one: Any, two: Any, sizes: tuple[int, int, int], n_rounds: int) -> dict[str, Any]:
    """Let one and two workers take turns on the same and on twice as many partitions."""
    double = (2 * sizes[0], *sizes[1:])
    rounds = [
        (
            timed(one, lambda: sketched(sizes)),
            timed(two, lambda: sketched(sizes)),
            timed(two, lambda: sketched(double)),
        )
        for _ in range(n_rounds)
    ]
    limits = [
        timed(one, lambda: unscheduled(one, sizes)).seconds
        / timed(two, lambda: unscheduled(two, sizes)).seconds
        for _ in range(n_rounds)
    ]
    ratios: dict[str, Any] = {"limits": limits}
    for clock in ("seconds", "busy"):
        figures = [[getattr(run, clock) for run in runs] for runs in rounds]
        ratios[clock] = [statistics.median(column) for column in zip(*figures, strict=True)]
        ratios[f"strong_{clock}"] = statistics.median(a / b for a, b, _ in figures)
        ratios[f"every_strong_{clock}"] = [a / b for a, b, _ in figures]
        ratios[f"weak_{clock}"] = statistics.median(a / c for a, _, c in figures)
    alone, both, _ = rounds[-1]
    return ratios | {
        "memory_mb": [run.memory for run in rounds[-1]],
        "same_bits": bool(np.array_equal(alone.result, both.result)),
    }


def compare(two: Any, sizes: tuple[int, int, int]) -> dict[str, Any]:
    C = covariance(sizes)
    found: dict[str, Any] = {}
    for name, work in PEERS.items():
        try:
            run = timed(two, lambda work=work: work(sizes))
        except Exception as error:  # noqa: BLE001  (a peer that does not run says why)
            reason = str(error).splitlines()[0] if str(error) else ""
            found[name] = {"skipped": f"{type(error).__name__}: {reason}"[:100]}
            continue
        error = missed(run.result, C)
        found[name] = {"seconds": run.seconds, "memory_mb": run.memory, "error": error}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small partitions, one round")
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--rows", type=int, default=5_000, help="rows of a partition")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true", help="only one and two workers")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = (4, 500, 200) if options.quick else (options.partitions, options.rows, 1_000)
    n_rounds = 1 if options.quick else options.rounds
    n_parts, n_rows, n_features = sizes
    print(
        f"{n_parts} partitions of {n_rows:,} x {n_features:,} made on the workers, "
        f"{8e-6 * n_rows * n_features:,.0f} MB each; k={K}, sketch_size={SKETCH_SIZE}; "
        f"dask {dask.__version__}"
    )
    with cluster(1) as one, cluster(2) as two:
        scaled = scaling(one, two, sizes, n_rounds)
        peers = {} if options.no_peers else compare(two, sizes)
    head = f"{'StreamingSVD':30}{'seconds':>9}{'busy':>9}{'MB/worker':>11}"
    print(f"\n{head}{'clock':>10}{'processor':>11}")
    names = ("one worker", "two workers, the same rows", "two workers, twice the rows")
    for i, (name, ratio) in enumerate(zip(names, ("", "strong", "weak"), strict=True)):
        memory = scaled["memory_mb"][i]
        figures = f"{scaled['seconds'][i]:9.2f}{scaled['busy'][i]:9.2f}{memory:11.0f}"
        if ratio:
            clock, busy = (scaled[f"{ratio}_{kind}"] for kind in ("seconds", "busy"))
            figures += f"{clock:9.2f}x{busy:10.2f}x"
        print(f"{name:30}{figures}")
    found, limits = scaled["every_strong_seconds"], scaled["limits"]
    print(
        f"the same rows on the clock, over {len(found)} rounds: {min(found):.2f}x to "
        f"{max(found):.2f}x; with nothing to schedule {statistics.median(limits):.2f}x, "
        f"{min(limits):.2f}x to {max(limits):.2f}x"
    )
    if not options.quick:
        strong = scaled["strong_seconds"]
        verdict = "ok  " if strong >= LEAST_SPEEDUP else "FAIL"
        print(f"{verdict}  two workers {strong:.2f}x one, at least {LEAST_SPEEDUP}")
    print(f"same bits on one and on two workers: {'yes' if scaled['same_bits'] else 'NO'}")
    print(f"\n{'on two workers':30}{'seconds':>9}{'MB/worker':>11}{'missed':>11}")
    for name, line in peers.items():
        if "skipped" in line:
            print(f"{name:30}  skipped: {line['skipped']}")
        else:
            print(f"{name:30}{line['seconds']:9.2f}{line['memory_mb']:11.0f}{line['error']:11.1e}")
    if options.json:
        options.json.write_text(json.dumps({"scaling": scaled, "peers": peers}, indent=1))


if __name__ == "__main__":
    main()
