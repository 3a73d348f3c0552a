"""One small seeded run of every sketch, estimator and command, as digests of their answers.

``--write FILE`` keeps the digests of one tree, and ``--compare FILE`` holds another tree against
them: bits, not tolerances. Answers are compared rather than saved bytes, because a file may
change its encoding while the numbers stay.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import sksketch
from sksketch import cli

RNG = np.random.default_rng(7)
X = RNG.standard_normal((700, 12)) * 0.8 ** np.arange(12) + 0.5
NOISE = RNG.standard_normal((2, 700, 12))
TARGETS = X[:, 0] - X[:, 1] + 0.1 * NOISE[0, :, 0]
LABELS = np.where(TARGETS > 0, "yes", "no")
NAMES = [f"c{i}" for i in range(12)]
WIDE = RNG.standard_normal((300, 600)) * 0.99 ** np.arange(600)
# What comes beside the rows: targets, labels, the rows of a second view, or of two more.
SECOND: dict[str, tuple[Any, ...]] = {
    "": (),
    "y": (TARGETS,),
    "two": (np.column_stack([TARGETS, X[:, 2]]),),
    "label": (LABELS,),
    "view": (X[:, :4] ** 2,),
    "views": (X + 0.1 * NOISE[0], X + 0.1 * NOISE[1]),
}
FEW: dict[str, Any] = {"n_random_features": 32}
SGD: dict[str, Any] = {**FEW, "solver": "sgd", "batch_size": 64}
S = sksketch

SKETCHES: dict[str, Callable[[], Any]] = {
    **{
        key: lambda key=key: S.make_sketch(key, 5)
        for key in ("fd", "rfd", "cfd", "pfd", "isvd", "sfd", "gaussian", "sign", "countsketch")
    },
    **{key: lambda key=key: S.make_sketch(key, 5) for key in ("srht", "sample", "exact")},
    "2lfd": lambda: S.TwoLevelFrequentDirections(7, rank=2),
    "block": lambda: S.FrequentDirections(4, solver="block", buffer_rows=60),
    "forgetting": lambda: S.FrequentDirections(4, half_life=60.0, initial_ridge=0.5),
    "growing": lambda: S.FrequentDirections(2, tol=0.02, max_sketch_size=9),
    "centered": lambda: S.Centered(S.FrequentDirections(4)),
    "centered exact": lambda: S.Centered(S.ExactCovariance()),
    "regression": lambda: S.Regression(S.FrequentDirections(4)),
    "window": lambda: S.SlidingWindow(S.FrequentDirections(4), rows=200),
}


def as_paper(kind: Any, *args: Any, **options: Any) -> Any:
    """Return an online learner as they all were before they had a choice of curvature."""
    known = kind(*args, **options).get_params()
    paper = {"loss": "squared", "curvature": "gradient", "normalize": False}
    return kind(*args, **options, **{name: paper[name] for name in paper if name in known})


ESTIMATORS: dict[str, tuple[str, Callable[[], Any]]] = {
    "StreamingPCA": ("", lambda: S.StreamingPCA(3)),
    "StreamingPCA rfd": ("", lambda: S.StreamingPCA(0.5, sketch="rfd", sketch_size=4)),
    "StreamingPCA whiten": ("", lambda: S.StreamingPCA(whiten=True)),
    "StreamingPCA given": ("", lambda: S.StreamingPCA(2, sketch=S.FrequentDirections(4))),
    "StreamingPCA tol": ("", lambda: S.StreamingPCA(2, sketch="rfd", sketch_size=2, tol=0.1)),
    "StreamingSVD": ("", lambda: S.StreamingSVD(3, sketch="sfd", sketch_size=4)),
    "StreamingRidge": ("y", lambda: S.StreamingRidge(refine=2)),
    "StreamingRidge two": ("two", lambda: S.StreamingRidge(sketch="rfd", sketch_size=4)),
    "StreamingRidge sign": ("y", lambda: S.StreamingRidge(sketch="sign", sketch_size=50)),
    "StreamingRidgeCV": ("y", lambda: S.StreamingRidgeCV([0.1, 3.0])),
    "StreamingRidgeCV holdout": (
        "y",
        lambda: S.StreamingRidgeCV([0.1, 3.0], selection="holdout", holdout_rows=50),
    ),
    **{
        f"OnlineNewtonRegressor {method}": (
            "y",
            lambda method=method: as_paper(S.OnlineNewtonRegressor, method, sketch_size=3),
        )
        for method in ("rfd", "fd", "pfd", "rp", "oja", "full", "adagrad", "ogd")
    },
    "OnlineNewtonClassifier": ("label", lambda: as_paper(S.OnlineNewtonClassifier, sketch_size=3)),
    "OnlineNewtonClassifier weights": (
        "label",
        lambda: as_paper(
            S.OnlineNewtonClassifier, class_weight={"no": 1.0, "yes": 2.0}, n_passes=2
        ),
    ),
    "OnlineNewtonRegressor default": ("y", lambda: S.OnlineNewtonRegressor()),
    "OnlineNewtonRegressor default, two": ("two", lambda: S.OnlineNewtonRegressor(sketch_size=3)),
    "OnlineNewtonClassifier default": ("label", lambda: S.OnlineNewtonClassifier()),
    "OnlineNewtonClassifier default, few": (
        "label",
        lambda: S.OnlineNewtonClassifier(sketch_size=3),
    ),
    "RandomFeatures": ("", lambda: S.RandomFeatures(n_random_features=8)),
    "StreamingKernelPCA": ("", lambda: S.StreamingKernelPCA(2, **FEW)),
    "StreamingKernelPCA sgd": ("", lambda: S.StreamingKernelPCA(2, **SGD)),
    "StreamingKernelPCA sketch": (
        "",
        lambda: S.StreamingKernelPCA(
            2, **FEW, solver="sketch", center=False, fit_inverse_transform=True
        ),
    ),
    "StreamingKernelPCA landmarks": (
        "",
        lambda: S.StreamingKernelPCA(2, landmarks=X[:20].copy(), solver="sketch"),
    ),
    "StreamingKernelPCA wide": (
        "",
        lambda: S.StreamingKernelPCA(2, n_random_features=2100, solver="sketch", bandwidth=2.0),
    ),
    "StreamingKernelSVD": ("view", lambda: S.StreamingKernelSVD(2, **FEW)),
    "StreamingKernelSVD sgd": ("view", lambda: S.StreamingKernelSVD(2, **SGD)),
    "StreamingKernelCCA": ("view", lambda: S.StreamingKernelCCA(2, ridge=1e-2, **FEW)),
    "StreamingKernelCCA sgd": ("view", lambda: S.StreamingKernelCCA(2, **SGD)),
    "StreamingSpectralClustering": (
        "",
        lambda: S.StreamingSpectralClustering(2, landmarks=40),
    ),
    "MultiviewMixture": ("views", lambda: S.MultiviewMixture(2, **FEW)),
    "MultiviewMixture apart": (
        "views",
        lambda: S.MultiviewMixture(2, same_conditionals=False, **FEW),
    ),
    "SubspaceReduction": ("", lambda: S.SubspaceReduction(4)),
    "SubspaceReduction power": (
        "",
        lambda: S.SubspaceReduction(3, operator="gaussian", n_power_iter=1),
    ),
    "RandomReduction": ("", lambda: S.RandomReduction(4, operator="gaussian")),
    "RandomReduction sample": ("", lambda: S.RandomReduction(4, operator="sample")),
    "ReducedClassifier": ("label", lambda: S.ReducedClassifier(4)),
    "ReducedClassifier rpdr": (
        "label",
        lambda: S.ReducedClassifier(
            4, method="rpdr", loss="logistic", class_weight={"no": 1.0, "yes": 2.0}
        ),
    ),
    "ReducedRegressor": ("y", lambda: S.ReducedRegressor(4)),
    "StreamingPCA units": ("", lambda: S.StreamingPCA(3, standardize=True)),
    "StreamingPCA window": ("", lambda: S.StreamingPCA(3, window=200)),
    "StreamingRidge half life": ("y", lambda: S.StreamingRidge(half_life=200.0)),
    "StreamingCCA": ("view", lambda: S.StreamingCCA(2)),
    "StreamingCCA rfd": ("view", lambda: S.StreamingCCA(2, sketch="rfd", sketch_size=6)),
    "StreamingPLS": ("view", lambda: S.StreamingPLS(2)),
    "StreamingGLM": ("y", lambda: S.StreamingGLM("gaussian")),
    "StreamingOutlierDetector": ("", lambda: S.StreamingOutlierDetector(3)),
}

X_NAMES = "--columns " + ",".join(NAMES)
COMMANDS = {
    "pca": f"pca rows.csv {X_NAMES} -k 2 -o pca.sks",
    "pca rfd": "pca rows.npy -k 2 --sketch rfd --sketch-size 5 --json -o pca2.sks",
    "pca whiten": "pca rows.npy --whiten -k 2 -o pca5.sks",
    "svd": "svd rows.npy -k 3 -o svd.sks",
    "sketch": "sketch rows.npy --sketch rfd --sketch-size 6 -o one.sks",
    "sketch again": "sketch rows.npy --sketch rfd --sketch-size 6 -o two.sks",
    "merge": "merge one.sks two.sks -o both.sks",
    "pca of a sketch": "pca both.sks -k 2 -o pca3.sks",
    "sketch for svd": "sketch rows.csv --for svd -o mean.sks",
    "svd of a sketch": "svd mean.sks -k 2 -o svd2.sks",
    "sketch for ridge": "sketch rows.csv --for ridge --target y -o sums.sks",
    "ridge of a sketch": "ridge sums.sks --alpha 2 -o ridge2.sks",
    "ridge": f"ridge rows.csv {X_NAMES} --target y --alpha 2 -o ridge.sks",
    "online": f"online rows.csv {X_NAMES} --target label --classes 0,1 -o online.sks",
    "online regress": "online rows.csv --target y --task regress --columns c0,c1 -o online2.sks",
    "kpca": "kpca rows.npy -k 2 --features 32 -o kpca.sks",
    "kpca sketch": "kpca rows.npy -k 2 --features 32 --solver sketch -o kpca2.sks",
    "kpca sgd": "kpca rows.npy -k 2 --features 32 --solver sgd --batch 64 -o kpca3.sks",
    "kcca": "kcca rows.csv --columns c0,c1,c2 --other c3,c4 -k 2 --features 32 -o kcca.sks",
    "reduce": "reduce rows.npy -k 4 --coordinates z.npy -o reduce.sks",
    "reduce model": "reduce rows.csv --target label --columns c0,c1,c2 -k 3 -o reduce2.sks",
    "workers": "pca rows.npy rows.npy -k 2 --workers 2 --sketch rfd --sketch-size 3 -o pca4.sks",
    "kpca workers": "kpca rows.npy rows.npy -k 1 --workers 2 --features 9 --solver sketch -o k.sks",
    "apply pca": "apply pca2.sks rows.npy -o scores.npy",
    "apply ridge": "apply ridge.sks rows.csv -o predicted.csv",
    "apply online": "apply online.sks rows.csv -o labels.csv",
    "apply kpca": "apply kpca2.sks rows.npy -o kpca.npy",
    "info": "info pca.sks",
    "info json": "info ridge.sks --json",
    "info online": "info online.sks",
    "info kpca": "info kpca2.sks --json",
    "info reduce": "info reduce2.sks --json",
    "report": "report pca2.sks -o report.html",
    "report online": "report online.sks -o report2.html",
    "report ridge": "report ridge.sks -o report3.html",
    "compare": "compare pca.sks one.sks",
    "anomalies": "anomalies rows.npy --top 3",
    "archive add": "archive add days pca.sks --from 2026-01-01 --to 2026-01-02",
    "archive list": "archive list days",
    "inference": "ridge rows.csv --target y --alpha 0 --inference -o least.sks",
    # Mistakes: one line each, with what to type instead.
    "missing": "pca holes.csv -k 1 -o no.sks",
    "missing target": "ridge holes.csv --target b --missing mean -o no.sks",
    "no mean": "pca empty.csv -k 1 --missing mean -o no.sks",
    "text": "pca text.csv -k 1 -o no.sks",
    "categories": "pca text.csv -k 1 --one-hot b -o no.sks",
    "unknown": "pca rows.what -k 1 -o no.sks",
    "header": "pca counted.csv -k 1 -o no.sks",
    "too many": "pca rows.npy -k 9 --sketch rfd --sketch-size 5 -o no.sks",
    "kpca in parts": "kpca rows.npy rows.npy -k 1 --workers 2 -o no.sks",
    "alpha": "ridge rows.csv --target y --alpha -1 -o no.sks",
    "no target": "ridge rows.csv -o no.sks",
    "no file": "info no.sks",
    "svmlight": "pca rows.svm --n-features 2 -k 1 -o no.sks",
    "loss": "online rows.vw --loss nothing -o no.sks",
    "no sketch": "pca rows.npy --sketch nothing -o no.sks",
    "another merge": "merge one.sks pca.sks -o no.sks",
    "merge kpca": "merge kpca3.sks kpca3.sks -o no.sks",
    "mean in parts": "pca holes.csv holes.csv -k 1 --missing mean --workers 2 -o no.sks",
    "changed": "pca rows.csv -k 3 --checkpoint before.check -o no.sks",
}


def digest(value: Any) -> str:
    """Return one short text for all bits of nested answers."""
    hashed = hashlib.blake2b(digest_size=8)
    for part in _parts(value):
        hashed.update(part)
    return hashed.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        for name in sorted(value):
            yield str(name).encode()
            yield from _parts(value[name])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
    elif sp.issparse(value):
        yield from _parts(value.toarray())
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
    elif hasattr(value, "state"):
        yield from _parts(learned(value))
    elif isinstance(value, str | int | float | bool | None | np.generic | S.Certificate):
        yield str(value).encode()
    else:
        yield type(value).__name__.encode()


def learned(model: Any) -> list[str]:
    """Return digests of the arrays of a state, in an order that does not hang on their names."""
    if hasattr(model, "steps"):
        return [part for _, step in model.steps for part in learned(step)]
    found = model.state().arrays.items()
    return sorted(digest(array) for name, array in found if not is_parameter(name))


def is_parameter(name: str) -> bool:
    """Tell arrays that were given from those that were learned."""
    return name == "alphas" or name.startswith(("rows.", "param."))


def answers(model: Any, *views: Any) -> dict[str, Any]:
    """Return all that is read of a fitted estimator."""
    found: dict[str, Any] = {"learned": learned(model), "params": str(model.get_params())}
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_"):
            with contextlib.suppress(AttributeError, ValueError):
                found[name] = getattr(model, name)
    several = {"StreamingKernelCCA": 2, "StreamingKernelSVD": 2, "MultiviewMixture": 3}
    given = views[: several.get(type(model).__name__, 1)]
    for name in ("transform", "predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(*given)
    if hasattr(model, "inverse_transform") and len(given) == 1:
        with contextlib.suppress(ValueError):
            found["inverse"] = model.inverse_transform(found["transform"])
    return found


def runs_of_sketches() -> Iterator[tuple[str, Any]]:
    """Run every sketch on dense and on sparse rows, in two blocks, and merged."""
    for name, make in SKETCHES.items():
        for form, rows in {"dense": X, "sparse": sp.csr_array(X * (X > 0.7)), "wide": WIDE}.items():
            more = {"targets": rows[:, [0]].reshape(-1)} if name == "regression" else {}
            if more and form == "sparse":
                continue
            sketch = make()
            for start in range(0, rows.shape[0], 220):
                part = slice(start, start + 220)
                sketch.update(rows[part], **{k: v[part] for k, v in more.items()})
            state, summary = sketch.state(), sketch.summary()
            found = [state.kind, dict(state.meta), dict(state.arrays), str(sketch.certificate())]
            found += [summary.components, summary.eigenvalues, summary.ridge]
            yield f"sketch {name} {form}", found


def runs_of_estimators() -> Iterator[tuple[str, Any]]:
    """Run every estimator by ``fit``, by blocks, and once more from its state."""
    for name, (beside, make) in ESTIMATORS.items():
        views = (X, *SECOND[beside])
        model = make().fit(*views)
        some = [view[:50] for view in views]
        yield f"{name} fit", answers(model, *some)
        yield f"{name} saved", answers(type(model).from_state(model.state()), *some)
        if not hasattr(model, "partial_fit") or getattr(model, "refine", 0):
            continue
        options = {"classes": ["no", "yes"]} if beside == "label" else {}
        model = make()
        for start in range(0, len(X), 90):
            model.partial_fit(*(view[start : start + 90] for view in views), **options)
        yield f"{name} blocks", answers(model, *some)


def write_files() -> None:
    """Write the files that the commands read."""
    np.save("rows.npy", X)
    np.save("view.npy", X[:, :4] ** 2)
    lines = [",".join([*NAMES, "y", "label"])]
    numbers = np.column_stack([X, TARGETS, TARGETS > 0]).round(6)[:300].tolist()
    lines += [",".join(map(repr, row)) for row in numbers]
    Path("rows.csv").write_text("\n".join(lines))
    Path("holes.csv").write_text("a,b\n1,2\n3,\n5,6\n")
    Path("empty.csv").write_text("a,b\n1,\n3,\n5,\n")
    Path("text.csv").write_text("a,b\n1,x\n3,y\n")
    sksketch.fit_stream(S.StreamingPCA(2), "rows.csv", checkpoint="before.check", progress=False)
    Path("counted.csv").write_text("0,1,2\n3,4,5\n6,7,8\n")
    Path("rows.what").write_text("1\n")
    Path("rows.svm").write_text("1 1:0.5 3:2\n-1 2:1\n")
    Path("rows.vw").write_text("1 |f a b\n-1 |f c\n1 |f d e\n")


def runs_of_commands() -> Iterator[tuple[str, Any]]:
    """Run every command in a folder of its own; the files it writes are part of the answer."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files()
        for name, line in COMMANDS.items():
            Path("no.sks").unlink(missing_ok=True)
            before = set(os.listdir())
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = cli.main(line.split())
            printed = [_timeless(stream.getvalue()) for stream in (out, err)]
            files = {file: _content(file) for file in sorted(set(os.listdir()) - before)}
            found = {"code": code, "printed": printed, "files": files}
            yield f"command {name}", found


def _timeless(text: str) -> str:
    """Return what a command has printed without times, rates and sizes of files."""
    lines = [line for line in text.splitlines() if "rows/s" not in line and "\u2501" not in line]
    text = re.sub(r"in \d[\d.,]* (s|ms|min)\b", "in T", "\n".join(lines))
    text = re.sub(r'"(seconds|file_bytes|bytes|n_bytes)": [\d.e-]+', "", text)
    return re.sub(r"[\d.,]+ (B|kB|KB|MB|KiB|MiB|bytes)\b", "SIZE", text)


def _content(file: str) -> Any:
    if os.path.isdir(file):
        return sorted(os.listdir(file))
    if not file.endswith(".sks"):
        return _timeless(Path(file).read_text()) if file.endswith("html") else _bytes(file)
    model = sksketch.load(file)
    if isinstance(model, sksketch.Sketch):
        state = model.state()
        return [state.kind, dict(state.meta), dict(state.arrays)]
    names = getattr(model, "feature_names_in_", None)
    return [type(model).__name__, learned(model), str(model.get_params()), names]


def _bytes(file: str) -> str:
    return hashlib.blake2b(Path(file).read_bytes()).hexdigest()


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Name what differs.

    >>> differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"})
    ['b changed', 'c is new']
    """
    lost = [f"{name} is gone" for name in old if name not in new]
    changed = [f"{name} changed" for name in old if name in new and old[name] != new[name]]
    return [*lost, *changed, *(f"{name} is new" for name in new if name not in old)]


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run everything; compare or keep the digests."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", metavar="FILE", type=Path, help="keep the digests here")
    parser.add_argument("--compare", metavar="FILE", type=Path, help="digests of another tree")
    parser.add_argument("--only", default="", metavar="TEXT", help="runs whose names begin so")
    parser.add_argument("--show", action="store_true", help="print answers beside the digests")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, str] = {}
    for runs in (runs_of_sketches, runs_of_estimators, runs_of_commands):
        for name, value in runs():
            if name.startswith(options.only):
                found[name] = digest(value)
                say(f"{name} {found[name]}")
                if options.show:
                    say(repr(value)[:2000])
    if options.write is not None:
        options.write.write_text(json.dumps(found, indent=0))
    if options.compare is None:
        return 0
    old = json.loads(options.compare.read_text())
    wanted = {name: value for name, value in old.items() if name.startswith(options.only)}
    differing = differences(wanted, found)
    say("\n".join(differing) or f"all {len(found)} are the same")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
