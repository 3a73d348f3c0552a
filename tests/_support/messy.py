"""A table nobody prepared: columns of every type, holes, units that differ by 10^6, two targets.

`expected` is what scikit-learn and pandas make of it in memory: the columns of `TableEncoder`.
"""

from __future__ import annotations

import datetime
import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import murmurhash3_32

NUMBERS = ["power", "voltage", "ratio", "single", "count", "small"]
OFTEN_MISSING = "rating"
NAMES = ["city", "product", "tier"]
DATES = ["signed_up", "seen_at", "birthday"]
FREE_TEXT = "note"
DROPPED = {
    "row": "numbers the rows",
    "customer": "identifier",
    "unit": "only value is 'kWh'",
    "release": "only value is 3",
    "nothing": "no row has a value",
}
TARGETS = ["price", "churn"]
N_BUCKETS = 1024
WORDS = [
    *("alpha", "beta", "gamma", "Delta", "épsilon", "zeta", "42", "7", "x", "the", "of", "meter_1"),
    *("Straße", "broken", "again"),
]


def messy_table(n_rows: int = 600, seed: int = 0) -> pa.Table:
    """Return a table with a column of every type."""
    rng = np.random.default_rng(seed)

    def holed(values: pa.Array, share: float = 0.05) -> pa.Array:
        return pa.compute.if_else(pa.array(rng.random(n_rows) >= share), values, None)

    days = rng.integers(0, 2_000, n_rows)
    first = datetime.date(2019, 3, 1)
    cities = rng.choice(["Rome", "Bern", "Oslo, N", "Paris"], n_rows, p=[0.4, 0.3, 0.2, 0.1])
    products = np.minimum(rng.zipf(1.5, n_rows), 200)
    power = 1e6 * rng.gamma(2.0, size=n_rows)
    ratio = 1e-3 * rng.standard_normal(n_rows)
    price = 20.0 + power / 1e5 + 1e3 * ratio + 3.0 * (cities == "Bern") + rng.random(n_rows)
    moments = pa.array(rng.integers(1.5e15, 1.7e15, n_rows)).cast(pa.timestamp("us"))
    dates = pa.array([first + datetime.timedelta(int(day)) for day in days], pa.date32())
    return pa.table(
        {
            "row": pa.array(np.arange(n_rows) + 1000),
            "customer": [f"c{rng.integers(2**60):x}" for _ in range(n_rows)],
            "power": holed(pa.array(power)),
            "voltage": holed(pa.array(230.0 + rng.standard_normal(n_rows))),
            "ratio": holed(pa.array(ratio)),
            "single": holed(pa.array(rng.standard_normal(n_rows).astype(np.float32))),
            "count": holed(pa.array(rng.poisson(40.0, n_rows))),
            "small": pa.array(rng.integers(-5, 5, n_rows).astype(np.int8)),
            "rating": holed(pa.array(rng.integers(1, 6, n_rows)), 0.3),
            "active": holed(pa.array(rng.random(n_rows) < 0.7)),
            "city": holed(pa.array(cities.tolist())),
            "product": holed(pa.array([f"p{i}" for i in products])),
            "tier": holed(pa.array(rng.choice(["gold", "silver"], n_rows).tolist())).cast(
                pa.dictionary(pa.int32(), pa.string())
            ),
            "signed_up": holed(pa.array([day.isoformat() for day in dates.to_pylist()])),
            "seen_at": holed(moments),
            "birthday": holed(dates),
            "unit": pa.array(["kWh"] * n_rows),
            "release": pa.array(np.full(n_rows, 3)),
            "note": holed(pa.array([" ".join(rng.choice(WORDS, 7)) for _ in range(n_rows)])),
            "nothing": pa.nulls(n_rows),
            "price": pa.array(price),
            "churn": pa.array(np.where(price + rng.random(n_rows) > 42, "yes", "no").tolist()),
        }
    )


def write_parquet(folder: Path, table: pa.Table, n_files: int = 4) -> Path:
    """Write a directory of several files."""
    folder.mkdir()
    for i, part in enumerate(_parts(table, n_files)):
        pq.write_table(part, folder / f"part{i}.parquet", row_group_size=100)
    return folder


def write_csv(folder: Path, table: pa.Table, n_files: int = 3) -> Path:
    """Write a directory of several files."""
    folder.mkdir()
    for i, part in enumerate(_parts(table, n_files)):
        frame = as_frame(part)
        # With all digits: the shortest that tell single precision are another double.
        single = frame.dtypes[frame.dtypes == np.float32].index
        frame.astype(dict.fromkeys(single, np.float64)).to_csv(folder / f"part{i}.csv", index=False)
    return folder


def _parts(table: pa.Table, n_parts: int) -> list[pa.Table]:
    cuts = np.linspace(0, len(table), n_parts + 1).astype(int)
    return [table[a:b] for a, b in itertools.pairwise(cuts)]


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as pandas' frame, whose integers and truth values keep their types."""
    return table.to_pandas(
        types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get
    )


def date_parts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the year with its fraction, the weekday and the hour of columns of dates."""
    parts = {}
    for name in frame:
        moments = pd.to_datetime(frame[name])
        year = moments.dt.year
        begin = pd.to_datetime(year.map("{:.0f}-01-01".format, na_action="ignore"))
        length = np.where(moments.dt.is_leap_year, 366.0, 365.0)
        parts[f"{name}:year"] = year + (moments - begin) / pd.Timedelta(days=1) / length
        parts[f"{name}:weekday"] = moments.dt.day_of_week.astype(float)
        midnight = moments.dt.normalize()
        parts[f"{name}:hour"] = (moments - midnight) / pd.Timedelta(hours=1)
    return pd.DataFrame(parts).loc[:, lambda found: found.nunique() > 1]


def hashed_words(texts: pd.Series) -> pd.DataFrame:
    """Return words hashed to signed buckets, in rows of length 1."""
    rows = np.zeros((len(texts), N_BUCKETS))
    for row, text in zip(rows, texts, strict=True):
        coded = text.lower() if isinstance(text, str) else ""
        for word in re.findall(rb"[a-z0-9_\x80-\xff]{2,}", coded.encode()):
            code = int(word) if word.isdigit() else int(murmurhash3_32(word, positive=True))
            row[code % 2**32 % N_BUCKETS] += 1.0 if code % 2**32 < 2**31 else -1.0
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    names = [f"{texts.name}#{i}" for i in range(N_BUCKETS)]
    return pd.DataFrame(rows / np.where(lengths > 0, lengths, 1.0), columns=names)


def _named(name: str, value: object) -> str:
    if value is None:
        return f"{name}=(missing)"
    return f"{name}={'(other)' if value == 'infrequent_sklearn' else value}"


def expected(table: pa.Table, max_categories: int = 50) -> pd.DataFrame:
    """Return the columns that scikit-learn and pandas make of a table in memory, by name."""
    frame = table.to_pandas()
    kept = [*NUMBERS, OFTEN_MISSING, *(["price"] if "price" in frame else [])]
    names = [*NAMES, *(["churn"] if "churn" in frame else [])]
    frame[names] = frame[names].astype(object).where(frame[names].notna(), None)
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    marked = FeatureUnion([("marked", MissingIndicator(features="all"))])
    categories = OneHotEncoder(
        max_categories=max_categories,
        sparse_output=False,
        handle_unknown="infrequent_if_exist",
        feature_name_combiner=_named,
    )
    transformer = ColumnTransformer(
        [
            ("numbers", scaled, kept),
            ("holes", marked, [OFTEN_MISSING]),
            ("booleans", SimpleImputer(), ["active"]),
            ("names", categories, names),
        ],
        verbose_feature_names_out=False,
    )
    frame["active"] = frame["active"].astype(float)
    numbers = transformer.fit_transform(frame)
    columns = [*kept, f"{OFTEN_MISSING}=(missing)", "active"]
    columns += transformer.named_transformers_["names"].get_feature_names_out().tolist()
    found = date_parts(frame[DATES])
    return pd.concat(
        [
            pd.DataFrame(np.asarray(numbers, dtype=float), columns=columns),
            pd.DataFrame(scaled.fit_transform(found), columns=found.columns),
            hashed_words(frame[FREE_TEXT]),
        ],
        axis=1,
    )
