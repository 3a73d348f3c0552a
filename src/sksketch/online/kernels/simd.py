"""Four neighbors of a row as one value, which a processor multiplies and adds at once.

Rows of a few columns are too short for the loops that the compiler makes of loops over columns.
These functions say what they do, and do it where there is no compiler; in compiled code each of
them is one instruction. `benchmarks/speed/hand_written.py` compares them with plain loops.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from sksketch._typing import Array


def zero4() -> Array:
    """Return four zeros.

    >>> A = np.arange(8.0).reshape(1, 8)
    >>> store4(A, 0, 4, add4(zero4(), 10.0, load4(A, 0, 0)))
    >>> A
    array([[ 0.,  1.,  2.,  3.,  0., 10., 20., 30.]])
    """
    return np.zeros(4)


def load4(A: Array, i: int, j: int) -> Array:
    """Return the four numbers of row ``i`` from column ``j`` on."""
    return A[i, j : j + 4].copy()


def store4(A: Array, i: int, j: int, v: Array) -> None:
    """Write four numbers to row ``i`` from column ``j`` on."""
    A[i, j : j + 4] = v


def add4(total: Array, x: float, v: Array) -> Array:
    """Return ``total + x v``; products may be fused with sums."""
    return total + x * v


def _register() -> None:
    """Tell the compiler what it shall make of the four functions."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import lower_builtin, models, register_model, type_callable

    class Four(types.Type):
        def __init__(self) -> None:
            super().__init__(name="Four")

    four, row = Four(), ir.VectorType(ir.DoubleType(), 4)
    fused = ("contract",)

    @register_model(Four)
    class FourModel(models.PrimitiveModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, row)

    type_callable(zero4)(lambda context: lambda: four)
    type_callable(load4)(lambda context: lambda A, i, j: four)
    type_callable(store4)(lambda context: lambda A, i, j, v: types.none)
    type_callable(add4)(lambda context: lambda total, x, v: four)

    def place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, args[0])
        at = [context.cast(builder, args[n], signature.args[n], types.intp) for n in (1, 2)]
        shape = cgutils.unpack_tuple(builder, array.shape, 2)
        strides = cgutils.unpack_tuple(builder, array.strides, 2)
        pointer = cgutils.get_item_pointer2(
            context, builder, array.data, shape, strides, kind.layout, at
        )
        return builder.bitcast(pointer, row.as_pointer())

    @lower_builtin(zero4)
    def zero(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(row, [0.0] * 4)

    @lower_builtin(load4, types.Array, types.Integer, types.Integer)
    def load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(place(context, builder, signature, args), align=8)

    @lower_builtin(store4, types.Array, types.Integer, types.Integer, Four)
    def store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[3], place(context, builder, signature, args), align=8)
        return context.get_dummy_value()

    @lower_builtin(add4, Four, types.Float, Four)
    def add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        total, x, v = args
        unknown = ir.Constant(row, ir.Undefined)
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
        xs = builder.insert_element(unknown, x, ir.IntType(32)(0))
        xs = builder.shuffle_vector(xs, unknown, lanes)
        return builder.fadd(total, builder.fmul(xs, v, flags=fused), flags=fused)


try:
    import numba  # noqa: F401
except ImportError:  # a Python that numba does not support yet
    pass
else:
    _register()
