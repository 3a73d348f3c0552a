"""Spark: every partition is learned by its task, and states, not rows, are merged as a tree."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sksketch.exceptions import PartitionError
from sksketch.run.shards import (
    FAN_IN,
    Rows,
    Shard,
    check_fan_in,
    fit_parts,
    kind_of,
    learn_shard,
    merge_shards,
    merge_tree,
    shard_template,
    takes_tables,
)
from sksketch.sketches import Sketch
from sksketch.state.persistence import from_bytes, to_bytes
from sksketch.streams.blocks import concatenated
from sksketch.streams.formats.spark_vectors import (
    SHARD_SCHEMA,
    Columns,
    batch_rows,
    packed,
    shard_batch,
    shard_table,
    unpacked,
    with_column,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType

T = TypeVar("T")

NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "decimal")


def fit_spark(
    estimator: T,
    df: DataFrame,
    *,
    features: str | list[str] | None = None,
    target: str | list[str] | None = None,
    weight: str | None = None,
    fan_in: int = FAN_IN,
) -> T:
    """Learn from a Spark frame: each partition in its task, then a tree of merges.

    For the same partitions and ``fan_in`` the result is the same to the last bit, and a sketch
    is the same as that of `sketch_dask`. A task that Spark runs again, or twice at a time, counts
    once.

    Parameters
    ----------
    estimator : estimator or empty sketch
        One that can be merged. As with ``fit``, what it learned before is forgotten.
    df : pyspark.sql.DataFrame
        Rows.
    features : str or list of str, default=None
        Numeric columns, or one column of vectors (sparse ones stay sparse) or of arrays. By
        default all columns but target and weight.
    target : str or list of str, default=None
        Numeric columns to predict.
    weight : str, default=None
        Column with the weights: a row of weight ``w`` counts as ``w`` copies of itself.
    fan_in : int, default=8
        Partitions that are merged at a time.

    Returns
    -------
    estimator
        The same object.

    Raises
    ------
    PartitionError
        A ValueError that begins with the number of the partition.

    See Also
    --------
    transform_spark : Applies the fitted estimator to a frame.
    fit_dask : The same for dask collections.
    fit_stream : One process, with checkpoints.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> spark = SparkSession.builder.getOrCreate()  # doctest: +SKIP
    >>> pca = fit_spark(StreamingPCA(5), spark.read.parquet("rows.parquet"))  # doctest: +SKIP
    """
    _require_spark()
    check_fan_in(fan_in)
    shard_template(estimator)
    columns = _columns(df, features, target, weight, raw=takes_tables(estimator))
    chosen = df.select(*columns.features, *columns.target, *([weight] if weight else []))
    n_parts = _n_partitions(chosen)

    def learn(template: object) -> Shard:
        task = partial(_learn_partition, template, columns, n_parts)
        shards = chosen.mapInArrow(task, SHARD_SCHEMA)
        kind, width, size = kind_of(template), n_parts, fan_in
        while width > fan_in:
            shards = _merged(shards, kind, size)
            width, size = -(-width // fan_in), size * fan_in
        found = _in_order(_run(shards.collect, n_parts))
        return merge_tree(kind, found, fan_in)

    fit_parts(estimator, n_parts, learn, lambda n: _head(chosen, columns, n))
    named = isinstance(estimator, Sketch) or columns.raw or hasattr(estimator, "steps")
    if _are_plain(df, columns.features) and not named:
        names = np.asarray(columns.features, dtype=object)
        estimator.feature_names_in_ = names  # type: ignore[attr-defined]
    return estimator


def transform_spark(
    estimator: Any,
    df: Any,
    *,
    features: str | list[str] | None = None,
    output: str = "scores",
) -> Any:
    """Return a Spark frame with what a fitted estimator makes of its rows in a further column.

    Parameters
    ----------
    estimator : fitted estimator
        With ``transform``, or else ``predict``.
    df : pyspark.sql.DataFrame
        Rows.
    features : str or list of str, default=None
        Numeric columns, or one column of vectors or of arrays; by default those that the
        estimator has learned from.
    output : str, default="scores"
        Name of the new column: an array for each row, or a number where there is one.

    Returns
    -------
    pyspark.sql.DataFrame
        Computed when it is needed.

    See Also
    --------
    fit_spark : Learns from a Spark frame.

    Examples
    --------
    >>> scores = transform_spark(pca, frame)  # doctest: +SKIP
    """
    _require_spark()
    from pyspark.sql.types import (
        ArrayType,
        DoubleType,
        FloatType,
        StringType,
        StructField,
        StructType,
    )

    if output in df.columns:
        raise ValueError(f"the frame has a column {output!r} already; give another output")
    raw = takes_tables(estimator)
    first = estimator.steps[0][1] if raw and hasattr(estimator, "steps") else estimator
    names = getattr(first, "feature_names_in_", None)
    if features is None and names is not None:
        features = list(names)
    columns = _columns(df, features, None, None, raw=raw)
    plain = _are_plain(df, columns.features)
    if plain and names is not None and list(names) != columns.features:
        raise ValueError(
            f"the estimator has learned from {list(names)[:5]} and not {columns.features[:5]}"
        )
    # Batches are bare arrays, and scikit-learn would miss their names.
    bare = copy.copy(estimator)
    vars(bare).pop("feature_names_in_", None)
    method = "transform" if callable(getattr(estimator, "transform", None)) else "predict"
    like = _head(df, columns, 1) if raw else np.zeros((1, bare.n_features_in_))
    example = np.asarray(getattr(bare, method)(like))
    number: Any = FloatType() if example.dtype == np.float32 else DoubleType()
    if example.dtype.kind in "OU":
        number = StringType()
    field = StructField(output, number if example.ndim == 1 else ArrayType(number))
    schema = StructType([*df.schema.fields, field])
    task = partial(_answer_batches, bare, method, columns, output, example.dtype)
    return df.mapInArrow(task, schema)


def _require_spark() -> None:
    try:
        import pyspark  # noqa: F401  (only to know)
    except ImportError:
        raise ImportError("pyspark is needed: pip install 'scikit-sketch[spark]'") from None


def _columns(
    df: DataFrame,
    features: str | list[str] | None,
    target: str | list[str] | None,
    weight: str | None,
    *,
    raw: bool = False,
) -> Columns:
    """Return the columns to read, if the frame has them and they hold numbers, or raw ones."""
    targets = [target] if isinstance(target, str) else list(target or [])
    if features is None:
        features = [name for name in df.columns if name not in (*targets, weight)]
    names = [features] if isinstance(features, str) else list(features)
    types = dict(df.dtypes)
    for name in (*names, *targets, *([weight] if weight else [])):
        if name not in types:
            raise ValueError(f"the frame has no column {name!r}; it has {', '.join(df.columns)}")
        kind = types[name].partition("(")[0]
        alone = len(names) == 1 and name in names and (kind == "vector" or kind[:5] == "array")
        if kind not in NUMERIC and not alone and (name == weight or not raw):
            raise ValueError(
                f"column {name!r} is {types[name]}; give numeric columns, or one of vectors or "
                "arrays"
            )
    if not names:
        raise ValueError("there are no features; name the columns to learn from")
    return Columns(names, targets, weight, raw)


def _are_plain(df: DataFrame, names: list[str]) -> bool:
    types = dict(df.dtypes)
    return all(types[name].partition("(")[0] in NUMERIC for name in names)


def _n_partitions(df: DataFrame) -> int:
    from pyspark.errors import PySparkException

    try:
        n_parts: int = df.rdd.getNumPartitions()
    except (PySparkException, AttributeError):
        raise TypeError(
            "the number of partitions is not known through Spark Connect; use a session in the "
            "driver"
        ) from None
    return n_parts


# On the workers


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def _learn_partition(
    template: object, columns: Columns, n_parts: int, batches: Iterator[Any]
) -> Iterator[Any]:
    """Learn a partition; gives one row, also for a partition without any."""
    blocks = (Rows(*batch_rows(batch, columns)) for batch in batches)
    yield shard_batch(*_as_row(learn_shard(template, blocks, _partition_number(), n_parts)))


def _merge_group(kind: Any, table: Any) -> Any:
    return shard_table(*_as_row(merge_shards(kind, _in_order(table.to_pylist()))))


def _as_row(shard: Shard) -> tuple[int, int, int, bytes | None]:
    state = None if shard.state is None else to_bytes(shard.state)
    return shard.first, shard.stop, shard.n_rows, state


def _from_row(row: Row) -> Shard:
    state = None if row["state"] is None else from_bytes(bytes(row["state"]))
    return Shard(row["first"], row["stop"], row["n_rows"], state)


def _in_order(rows: Any) -> list[Shard]:
    return sorted(map(_from_row, rows), key=lambda shard: shard.first)


def _answer_batches(
    estimator: object,
    method: str,
    columns: Columns,
    output: str,
    dtype: DataType,
    batches: Iterator[Any],
) -> Iterator[Any]:
    for batch in batches:
        if batch.num_rows:
            X = batch_rows(batch, columns)[0]
            answer = np.asarray(getattr(estimator, method)(X)).astype(dtype, copy=False)
            yield with_column(batch, output, answer)


# In the driver


def _merged(shards: DataFrame, kind: type, size: int) -> Any:
    """Merge the shards of each ``size`` consecutive partitions."""
    from pyspark.sql.functions import col, floor

    group = floor(col("first") / size).alias("group")
    return shards.groupBy(group).applyInArrow(_group_merger(kind), SHARD_SCHEMA)


def _group_merger(kind: type) -> Callable[[Any], Any]:
    # Spark counts the arguments to tell whether the key is wanted.
    def merge(table: object) -> Any:
        return _merge_group(kind, table)

    return merge


def _head(df: DataFrame, columns: Columns, n_rows: int) -> Any:
    """Return the first rows, for a pilot."""
    rows = df.limit(n_rows).mapInArrow(packed, "batch binary").collect()
    batches = [batch for row in rows for batch in unpacked(bytes(row["batch"]))]
    blocks = [batch_rows(batch, columns)[0] for batch in batches if batch.num_rows]
    if not blocks:
        raise ValueError("the partitions hold no rows; give some that do")
    return concatenated(blocks)


def _run(action: Callable[[], Any], n_parts: int) -> Any:
    """Run a Spark action; an error of a partition comes as one that names it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return action()
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        found = re.findall(r"PartitionError: (partitions? \d+[^\n]*)", text)
        lost = re.search(r"Task (\d+) in stage [\d.]+ failed (\d+) times", text)
        if found:
            raise PartitionError(found[0]) from error
        if lost is not None:
            raise PartitionError(
                f"partition {lost[1]} of {n_parts}: its task was lost {lost[2]} times; give "
                "smaller partitions or more memory"
            ) from error
        raise
