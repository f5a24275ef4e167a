"""Rows as data frames of pandas or polars, where those are installed."""

from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pkb.errors import UsageError
from pkb.row import Row, find_column_types

if TYPE_CHECKING:
    import pandas
    import polars


def make_pandas(rows: Sequence[Row]) -> "pandas.DataFrame":
    """Return a frame with a line per row and the columns of Row; what is unknown is NaN. Raises UsageError."""
    pandas = _import_frames("pandas")
    kinds = {int: "int64", float: "float64", bool: "bool"}
    columns = {
        name: pandas.Series(values, dtype=kinds.get(find_column_types()[name], "object"))
        for name, values in _list_columns(rows).items()
    }
    return pandas.DataFrame(columns)


def make_polars(rows: Sequence[Row]) -> "polars.DataFrame":
    """Return a frame with a line per row and the columns of Row; what is unknown is null. Raises UsageError."""
    polars = _import_frames("polars")
    kinds = {str: polars.String, int: polars.Int64, float: polars.Float64, bool: polars.Boolean}
    return polars.DataFrame(_list_columns(rows), {name: kinds[kind] for name, kind in find_column_types().items()})


def _list_columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {one.name: [getattr(row, one.name) for row in rows] for one in fields(Row)}


def _import_frames(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise UsageError(f"data frames of {package} need it installed: `pip install {package}`") from error
