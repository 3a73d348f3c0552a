"""The compiled kernels are the generic ones, and importing the library compiles nothing."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import zoo
from sksketch.arrays.kernels import compiled, generic, kernels

SIZE = 7


def public_functions(module):
    return {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    }


KERNELS = sorted(public_functions(generic))


def compressed(X, rng):
    """Return X without some of its entries as the three arrays of a CSR matrix."""
    S = sp.csr_array(X * (rng.random(X.shape) < 0.4))
    return S.indptr, S.indices, S.data


def outer_csr(X, rng):
    columns = rng.standard_normal((len(X), SIZE)).astype(X.dtype)
    return np.zeros((X.shape[1], SIZE), X.dtype), columns, *compressed(X, rng)


def positions_and_signs(X, rng):
    return rng.integers(0, SIZE, len(X)), rng.choice([-1.0, 1.0], len(X)).astype(X.dtype)


def scatter_csr(X, rng):
    total = np.zeros((SIZE, X.shape[1]), X.dtype)
    return total, *positions_and_signs(X, rng), *compressed(X, rng)


def scatter_rows(X, rng):
    return np.zeros((SIZE, X.shape[1]), X.dtype), *positions_and_signs(X, rng), X.copy()


def walsh_hadamard(X, rng):
    return (X[: 1 << (len(X).bit_length() - 1)].copy(),)


def normal_csr(X, rng):
    W = rng.standard_normal((X.shape[1], SIZE))
    scale, center = rng.standard_normal(len(X)), X.mean(axis=0, dtype=np.float64)
    return np.zeros_like(W), np.zeros(SIZE), W, *compressed(X, rng), scale, center @ W


# Arguments of each kernel for one matrix; the outputs come first.
ARGUMENTS = {
    "normal_csr_inplace": normal_csr,
    "outer_csr_inplace": outer_csr,
    "scatter_csr_inplace": scatter_csr,
    "scatter_rows_inplace": scatter_rows,
    "walsh_hadamard_inplace": walsh_hadamard,
}
# No product in them is rounded, and sums run in the same order.
BIT_FOR_BIT = {"scatter_csr_inplace", "scatter_rows_inplace", "walsh_hadamard_inplace"}


def test_the_compiled_kernels_are_in_use():
    assert kernels() is compiled


def test_the_modules_have_the_same_functions_in_alphabetical_order():
    names = list(public_functions(generic))
    assert names == sorted(names)
    assert names == list(public_functions(compiled))
    assert set(names) == set(ARGUMENTS)


@pytest.mark.parametrize("name", KERNELS)
def test_signatures_are_the_same(name):
    reference, fast = getattr(generic, name), getattr(compiled, name)
    assert inspect.signature(reference) == inspect.signature(fast.py_func)
    assert reference.__doc__.split(".")[0].split(",")[0] in fast.py_func.__doc__


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
def test_results_are_the_same_on_the_zoo(name, dtype):
    for animal, X in zoo.named().items():
        if dtype == np.float32 and animal in ("huge", "tiny"):
            continue
        X = X.astype(dtype)
        results = []
        for module in (generic, compiled):
            arguments = ARGUMENTS[name](X, np.random.default_rng(3))
            getattr(module, name)(*arguments)
            results.append(arguments)
        for left, right in zip(*results, strict=True):
            if name in BIT_FOR_BIT:
                np.testing.assert_array_equal(left, right, err_msg=animal, strict=True)
            else:
                # Sums over all rows of products, which one side may round once less.
                atol = 8 * len(X) * np.finfo(dtype).eps * np.abs(left).max(initial=0.0)
                np.testing.assert_allclose(left, right, rtol=0, atol=atol, err_msg=animal)


@pytest.mark.parametrize("name", ["outer_csr_inplace", "scatter_csr_inplace"])
def test_a_stretch_of_compressed_rows_needs_no_copy(name):
    X = zoo.named()["flat"]
    for module in (generic, compiled):
        whole, parts = (ARGUMENTS[name](X, np.random.default_rng(3)) for _ in range(2))
        getattr(module, name)(*whole)
        total, *by_row, indptr, indices, data = parts
        for rows in (slice(0, 60), slice(60, len(X))):
            stretch = indptr[rows.start : rows.stop + 1]
            getattr(module, name)(total, *(a[rows] for a in by_row), stretch, indices, data)
        np.testing.assert_array_equal(whole[0], total)


@pytest.mark.parametrize("n_rows", [1, 2, 4, 8, 32, 64])
def test_the_transform_is_the_hadamard_matrix(n_rows):
    i = np.arange(n_rows)
    H = 1.0 - 2.0 * (np.bitwise_count(i[:, None] & i) & 1)
    for module in (generic, compiled):
        rows = np.eye(n_rows)
        module.walsh_hadamard_inplace(rows)
        np.testing.assert_array_equal(rows, H)
        module.walsh_hadamard_inplace(rows)
        np.testing.assert_array_equal(rows, n_rows * np.eye(n_rows))


def test_importing_neither_loads_numba_nor_compiles():
    code = (
        "import json, sys, sksketch; loaded = 'numba' in sys.modules; "
        "from sksketch.arrays.kernels import kernels; k = kernels(); "
        "print(json.dumps([loaded, [len(f.signatures) for f in vars(k).values() "
        "if hasattr(f, 'signatures')]]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, compiled_signatures = json.loads(done.stdout)
    assert not loaded
    assert compiled_signatures == [0] * len(KERNELS)


def test_kernels_work_where_nothing_can_be_kept():
    # Numba has no place for the compiled code of a program that is not a file.
    use = "x = np.ones((2, 1)); walsh_hadamard_inplace(x); print(x.ravel().tolist())"
    program = f"{inspect.getsource(compiled)}\n{use}\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[2.0, 0.0]", done.stderr
