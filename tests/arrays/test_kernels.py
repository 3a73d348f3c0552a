"""The compiled kernels are the generic ones, and importing the library compiles nothing."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _support import zoo
from _support.kernel_arguments import ARGUMENTS, BIT_FOR_BIT, ROOM
from sksketch.arrays.kernels import compiled, generic, kernels


def kernels_of(module):
    return [name for name in vars(module) if name.endswith("_inplace")]


KERNELS = sorted(kernels_of(generic))


def test_the_compiled_kernels_are_in_use():
    assert kernels() is compiled


def test_the_modules_have_the_same_functions():
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
        for i, (left, right) in enumerate(zip(*results, strict=True)):
            if (name, i) in ROOM:
                continue
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
