"""Several threads and processes: the same bits as one after the other."""

from __future__ import annotations

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sksketch
from robustness import abuse, children

X = np.random.default_rng(0).standard_normal((3000, 20)) @ np.diag(0.8 ** np.arange(20))
Y = X[:, :2] @ [1.0, -2.0]
SMALL = {"n_random_features": 32}
LEARNERS = {
    "pca": lambda: sksketch.StreamingPCA(3, sketch="rfd", sketch_size=6).fit(X),
    "svd": lambda: sksketch.StreamingSVD(3).fit(X),
    "ridge": lambda: sksketch.StreamingRidge(sketch="fd", sketch_size=6).fit(X, Y),
    "newton": lambda: sksketch.OnlineNewtonRegressor(sketch_size=5).fit(X, Y),
    "oja": lambda: sksketch.OnlineNewtonRegressor("oja", sketch_size=5).fit(X, Y),
    "kernel": lambda: sksketch.StreamingKernelPCA(2, **SMALL).fit(X[:500]),
    "reduced": lambda: sksketch.ReducedClassifier(5).fit(X[:500], Y[:500] > 0),
    "sfd": lambda: sksketch.StreamingSVD(3, sketch="sfd", sketch_size=6).fit(X),
}


def answer(model):
    method = model.predict if hasattr(model, "predict") else model.transform
    return np.asarray(method(X[:200]))


@pytest.fixture(scope="module")
def alone():
    return {name: answer(make()) for name, make in LEARNERS.items()}


def in_threads(work, n_threads):
    """Run all at the same moment and return what each gave."""
    start = threading.Barrier(n_threads)

    def run(i):
        start.wait()
        return work(i)

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(run, range(n_threads)))


def test_learning_in_threads_gives_the_same_bits(alone, full, tally):
    names = list(LEARNERS)
    for _ in range(10 if full else 1):
        found = in_threads(lambda i: answer(LEARNERS[names[i]]()), len(names))
        for name, got in zip(names, found, strict=True):
            np.testing.assert_array_equal(got, alone[name], err_msg=name)
            tally("threads", {"learned, the same bits": 1})


@pytest.mark.parametrize("name", LEARNERS)
def test_two_estimators_of_a_kind_in_two_threads(name, alone, tally):
    for got in in_threads(lambda i: answer(LEARNERS[name]()), 2):
        np.testing.assert_array_equal(got, alone[name])
        tally("threads", {"learned, the same bits": 1})


@pytest.mark.parametrize("name", LEARNERS)
def test_one_estimator_is_read_by_eight_threads(name, alone, tally):
    # Fitted attributes are computed at the first read, here by all at once.
    model = LEARNERS[name]()
    for got in in_threads(lambda i: answer(model), 8):
        np.testing.assert_array_equal(got, alone[name])
    tally("threads", {"read at once, the same bits": 8})


def test_a_file_is_read_in_two_threads_at_once(tmp_path):
    np.save(tmp_path / "a.npy", X)

    def read(i):
        source = sksketch.open_rows(tmp_path / "a.npy", batch_rows=100)
        return np.concatenate([block.X for block in source.blocks()])

    for got in in_threads(read, 4):
        np.testing.assert_array_equal(got, X)


FORKS = """
import os, sys, tempfile, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np, sksketch
from robustness import test_threads_and_forks as t

np.save(os.path.join(sys.argv[1], "a.npy"), t.X)
before = {name: t.answer(make()) for name, make in t.LEARNERS.items()}
blocks = sksketch.open_rows(os.path.join(sys.argv[1], "a.npy"), batch_rows=50).blocks()
next(blocks)  # the thread that reads ahead is at work
half = sksketch.StreamingPCA(3, sketch="rfd", sketch_size=6).partial_fit(t.X[:1000])

def check():
    for name, make in t.LEARNERS.items():
        np.testing.assert_array_equal(t.answer(make()), before[name], err_msg=name)
    whole = half.partial_fit(t.X[1000:])
    np.testing.assert_array_equal(t.answer(whole), before["pca"])
    source = sksketch.open_rows(os.path.join(sys.argv[1], "a.npy"), batch_rows=50)
    np.testing.assert_array_equal(np.concatenate([b.X for b in source.blocks()]), t.X)

pid = os.fork()
if pid == 0:
    try:
        check()
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
check()
assert sum(len(b.X) for b in blocks) == len(t.X) - 50
_, status = os.waitpid(pid, 0)
print("status", status)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX")
def test_parent_and_child_go_on_after_a_fork(tmp_path, tally):
    done = children.python(FORKS, str(tmp_path), timeout=200)
    assert done.stdout.strip() == "status 0", done.stdout + done.stderr[-2000:]
    tally("forks", {"parent and child, the same bits": 2 * len(LEARNERS)})


def test_spawned_processes_get_estimators_by_pickle(tmp_path, alone, tally):
    models = {name: make() for name, make in LEARNERS.items()}
    path = tmp_path / "models.pickle"
    path.write_bytes(pickle.dumps((models, alone)))
    code = (
        "import pickle, sys, numpy as np; from robustness import test_threads_and_forks as t\n"
        "models, alone = pickle.load(open(sys.argv[1], 'rb'))\n"
        "for name, m in models.items():\n"
        "    np.testing.assert_array_equal(t.answer(m), alone[name], err_msg=name)\n"
        "print(len(models))"
    )
    done = children.python(code, str(path))
    assert done.stdout.strip() == str(len(models)), done.stderr[-2000:]
    tally("forks", {"pickled into a new process, the same bits": len(models)})


def test_everything_public_is_copied_by_pickle(tally):
    for name in (*abuse.SKETCHES, *abuse.ESTIMATORS):
        model = abuse.fitted(name)
        back = pickle.loads(pickle.dumps(model))
        abuse.forging.assert_same(back.state(), model.state())
        tally("forks", {"pickled, the same state": 1})
