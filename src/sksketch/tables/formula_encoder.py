"""Tables to rows of numbers by a formula of Wilkinson and Rogers, over a stream."""

from __future__ import annotations

import ast
import json
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin

from sksketch._typing import Array
from sksketch.exceptions import ExplainedError, Option
from sksketch.models.base import Estimator, or_as_before
from sksketch.models.constraints import Constraints, such
from sksketch.state.persistence import State
from sksketch.tables.containers import as_table
from sksketch.tables.encodings import ColumnPlan

# What a term may call; all of them see one number at a time.
FUNCTIONS = {"log": np.log, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs}
# Levels of one column beyond which it is no category.
MOST_LEVELS = 10_000


class FormulaEncoder(TransformerMixin, Estimator):
    """Rows of numbers from a table, as a formula says, for models with an intercept.

    Needs the extra ``formula`` (formulaic).

    Parameters
    ----------
    formula : str
        Terms such as ``"temp + C(city) + temp:weekend"``; with a ``~`` what is before it is the
        target, and not used here. Terms may call ``C`` for categories and ``log``, ``exp``,
        ``sqrt`` and ``abs``; what would look at all rows, such as ``center`` or ``bs``, is refused.

    Attributes
    ----------
    target_ : str or None
        The column before the ``~``.
    levels_ : dict
        For each column of categories its levels, in order; the first is the reference, which has
        no column where the formula has an intercept.
    columns_ : dict
        What became of every column of the table.
    has_intercept_ : bool
        Whether the formula has one; it gets no column.
    n_features_in_ : int
        Columns of the table that the formula names.

    See Also
    --------
    TableEncoder : All columns of a table, without a formula.

    Notes
    -----
    A first pass learns the levels; columns are coded as formulaic does [1]_.

    References
    ----------
    .. [1] Wilkinson, G. N. and Rogers, C. E. (1973). "Symbolic Description of Factorial Models for
       Analysis of Variance". Journal of the Royal Statistical Society C 22(3).
    """

    kind = "formula-encoder"
    takes_tables = True
    _fitted = "_levels"
    _constraints: ClassVar[Constraints] = {"formula": (such("a formula", str),)}
    _levels: dict[str, list[Any]]

    def __init__(self, formula: str) -> None:
        self.formula = formula

    @property
    def target_(self) -> str | None:
        """The column before the ``~``."""
        left, tilde, _ = self.formula.partition("~")
        return left.strip().strip("`") if tilde else None

    def _terms(self) -> Any:
        """Return the terms, after a look at what they would call."""
        self._check_params()
        library = _formulaic()
        try:
            formula = library.Formula(self.formula.rpartition("~")[2].strip())
            for term in formula:
                for factor in term.factors:
                    how, text = factor.eval_method.value, factor.expr
                    if how == "python":
                        _check_calls(text, self.formula)
                    elif how == "lookup" and text.strip("`") not in formula.required_variables:
                        raise AttributeError(f"{text} is no column")
        except (SyntaxError, AttributeError, library.errors.FormulaicError) as error:
            raise ValueError(
                f"could not read the formula {self.formula!r} ({error}); write terms such as "
                "'y ~ a + C(b) + a:b'"
            ) from None
        return formula

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the levels from all rows of a table, forgetting others.

        Parameters
        ----------
        X : data frame or Arrow table
            The table.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This encoder.
        """
        return self._learn(X, {})

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Learn from more rows of the same columns.

        Parameters
        ----------
        X : data frame or Arrow table
            The rows.
        y : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        self
            This encoder.
        """
        return self._learn(X, self.__dict__.get("_levels", {}))

    def _learn(self, X: Any, known: dict[str, list[Any]]) -> Self:
        terms = self._terms()
        names = sorted(str(name) for name in terms.required_variables)
        frame = self._frame(X, names)
        categorical = _categories(terms)
        levels = {}
        for name in names:
            column = frame[name]
            texts = column.dtype.kind not in "biuf"
            if texts or name in categorical or name in known:
                found = set(known.get(name, ())) | set(column.tolist())
                if len(found) > MOST_LEVELS:
                    raise ValueError(
                        f"column {name!r} has more than {MOST_LEVELS:,} levels; leave it out"
                    )
                if len({isinstance(value, str) for value in found}) > 1:
                    raise ValueError(f"column {name!r} has texts and numbers; give one of them")
                levels[name] = sorted(found)
        with or_as_before(self):
            self._take_columns(len(names), names)
            self._levels, self._answers = levels, {}
        return self

    def _frame(self, X: Any, names: list[str]) -> Any:
        """Return these columns as a frame of pandas, without holes."""
        table, _ = as_table(X)
        lost = [name for name in names if name not in table.column_names]
        if lost:
            raise ValueError(
                f"the formula names {lost[0]!r}, and the table has {', '.join(table.column_names)}"
            )
        frame = table.select(names).to_pandas()
        for name in names:
            if frame[name].isna().any():
                row = int(np.argmax(frame[name].isna().to_numpy()))
                raise ExplainedError(
                    f"column {name!r} has no value in row {row} of the block; drop such rows with ",
                    Option("missing", "drop"),
                )
        return frame

    def _spec(self) -> Any:
        """Return how columns are made, which depends on the levels alone."""

        def find() -> Any:
            import pandas

            n_rows = max((len(found) for found in self._levels.values()), default=1)
            columns = {
                name: np.resize(np.array(self._levels[name], dtype=object), n_rows)
                if name in self._levels
                else np.ones(n_rows)
                for name in self.feature_names_in_
            }
            frame = self._coded(pandas.DataFrame(columns))
            found = self._terms().get_model_matrix(frame, context=FUNCTIONS)
            return found.model_spec

        return self._once("spec", find)

    def _coded(self, frame: Any) -> Any:
        import pandas

        for name, levels in self._levels.items():
            new = set(frame[name].tolist()) - set(levels)
            if new:
                raise ValueError(
                    f"column {name!r} has the level {next(iter(new))!r}, which was not there when "
                    "the formula was learned"
                )
            frame[name] = pandas.Categorical(frame[name].tolist(), categories=levels)
        return frame

    def transform(self, X: Any) -> Any:
        """Return rows of numbers.

        Parameters
        ----------
        X : data frame or Arrow table
            The rows; columns that the formula does not name are ignored.

        Returns
        -------
        array of shape (n_samples, n_features_out_)
            The rows, without a column of ones.
        """
        self._require_fitted()
        spec = self._spec()
        frame = self._coded(self._frame(X, list(self.feature_names_in_)))
        with np.errstate(all="ignore"):
            made = np.asarray(spec.get_model_matrix(frame, context=FUNCTIONS), dtype=np.float64)
        if not np.isfinite(made).all():
            column = int(np.argmax(~np.isfinite(made).all(axis=0)))
            raise ValueError(
                f"{spec.column_names[column]!r} is not finite in some row; drop such rows, or "
                "change the formula"
            )
        return np.ascontiguousarray(made[:, self._kept()])

    def _kept(self) -> Array:
        return np.array([name != "Intercept" for name in self._spec().column_names])

    @property
    def has_intercept_(self) -> bool:
        """Whether the formula has an intercept."""
        self._require_fitted()
        return not bool(self._kept().all())

    @property
    def levels_(self) -> dict[str, list[Any]]:
        """The levels of each column of categories."""
        self._require_fitted()
        return {name: list(found) for name, found in self._levels.items()}

    @property
    def summaries(self) -> dict[str, Any]:
        """Summaries of columns; none are kept."""
        return {}

    @property
    def columns_(self) -> dict[str, ColumnPlan]:
        """The fate of every column."""
        made = [str(name) for name in self.get_feature_names_out()]
        plans = {}
        for name in self.feature_names_in_:
            features = tuple(one for one in made if name in one)
            if name in self._levels:
                levels = self._levels[name]
                text = f"{len(levels)} levels, reference {levels[0]}"
                plans[name] = ColumnPlan("categories", features, text)
            else:
                plans[name] = ColumnPlan("number", features, "number")
        return plans

    @property
    def n_features_out_(self) -> int:
        """Columns of the rows made."""
        return int(self._kept().sum())

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names of the columns made.

        Parameters
        ----------
        input_features : ignored
            Present for scikit-learn's pipelines.

        Returns
        -------
        array of shape (n_features_out_,)
            The names, as formulaic has them.
        """
        self._require_fitted()
        names = np.asarray([str(name) for name in self._spec().column_names], dtype=object)
        return np.asarray(names[self._kept()])

    # Parts of the rows, and files

    def _template(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def _absorb(self, other: Self) -> None:
        if self.formula != other.formula:
            raise ValueError("the two have other formulas; give all parts the same")
        names = {**self._levels, **other._levels}
        self._levels = {
            name: sorted({*self._levels.get(name, ()), *other._levels.get(name, ())})
            for name in names
        }

    def _learned(self, state: State) -> State:
        return state.with_more({"levels": json.dumps(self._levels)}, {})

    def _recall(self, state: State) -> None:
        self._levels = json.loads(str(state.meta["levels"]))


def _formulaic() -> Any:
    try:
        import formulaic
    except ImportError:
        raise ImportError("formulas need formulaic: pip install 'scikit-sketch[formula]'") from None
    return formulaic


def _check_calls(expression: str, formula: str) -> None:
    """Refuse what is more than arithmetic and the few functions that are known."""
    known = (
        *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Load),
        *(ast.Name, ast.Constant),
    )
    names = {"C", *FUNCTIONS}
    for node in ast.walk(ast.parse(expression.strip("{}"), mode="eval")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            allowed = node.func.id in names
        else:
            allowed = isinstance(node, known)
        if not allowed:
            raise ValueError(
                f"the formula {formula!r} has {expression!r}; terms may call "
                f"{', '.join(sorted(names))} and be added, multiplied and crossed"
            )


def _categories(terms: Any) -> set[str]:
    """Return the columns that the formula calls categories."""
    found = set()
    for term in terms:
        for factor in term.factors:
            if factor.eval_method.value != "python":
                continue
            for node in ast.walk(ast.parse(factor.expr.strip("{}"), mode="eval")):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "C":
                    found |= {part.id for part in node.args if isinstance(part, ast.Name)}
    return found
