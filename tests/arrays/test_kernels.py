"""The compiled kernels are the generic ones, and importing the library compiles nothing."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import zoo
from sksketch.arrays.kernels import compiled, generic, kernels

SIZE = 7


def kernels_of(module):
    return [name for name in vars(module) if name.endswith("_inplace")]


KERNELS = sorted(kernels_of(generic))


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


def product_csr(X, rng):
    other = rng.standard_normal((X.shape[1], SIZE)).astype(X.dtype)
    return np.zeros((len(X), SIZE), X.dtype), *compressed(X, rng), *compressed(other, rng)


def uniforms(X, rng):
    return np.zeros(X.size), int(rng.integers(-(2**63), 2**63 - 1)), int(rng.integers(0, 2**40))


def as_svmlight(X, rng):
    """Return X without some of its entries as lines of text, with all that is to be skipped."""
    lines = [b"# a comment", b""]
    for row in X * (rng.random(X.shape) < 0.4):
        entries = [f"{j}:{float(x)!r}" for j, x in enumerate(row) if x]
        lines.append(" ".join([f"{len(entries)}", "qid:7", *entries, "# 1:2"]).encode())
    return b"\r\n".join(lines)


def parse_svmlight(X, rng):
    text = as_svmlight(X, rng)
    indptr = np.full(len(X) + 2, -1, np.int32)
    indptr[0] = 0
    indices, data = np.zeros(X.size, np.int32), np.zeros(X.size)
    progress, labels = np.zeros(5, np.int64), np.zeros(len(X) + 1)
    return progress, labels, indptr, indices, data, np.frombuffer(text, np.uint8)


def as_vw(X, rng):
    """Return X without some of its entries as lines of text, with all that a line may have."""
    heads = ["1 |", "-1 2.5 0.5 'tag |one", "|", "2.5e-1 tag|one:0.5", "0 1|zwei:-3 7 |"]
    lines = [b"", b" "]
    for i, row in enumerate(X * (rng.random(X.shape) < 0.4)):
        names = [
            ("%d:", "n%d:", "a long name:", ":")[j % 4].replace("%d", str(j))
            for j in range(len(row))
        ]
        entries = [f"{name}{float(x)!r}" for name, x in zip(names, row, strict=True) if x]
        lines.append(" ".join([heads[i % 5], *entries, "plain", "|two é"]).encode())
    return b"\r\n".join(lines)


def parse_vw(X, rng):
    text = as_vw(X, rng)
    indptr = np.zeros(len(X) + 1, np.int32)
    indices, data = np.zeros(3 * X.size + 5 * len(X), np.int32), np.zeros(3 * X.size + 5 * len(X))
    progress, labels, weights = np.zeros(6, np.int64), np.zeros(len(X)), np.zeros(len(X))
    out = progress, labels, weights, indptr, indices, data
    odd = np.zeros(0, np.int64), np.zeros(0)
    return *out, np.frombuffer(text, np.uint8), 2**20 - 1, *odd


def centered(X, rng):
    weights, origin, center = rng.random(len(X)), X[0].astype(float), rng.random(X.shape[1])
    return np.zeros_like(X), np.zeros(X.shape[1]), X.copy(), weights, origin, center


def column_sums(X, rng):
    return np.zeros(X.shape[1]), X.copy(), rng.random(len(X)), X[0].astype(float)


def grown_mean(X, rng):
    d = X.shape[1]
    held, tile = np.abs(rng.standard_normal((6, d))), rng.standard_normal((5, d)) * X[0]
    tile[1:3] **= 2
    arrays = np.zeros((6, d)), np.zeros((3, d)), held, tile
    return *(tuple(part) for part in arrays), (3.0, 2.0, 2.5, 1e-7), (1e-15,) * 7


def center_tile(X, rng):
    n_rows, d = X.shape
    held = tuple(np.abs(rng.standard_normal((6, d))))
    ages = rng.random(n_rows)
    weights = ages, np.ones(n_rows), ages
    grown = tuple(np.zeros((6, d)))
    totals = 3.0, float(ages.sum()), float(n_rows), 1e-7
    columns = X.copy(), X[0].astype(float)
    return np.zeros_like(X), grown, np.zeros((4, d)), held, *columns, weights, totals, (1e-15,) * 7


def place_center(X, rng):
    held = tuple(np.abs(rng.standard_normal((6, X.shape[1]))))
    return np.zeros(X.shape[1]), X[0].astype(float), held, (3.0, 2.0)


# Arguments of each kernel for one matrix; the outputs come first.
ARGUMENTS = {
    "center_rows_inplace": centered,
    "center_tile_inplace": center_tile,
    "column_sums_inplace": column_sums,
    "grown_mean_inplace": grown_mean,
    "normal_csr_inplace": normal_csr,
    "outer_csr_inplace": outer_csr,
    "parse_svmlight_inplace": parse_svmlight,
    "parse_vw_inplace": parse_vw,
    "place_center_inplace": place_center,
    "product_csr_inplace": product_csr,
    "scatter_csr_inplace": scatter_csr,
    "scatter_rows_inplace": scatter_rows,
    "uniforms_inplace": uniforms,
    "walsh_hadamard_inplace": walsh_hadamard,
}
# No product in them is rounded, and sums run in the same order.
BIT_FOR_BIT = {
    "parse_svmlight_inplace",
    "parse_vw_inplace",
    "place_center_inplace",
    "scatter_csr_inplace",
    "scatter_rows_inplace",
    "walsh_hadamard_inplace",
}


def test_the_compiled_kernels_are_in_use():
    assert kernels() is compiled


def test_the_modules_have_the_same_functions_in_alphabetical_order():
    assert kernels_of(generic) == KERNELS
    assert sorted(kernels_of(compiled)) == KERNELS
    assert set(ARGUMENTS) == set(KERNELS)


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
        "print(json.dumps([loaded, [len(f.signatures) for n, f in vars(k).items() "
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


def parsed(module, text):
    """Return what one call says about a text of one line: code, position, label, value."""
    progress, labels, indptr = np.zeros(5, np.int64), np.zeros(3), np.array([0, -1, -1], np.int32)
    indices, data = np.zeros(9, np.int32), np.zeros(9)
    module.parse_svmlight_inplace(
        progress, labels, indptr, indices, data, np.frombuffer(text, np.uint8)
    )
    return progress[0], progress[1], labels[0], data[0]


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, width=32, allow_infinity=False).map(lambda x: f"{x:.9g}"),
    st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"-?\.[0-9]{1,22}", fullmatch=True),
)


@settings(max_examples=400)
@given(NUMBERS)
def test_a_number_is_read_to_the_last_bit_or_left_to_the_caller(word):
    code, _, label, value = parsed(compiled, f"{word} 3:{word}".encode())
    assert code in (0, 1)
    if code == 0:
        np.testing.assert_array_equal([label, value], 2 * [float(word)])
    assert parsed(generic, f"{word} 3:{word}".encode())[0] == 0
    # Only numbers at the ends of the range, and few others, need the caller.
    if 1e-200 < abs(float(word)) < 1e200 and sum(map(str.isdigit, word)) < 18:
        assert code == 0


@pytest.mark.parametrize("word", ["nan", "-inf", "Infinity", "5e-324", "1e309", "1e-400"])
def test_what_is_beyond_the_kernel_is_left_to_the_caller(word):
    assert parsed(compiled, f"1 3:{word}".encode())[:2] == (1, 2)
    assert parsed(generic, f"1 3:{word}".encode())[0] == 0


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        (b"x1 1:2", 2, 0),
        (b"1,2 1:2", 2, 0),
        (b"1 1", 3, 2),
        (b"1 1 :2", 3, 2),
        (b"1 -1:2", 4, 2),
        (b"1 1.5:2", 4, 2),
        (b"1 :2", 4, 2),
        (b"1 2147483648:2", 4, 2),
        (b"1 99999999999999999999999:2", 4, 2),
        (b"1 1:", 5, 2),
        (b"1 1:2 2:x1\n", 5, 6),
        (b"1 1:2 2:1_0", 5, 6),
        (b"1 1:2:3", 5, 2),
        (b"1 1:1e", 5, 2),
        (b"1 1:-", 5, 2),
        (b"1 1:.", 5, 2),
        (b"1 2:1 2:1", 6, 6),
        (b"1 2:1 1:1", 6, 6),
    ],
)
def test_both_parsers_complain_about_the_same_place(text, code, position):
    for module in (generic, compiled):
        assert parsed(module, text)[:2] == (code, position)


def test_a_compiled_loop_is_kept_once_it_ran():
    from sksketch.arrays.kernels.jit import is_kept
    from sksketch.online.kernels.small_eigen import eigen_inplace

    eigen_inplace(np.eye(2, 4), np.empty((2, 4)), np.empty(2), np.empty((4, 4)))
    assert is_kept(eigen_inplace)
    assert is_kept(len)


def test_four_numbers_at_once_are_what_the_words_say():
    numba = pytest.importorskip("numba")
    from sksketch.online.kernels.simd import add4, load4, store4, zero4

    def combine(A, x):
        store4(A, 1, 2, add4(add4(zero4(), x, load4(A, 0, 0)), -1.0, load4(A, 0, 3)))

    rows = np.arange(14.0).reshape(2, 7)
    expected = rows.copy()
    expected[1, 2:6] = 3.0 * rows[0, :4] - rows[0, 3:]
    for form in (combine, numba.njit(combine)):
        found = rows.copy()
        form(found, 3.0)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 7, 30])
@pytest.mark.parametrize("rank", [0, 1, 30])
def test_small_eigenproblems_are_those_of_lapack(n_rows, rank):
    from sksketch.online.kernels.small_eigen import eigen_inplace

    B = np.random.default_rng(n_rows).standard_normal((n_rows, rank))
    width = -(-n_rows // 4) * 4
    A, V, values = np.zeros((n_rows, width)), np.empty((n_rows, width)), np.empty(n_rows)
    A[:, :n_rows] = B @ B.T
    eigen_inplace(A, V, values, np.empty((4, width)))
    V = V[:, :n_rows]
    expected = np.linalg.eigvalsh(B @ B.T)[::-1]
    rounding = 1e-14 * max(1.0, expected[0])
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding)
    np.testing.assert_allclose(V @ V.T, np.eye(n_rows), rtol=0, atol=1e-14)
    np.testing.assert_allclose((V.T * values) @ V, B @ B.T, rtol=0, atol=rounding)
