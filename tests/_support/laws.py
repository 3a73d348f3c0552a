"""The six laws of a sketch, one function each, and the sketches they are applied to.

``make`` always builds an empty sketch; laws raise AssertionError when broken.
"""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np

import sksketch
from _support import zoo
from _support.law_rows import Rows
from sksketch.sketches.base import Sketch
from sksketch.sketches.projections.linear_sketch import LinearSketch
from sksketch.state.persistence import State, read_state, write_state

# Blocks large against the sketch, and yet so small that a short stream has many shrinks.
EXACT = {"solver": "exact", "buffer_rows": 11}
BLOCK = {"solver": "block", "buffer_rows": 60}
COVARIANCE = {"solver": "covariance"}
SOLVERS = {"exact": EXACT, "block": BLOCK, "covariance": COVARIANCE, "auto": {}}
RULES = {
    "uniform": {},
    "half": {"rule": "half"},
    "parameterized": {"rule": "parameterized", "fraction": 0.5},
    "truncate": {"rule": "truncate"},
}
LINEAR = ("gaussian", "sign", "countsketch", "srht", "sample")
CORRECTIONS = ("half", "none", "full", "trace", "energy", 0.25)


def fd(*parts, sketch_size=4, **options):
    """Build Frequent Directions from parts of its options."""
    merged = {name: value for part in parts for name, value in part.items()}
    return sksketch.FrequentDirections(sketch_size, **(merged | options))


# Flushes every 25 rows, which is more than the sketch has, or every 31 dense ones.
SPARSE = {
    "boosted": {"buffer_rows": 25},
    "plain": {"buffer_rows": 25, "boosted": False},
    "eager": {"buffer_rows": 25, "n_power_iter": 0, "max_tries": 1},
    "half": {"buffer_nnz": 31 * 30, "correction": "half", "initial_ridge": 0.5},
    "energy": {"buffer_rows": 25, "correction": "energy"},
}
TWO_LEVEL = {
    "small": {"buffer_rows": 8},
    "ridge": {"sketch_size": 12, "rank": 2, "initial_ridge": 0.5},
    "sampled": {"buffer_rows": 8, "sample": True},
}


# Windows with so few rows that wait that most of them are in buckets.
WINDOWS = {
    "fd exact uniform": {"rows": 100, "tol": 0.5},
    "fd block half": {"rows": 90, "tol": 0.3},
    "exact covariance": {"rows": 120, "tol": 1.0},
    "exact covariance ridge": {"rows": 7, "tol": 1.0},
    "sfd boosted": {"rows": 70, "tol": 0.4},
    "2lfd small": {"rows": 150, "tol": 0.6},
    "centered fd exact uniform": {"rows": 80, "tol": 0.5},
    "centered exact covariance": {"rows": 110, "tol": 0.9},
}


def sfd(sketch_size=4, **options):
    """Build Sparse Frequent Directions."""
    return sksketch.SparseFrequentDirections(sketch_size, **options)


def two_level(sketch_size=7, rank=1, **options):
    """Build two-level Frequent Directions."""
    return sksketch.TwoLevelFrequentDirections(sketch_size, rank=rank, **options)


def _factories():
    """Name every option set worth a law of its own."""
    made = {
        f"fd {solver} {rule}": lambda s=SOLVERS[solver], r=RULES[rule]: fd(s, r)
        for solver in SOLVERS
        for rule in RULES
    }
    made |= {
        f"fd {solver} {correction}": lambda s=SOLVERS[solver], c=correction: fd(s, correction=c)
        for solver in ("exact", "block")
        for correction in CORRECTIONS[1:]
    }
    extras = {
        "decay": {"decay": 0.97},
        "half life": {"half_life": 20.0, "correction": "energy"},
        "growth": {"tol": 0.02, "max_sketch_size": 12},
        "ridge": {"initial_ridge": 0.5},
        "one row": {"sketch_size": 1},
        "wide": {"sketch_size": 50, "buffer_rows": 260},
    }
    for name, options in extras.items():
        for solver in ("exact", "block", "covariance"):
            made[f"fd {solver} {name}"] = lambda s=SOLVERS[solver], o=options: fd(s, **(s | o))
    made["fd block uncertified"] = lambda: fd(BLOCK, certify=False)
    made["fd block seeded"] = lambda: fd(BLOCK, seed=7, failure_probability=1e-6)
    made["exact covariance"] = sksketch.ExactCovariance
    made["exact covariance decay"] = lambda: sksketch.ExactCovariance(decay=0.97)
    made["exact covariance ridge"] = lambda: sksketch.ExactCovariance(initial_ridge=0.5)
    made |= {f"sfd {name}": lambda o=o: sfd(**o) for name, o in SPARSE.items()}
    made |= {f"2lfd {name}": lambda o=o: two_level(**o) for name, o in TWO_LEVEL.items()}
    # A single row makes every collision visible.
    made |= {
        f"{key} {size}": lambda key=key, size=size: sksketch.make_sketch(key, size, seed=size)
        for key in LINEAR
        for size in (1, 20)
    }
    inner = [
        *(f"fd {solver} uniform" for solver in SOLVERS),
        *("fd exact decay", "fd block decay", "fd covariance decay"),
        *("fd exact energy", "fd exact growth", "fd block growth", "fd block uncertified"),
        *("fd exact truncate", "fd block parameterized", "fd exact full", "fd exact ridge"),
        *("exact covariance", "exact covariance decay", "exact covariance ridge"),
        *(next(name for name in made if name.startswith(kind)) for kind in ("sfd ", "2lfd ")),
    ]
    made |= {f"centered {name}": lambda m=made[name]: sksketch.Centered(m()) for name in inner}
    made |= {
        f"window {name}": lambda m=made[name], o=o: sksketch.SlidingWindow(m(), **o)
        for name, o in WINDOWS.items()
    }
    made["regression decay"] = lambda: sksketch.Regression(fd(EXACT, decay=0.97))
    made["regression"] = lambda: sksketch.Regression(fd(EXACT))
    made["regression uncentered"] = lambda: sksketch.Regression(fd(BLOCK), centered=False)
    return made


SKETCHES = _factories()


def of_shard(make, shard):
    """Build an empty sketch; those with shard numbers merge only if these differ."""
    sketch = make()
    if isinstance(sketch, LinearSketch):
        return type(sketch)(sketch.sketch_size, seed=sketch.seed, shard=shard)
    return sketch


def concrete_classes() -> set[type[Sketch]]:
    """Return every class that inherits Sketch and can be built."""
    found, queue = set(), [Sketch]
    while queue:
        kind = queue.pop()
        queue += kind.__subclasses__()
        if not inspect.isabstract(kind):
            found.add(kind)
    return found


# What a sketch is


def assert_same_bits(left, right, *, meta=True):
    """Assert that two sketches give the same answer and hold the same state, bit for bit."""
    assert_same_answer(left, right)
    a, b = left.state(), right.state()
    assert a.kind == b.kind
    assert a.arrays.keys() == b.arrays.keys()
    for name in a.arrays:
        assert a.arrays[name].dtype == b.arrays[name].dtype, name
        np.testing.assert_array_equal(a.arrays[name], b.arrays[name], err_msg=name, strict=True)
    if meta:
        assert a.meta == b.meta


def assert_same_answer(left, right):
    """Assert that two sketches answer alike, bit for bit."""
    a, b = left.summary(), right.summary()
    np.testing.assert_array_equal(a.components, b.components, strict=True)
    np.testing.assert_array_equal(a.eigenvalues, b.eigenvalues, strict=True)
    for name in ("ridge", "error_bound", "confidence", "n_rows_seen", "squared_norm"):
        assert getattr(a, name) == getattr(b, name), name
    c, e = left.certificate(), right.certificate()
    np.testing.assert_array_equal(c.eigenvalues, e.eigenvalues)
    np.testing.assert_array_equal(c.captured_energy, e.captured_energy)
    assert c.spectral_error == e.spectral_error
    assert c.n_certain == e.n_certain


def initial_ridge(sketch) -> float:
    while hasattr(sketch, "sketch"):
        sketch = sketch.sketch
    return getattr(sketch, "initial_ridge", 0.0)


def is_centered(sketch) -> bool:
    return getattr(sketch, "centered", isinstance(sketch, sksketch.Centered))


# The laws


def splitting_is_invisible(make, X, cuts, weights=None):
    """Law 1: a block may come in any pieces."""
    whole, split = make(), make()
    whole.update(X, weights=weights)
    w = [None] * (len(cuts) + 1) if weights is None else np.split(weights, cuts)
    for piece, part in zip(zoo.pieces(X, cuts), w, strict=True):
        split.update(piece, weights=part)
    assert_same_bits(whole, split)


def reading_has_no_consequences(make, X, cuts):
    """Law 2: whoever looks in between changes nothing."""
    watched, alone = make(), make()
    handed_out = []
    for piece in zoo.pieces(X, cuts):
        alone.update(piece)
        watched.update(piece)
        handed_out.append((watched.summary(), copy.deepcopy(watched.summary())))
        watched.certificate()
        watched.error_bound()
        watched.state()
        watched.plan()
        repr(watched)
        _ = watched.squared_norm
        copy.deepcopy(watched)
        numbered = isinstance(watched, LinearSketch)
        _ = watched | (of_shard(make, 1).update(piece) if numbered else watched)
    assert_same_bits(watched, alone)
    # An answer that was handed out is nobody's buffer.
    for answer, copied in handed_out:
        np.testing.assert_array_equal(answer.to_dense(), copied.to_dense())


def bound_is_true(sketch, A, atol=None):
    """Law 3: every number of the certificate holds for the (weighted, centered) rows A."""
    failures = broken_bounds(sketch, A, atol)
    assert not failures, "; ".join(failures)


def broken_bounds(sketch, A, atol=None) -> list[str]:
    """Say which certified statements are false for the rows A."""
    atol = zoo.atol(A) if atol is None else atol
    G = zoo.gram(A)
    summary, certificate = sketch.summary(), sketch.certificate()
    low_rank = summary.with_ridge(0.0).to_dense()
    shift = initial_ridge(sketch) - summary.ridge
    # A ridge is known to its own last place, however small the rows are.
    atol += 4 * len(G) * np.finfo(np.float64).eps * summary.ridge
    # Shift and low-rank part apart, so that a large initial ridge does not swallow digits.
    error = float(np.abs(np.linalg.eigvalsh(G - low_rank + shift * np.eye(len(G)))).max())
    total = zoo.energy(A)
    low, high = certificate.spectral_error
    broken = []

    def claim(holds, text):
        if not holds:
            broken.append(text)

    claim(high == summary.error_bound == sketch.error_bound(), "bounds differ")
    claim(error <= high + atol, f"error {error:.6g} above {high:.6g}")
    claim(error >= low - atol, f"error {error:.6g} below {low:.6g}")
    atol_norm = atol + _squared_norm_error(sketch)
    claim(abs(summary.squared_norm - total) <= atol_norm, f"{summary.squared_norm} != {total}")
    truth = np.linalg.eigvalsh(G)[::-1]
    for i, (least, most) in enumerate(certificate.eigenvalues):
        claim(least - atol <= truth[i] <= most + atol, f"eigenvalue {i}: {truth[i]:.6g}")
    V = summary.components.astype(np.float64)
    captured = np.cumsum(((np.asarray(A, dtype=np.float64) @ V.T) ** 2).sum(axis=0))
    scale = total if total > 0 else 1.0
    for k, (least, most) in enumerate(certificate.captured_energy):
        inside = least * scale - atol <= captured[k] <= most * scale + atol
        claim(inside, f"captured {k + 1}: {captured[k]:.6g}")
    if len(certificate.eigenvalues):
        n_certain = certificate.n_certain
        # That number of eigenvalues of A'A is above all that was lost.
        lost = float(np.linalg.eigvalsh(G - _kept(sketch, low_rank))[-1])
        claim(n_certain == 0 or truth[n_certain - 1] >= lost - atol, f"{n_certain} are not certain")
    return broken


def _squared_norm_error(sketch):
    """Return what the squared norm of a window may be off by: its edge is known in part."""
    if not isinstance(sketch, sksketch.SlidingWindow):
        return 0.0
    # No direction is off by more than the error bound.
    return sketch.n_features * sketch.error_bound()


def _kept(sketch, low_rank):
    """Return B'B of a sketch without its read-out, where it has one."""
    if isinstance(sketch, sksketch.FrequentDirections):
        return zoo.gram(sketch.matrix)
    return low_rank


def saving_is_invisible(make, X, cuts, through=None):
    """Law 4: a sketch that was saved and loaded continues as if nothing had happened."""
    saved, alone = make(), make()
    for piece in zoo.pieces(X, cuts):
        alone.update(piece)
        saved.update(piece)
        state = saved.state()
        if through is not None:
            write_state(state, through)
            state = read_state(through)
        before = saved
        saved = type(saved).from_state(state)
        # The state is a copy: what the old sketch does later is nobody's business.
        before.update(2.0 * piece)
        assert saved.n_rows_seen == alone.n_rows_seen
    assert_same_bits(saved, alone)


def memory_is_flat(make, block, n_stretches=6, repeats=3):
    """Law 5: bytes held do not depend on the number of rows seen."""
    sketch = make()
    sizes = []
    for _ in range(n_stretches):
        for _ in range(repeats):
            sketch.update(block)
        arrays = sum(array.nbytes for array in sketch.state().arrays.values())
        sizes.append((arrays, len(pickle.dumps(sketch))))
    half = n_stretches // 2
    # Waiting rows come and go, so compare the most that each half of the stream needed, and
    # leave room for two blocks of them and for longer digits in counters.
    slack = 2 * block.nbytes + 2048
    assert max(a for a, _ in sizes[half:]) <= max(a for a, _ in sizes[:half]) + slack
    assert max(p for _, p in sizes[half:]) <= max(p for _, p in sizes[:half]) + 4 * slack


def inputs_are_left_alone(make, X):
    """Law 6: rows may be read-only and stay as they are; merge leaves the other usable."""
    frozen = X.copy()
    frozen.flags.writeable = False
    weights = np.linspace(0.5, 2.0, len(X))
    weights.flags.writeable = False
    one = make().update(frozen, weights=weights)
    other = of_shard(make, 1).update(frozen[::-1])
    np.testing.assert_array_equal(frozen, X)
    untouched = copy.deepcopy(other)
    one_before = copy.deepcopy(one)
    merged = one | other
    assert_same_bits(one, one_before)
    assert_same_bits(other, untouched)
    one.merge(other)
    assert_same_bits(one, merged)
    assert_same_bits(other, untouched)
    one.update(X)
    assert_same_bits(other, untouched)
    other.update(X)
    untouched.update(X)
    assert_same_bits(other, untouched)


def with_correction(sketch, correction):
    """Return a copy of a Frequent Directions sketch that is read out in another way."""
    state = sketch.state()
    meta = dict(state.meta) | {"option.correction": correction}
    return type(sketch).from_state(State(state.kind, state.version, meta, state.arrays))


def random_tree(make, X, rng, *, weighted=False, saving=True):
    """Feed X to shards in random pieces and merge them in a random tree.

    Returns the merged sketch and the rows it has seen, with their weights.
    """
    n_shards = int(rng.integers(1, 5))
    shards = [(of_shard(make, i), Rows(X.shape[1])) for i in range(n_shards)]
    n_cuts = int(rng.integers(0, min(6, len(X))))
    cuts = np.sort(rng.choice(np.arange(1, len(X)), n_cuts, replace=False)) if n_cuts else []
    for piece in zoo.pieces(X, cuts):
        _feed(shards[rng.integers(len(shards))], piece, rng, weighted)
        if len(shards) > 1 and rng.random() < 0.3:
            _merge_two(shards, rng)
        if saving and rng.random() < 0.2:
            i = int(rng.integers(len(shards)))
            sketch, rows = shards[i]
            shards[i] = (type(sketch).from_state(sketch.state()), rows)
    while len(shards) > 1:
        _merge_two(shards, rng)
    return shards[0]


def _feed(shard, piece, rng, weighted):
    sketch, rows = shard
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], len(piece)) if weighted else None
    sketch.update(piece, weights=weights)
    rows.update(piece, weights, sketch.decay)


def _merge_two(shards, rng):
    i, j = rng.choice(len(shards), 2, replace=False)
    shards[i][0].merge(shards[j][0])
    shards[i][1].merge(shards[j][1])
    del shards[j]
