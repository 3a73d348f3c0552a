"""Tables as they come to rows of numbers: a transformer that streams, merges and is saved."""

from __future__ import annotations

import copy
import json
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags

from sksketch._typing import Array
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import FLAG, Constraints, one_of, whole
from sksketch.state.persistence import State
from sksketch.tables.column_summary import (
    Cells,
    ColumnSummary,
    Kind,
    as_learned,
    cells_of,
    one_array,
    refuse_infinite,
)
from sksketch.tables.containers import as_table
from sksketch.tables.encodings import (
    ColumnPlan,
    Encoding,
    Options,
    encoding_of,
    is_worth_sparse,
    name_apart,
    sparse_rows,
)
from sksketch.tables.writing import CodeColumn, InfiniteError, NumberColumn, write_rows


class TableEncoder(TransformerMixin, Estimator):
    """Rows of numbers from a table with columns of any type, learned in one pass.

    Parameters
    ----------
    numeric : {"standardize", "passthrough"}, default="standardize"
        Whether numbers and parts of dates get mean 0 and variance 1.
    max_categories : int, default=50
        Most columns that a column of names becomes: the most frequent ones, and one for all
        others if there are more.
    missing : {"mean", "indicator", "error"}, default="mean"
        What holes become: the mean of the rows learned from, and where more than a tenth of the
        rows has one, a column that tells; with "indicator" every column with holes gets one;
        or they are refused. In columns of names a hole is a name of its own.
    text : {"hash", "drop"}, default="hash"
        What becomes of free text: its words, hashed to 1024 columns, or nothing.
    dates : {"parts", "drop"}, default="parts"
        What becomes of dates: the year with its fraction, the weekday and the hour, or nothing.
    reference : bool, default=False
        Whether the most frequent name of a column gets no column of its own, so that coefficients
        of the others are differences from it.

    Attributes
    ----------
    columns_ : dict from str to ColumnPlan
        What became of every column: its ``kind``, its ``features`` and a ``text`` in words.
    n_features_out_ : int
        Columns of the rows made.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, where the table has names.

    See Also
    --------
    open_rows : Opens files of tables; ``raw=True`` gives them as they are.
    fit_stream : Learns a pipeline that begins with an encoder.
    sklearn.compose.ColumnTransformer : For tables in memory, with a choice for each column.

    Notes
    -----
    What a column becomes is decided when rows are transformed, by all rows learned from.
    Constants, numbers of rows and texts that are all different are dropped. Texts that are all
    dates of ISO 8601 are dates. Names are counted exactly while there are at most 4096 in a
    column, and beyond that by a summary of the frequent ones [1]_; ``columns_`` then says how far
    counts may be off. The others, names that come up later included, share a column; where there
    is none, they are zero in all. Values around the mean are divided by the standard deviation
    after holes are filled. Results are dense, or CSR where less than a tenth would not be zero.
    Further columns of a table are ignored by ``transform``, as scikit-learn's ColumnTransformer
    does; missing ones are an error.

    References
    ----------
    .. [1] Agarwal, P. K., Cormode, G., Huang, Z., Phillips, J. M., Wei, Z. and Yi, K. (2013).
       "Mergeable Summaries". ACM Transactions on Database Systems 38(4).

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.0, 3.0, None], "city": ["Rome", "Bern", "Rome"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size=(missing)', 'city=Rome', 'city=Bern']
    >>> print(encoder.columns_["city"])
    2 categories
    >>> encoder.transform(table).round(2)
    array([[-1.22,  0.  ,  1.  ,  0.  ],
           [ 1.22,  0.  ,  0.  ,  1.  ],
           [ 0.  ,  1.  ,  1.  ,  0.  ]])
    """

    kind = "table-encoder"
    _fitted = "_summaries"
    _constraints: ClassVar[Constraints] = {
        "numeric": (one_of("standardize", "passthrough"),),
        "max_categories": (whole(1),),
        "missing": (one_of("mean", "indicator", "error"),),
        "text": (one_of("hash", "drop"),),
        "dates": (one_of("parts", "drop"),),
        "reference": (FLAG,),
    }
    # Rows may have columns of any type.
    takes_tables = True
    _summaries: list[ColumnSummary]
    n_samples_seen_: int

    def __init__(
        self,
        *,
        numeric: str = "standardize",
        max_categories: int = 50,
        missing: str = "mean",
        text: str = "hash",
        dates: str = "parts",
        reference: bool = False,
    ) -> None:
        self.numeric = numeric
        self.max_categories = max_categories
        self.missing = missing
        self.text = text
        self.dates = dates
        self.reference = reference

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: object, y: object = None) -> Self:
        """Learn what the columns hold from all rows of a table, forgetting others.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_samples, n_features)
            The table.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This encoder.
        """
        return self._learn(X, reset=True)

    def partial_fit(self, X: object, y: object = None) -> Self:
        """Learn from more rows of the same columns.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_samples, n_features)
            The rows.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This encoder.
        """
        return self._learn(X, reset=not hasattr(self, "_summaries"))

    def _learn(self, X: object, *, reset: bool) -> Self:
        self._check_params()
        table, named = as_table(X)
        if not len(table):
            raise ValueError("the table has no rows (n_samples = 0); give some")
        with or_as_before(self):
            if reset:
                self.__dict__.pop("feature_names_in_", None)
                self._take_columns(table.num_columns, table.column_names if named else None)
                self._summaries = [ColumnSummary() for _ in table.column_names]
                self._names, self.n_samples_seen_ = list(table.column_names), 0
            else:
                self._check_width(table, named)
                if set(self._names) != set(table.column_names):
                    self._refuse_columns(table)
            cells = self._cells(self._select(table))
            numbers = []
            for summary, name, part in zip(self._summaries, self._names, cells, strict=True):
                summary.check(part, name)
                numbers.append(summary.with_numbers(part, self.n_samples_seen_, name))
        # From here on nothing can fail.
        for summary, part, found in zip(self._summaries, cells, numbers, strict=True):
            summary.add(part, self.n_samples_seen_, found)
        self.n_samples_seen_ += len(table)
        self._answers = {}
        return self

    def _check_width(self, table: Any, named: bool) -> None:
        if not named and table.num_columns != self.n_features_in_:
            raise ValueError(
                f"X has {table.num_columns} features, but TableEncoder is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _refuse_columns(self, table: Any) -> None:
        new = [name for name in table.column_names if name not in self._names]
        if new:
            raise ValueError(
                f"the table has the column {new[0]!r}, which was not there before; give every "
                "block the same columns"
            )
        self._select(table)

    def _select(self, table: Any, wanted: list[str] | None = None) -> Any:
        """Return the columns that were learned from, or those of them that are wanted."""
        wanted = self._names if wanted is None else wanted
        names = table.column_names
        if names == wanted:
            return table
        there = set(names)
        lost = [name for name in wanted if name not in there]
        if lost:
            raise ValueError(
                f"columns are missing: {', '.join(map(repr, lost[:5]))}; give the columns that "
                "were learned from"
            )
        return table.select(wanted)

    def _cells(self, table: Any, kinds: list[Kind] | None = None) -> list[Cells]:
        found = []
        for i, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
            array = one_array(column)
            part = cells_of(array if kinds is None else as_learned(array, kinds[i]))
            if self.missing == "error" and part.holes.any():
                row = int(np.argmax(part.holes))
                raise ValueError(
                    f"column {name!r} has no value in row {row} of the block; drop the row, or set "
                    "missing='mean'"
                )
            found.append(part)
        return found

    # Encoding

    @property
    def _encodings(self) -> list[Encoding]:
        def decide() -> list[Encoding]:
            options = Options(**self.get_params(deep=False))
            pairs = zip(self._names, self._summaries, strict=True)
            found = [encoding_of(name, column, options) for name, column in pairs]
            if not any(one.plan.features for one in found):
                words = "; ".join(
                    f"{n!r} {one.plan}" for n, one in zip(self._names, found, strict=True)
                )
                raise ValueError(f"no column is left to learn from: {words[:200]}")
            name_apart(found)
            return found

        encodings: list[Encoding] = self._once("columns_", decide)
        return encodings

    @property
    def columns_(self) -> dict[str, ColumnPlan]:
        """The fate of every column."""
        return {name: one.plan for name, one in zip(self._names, self._encodings, strict=True)}

    @property
    def summaries(self) -> dict[str, ColumnSummary]:
        """The summary of every column."""
        return dict(zip(self._names, self._summaries, strict=True))

    @property
    def n_features_out_(self) -> int:
        """Columns of the rows made."""
        return sum(len(one.plan.features) for one in self._encodings)

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names of the columns made.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        array of shape (n_features_out_,)
            The names.
        """
        self._require_fitted()
        names = [name for one in self._encodings for name in one.plan.features]
        return np.asarray(names, dtype=object)

    def columns_used(self) -> list[str]:
        """Return the columns that features are made of; `transform` needs no others.

        Returns
        -------
        list of str
            Their names, in the order that they were learned in.
        """
        self._require_fitted()
        return [
            name
            for name, one in zip(self._names, self._encodings, strict=True)
            if one.plan.features
        ]

    def transform(self, X: object) -> Any:
        """Return rows of numbers.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (n_samples, n_features)
            The rows; of a table with names, columns that were dropped or not learned from are
            ignored.

        Returns
        -------
        array or CSR matrix of shape (n_samples, n_features_out_)
            The rows, in double precision.
        """
        self._require_fitted()
        table, named = as_table(X)
        self._check_width(table, named)
        used = self.columns_used()
        summaries = self.summaries
        kinds = [summaries[name].kind for name in used]
        cells = self._cells(self._select(table, used), kinds)
        for name, part in zip(used, cells, strict=True):
            summaries[name].check(part, name)
        encodings = [one for one in self._encodings if one.plan.features]
        try:
            if is_worth_sparse(encodings):
                return sparse_rows(encodings, cells)
            return self._dense(encodings, cells, len(table))
        except InfiniteError as error:
            refuse_infinite(str(self.get_feature_names_out()[error.column]), error.row)

    def _dense(self, encodings: list[Encoding], cells: list[Cells], n_rows: int) -> Array:
        out = np.empty((n_rows, self.n_features_out_))
        numbers: list[NumberColumn] = []
        codes, start = [], 0
        for one, part in zip(encodings, cells, strict=True):
            width = len(one.plan.features)
            numbers += [NumberColumn(*pair, start + i) for i, pair in enumerate(one.numbers(part))]
            found = one.codes(part)
            if found is not None:
                codes.append(CodeColumn(found, start, width))
            one.write(part, out, start)
            start += width
        write_rows(numbers, codes, out)
        return out

    # Parts of the rows, and files

    def _template(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def _absorb(self, other: Self) -> None:
        if self._names != other._names:
            raise ValueError("the tables have other columns; give all parts the same")
        self._summaries = copy.deepcopy(self._summaries)
        for mine, theirs, name in zip(self._summaries, other._summaries, self._names, strict=True):
            mine.merge(theirs, name)
        self.n_samples_seen_ += other.n_samples_seen_

    def _learned(self, state: State) -> State:
        facts: dict[str, Any] = {
            "names": json.dumps(self._names),
            "n_samples_seen": self.n_samples_seen_,
        }
        state = state.with_more(facts, {})
        for i, summary in enumerate(self._summaries):
            state = state.with_inner(f"column{i}", summary.state())
        return state

    def _recall(self, state: State) -> None:
        self._names = [str(name) for name in json.loads(str(state.meta["names"]))]
        self.n_samples_seen_ = state.count("n_samples_seen")
        columns = range(self.n_features_in_)
        self._summaries = [ColumnSummary.from_state(state.inner(f"column{i}")) for i in columns]
