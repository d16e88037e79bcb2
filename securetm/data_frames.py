"""Data frames of pandas or polars, made of arrays. Both libraries are optional, and imported when a frame is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from securetm.errors import Mistake

FRAMES = ("default", "pandas", "polars")


def library(name: str) -> Any:
    """pandas or polars; refused by name where it is not installed."""
    try:
        return import_module(name)
    except ImportError as problem:
        said = "data frames of {library} are asked for, and {library} is not installed"
        raise Mistake(said, hint="pip install {library}", library=name) from problem


def framed(form: str, values: Any, columns: Any, given: Any = None) -> Any:
    """The values as a data frame; with pandas, its rows are named as those of the data frame or column that was given."""
    if form == "polars":
        return library("polars").DataFrame(values, schema=list(columns), orient="row")
    index = getattr(given, "index", None)
    named = None if index is None or callable(index) else index  # a list has a method of this name
    return library("pandas").DataFrame(values, columns=list(columns), index=named, copy=False)
