"""A minute with the installed package and nothing else: every part once, with a known answer."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import sklearn

import sksketch

EXTRAS = ("typer", "rich", "pyarrow", "zarr", "matplotlib", "dask", "pyspark", "torch", "pandas")


def check(claim: bool, what: str) -> None:
    """Stop at the first claim that is false."""
    if not claim:
        sys.exit(f"smoke test: {what}")


def learn(folder: Path) -> None:
    """Use every family of estimators, files and saved states."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12)) * 0.8 ** np.arange(12)
    y = X[:, 0] - 2.0 * X[:, 1]
    pca = sksketch.StreamingPCA(3).fit(X)
    exact = np.linalg.svd(X - X.mean(axis=0))[2][:3]
    check(np.allclose(np.abs(pca.components_ @ exact.T), np.eye(3), atol=1e-6), "components")
    sketch = sksketch.FrequentDirections(6).update(X)
    error = np.linalg.norm(X.T @ X - sketch.summary().to_dense(), 2)
    check(error <= sketch.error_bound() * (1 + 1e-9), "the bound is not true")
    ridge = sksketch.StreamingRidge(1e-8).fit(X, y)
    check(np.allclose(ridge.coef_[:2], [1.0, -2.0], atol=1e-4), "coefficients")
    check(sksketch.OnlineNewtonClassifier().fit(X, y > 0).score(X, y > 0) > 0.85, "online")
    check(sksketch.StreamingKernelPCA(2).fit(X).transform(X).shape == (400, 2), "kernel")
    check(sksketch.ReducedClassifier(8).fit(X, y > 0).score(X, y > 0) > 0.8, "reduced")
    for model in (pca, sketch, ridge):
        model.save(folder / "a.sks")
        check(type(sksketch.load(folder / "a.sks")) is type(model), "a saved file")
    np.save(folder / "a.npy", X)
    streamed = sksketch.fit_stream(sksketch.StreamingPCA(3), folder / "a.npy", progress=False)
    check(streamed.n_samples_seen_ == 400, "a stream")
    (folder / "a.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    check(sksketch.open_rows(folder / "a.svm").n_features == 3, "svmlight")


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def look(folder: Path) -> None:
    """See what happens without the extras, and what an import costs."""
    (folder / "a.csv").write_text("1,2\n3,4\n")
    absent = run("import pyarrow").returncode != 0
    if absent:
        done = run(f"import sksketch; sksketch.open_rows({str(folder / 'a.csv')!r})")
        check('pip install "scikit-sketch[io]"' in done.stderr, "a missing extra is not named")
    if run("import typer, rich").returncode:
        done = run("import sys; from sksketch.cli import main; sys.exit(main(['tour']))")
        check(done.returncode == 2, "the command without its extra")
        check("scikit-sketch[cli]" in done.stderr, "the command does not name its extra")
    loaded = "sorted({m.partition('.')[0] for m in sys.modules} & set(sys.argv[1:]))"
    code = f"import sys; import sksketch; print({loaded})"
    command = [sys.executable, "-c", code, *(EXTRAS if absent else ())]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    check(found == "[]", f"the import loads {found}")


def import_seconds(modules: str) -> float:
    """Return the shortest of five imports in fresh interpreters."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Run all and print one line."""
    with tempfile.TemporaryDirectory() as folder:
        learn(Path(folder))
        look(Path(folder))
    base = import_seconds("sklearn.base, sklearn.utils.validation")
    more = import_seconds("sksketch") - base
    versions = f"numpy {np.__version__}, scikit-learn {sklearn.__version__}"
    sys.stdout.write(f"ok; {versions}; import {more:.2f} s beyond scikit-learn's {base:.2f} s\n")


if __name__ == "__main__":
    main()
