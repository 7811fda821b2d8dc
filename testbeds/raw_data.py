"""RawData and RawDataDocstring: the data points themselves, all of them or those with a valid docstring."""

from schemas.records import DataPoint
from testbeds.task import Inputs, require_docstring


def raw_data(point: DataPoint, inputs: Inputs) -> DataPoint:
    """Return the point."""
    return point


def raw_data_docstring(point: DataPoint, inputs: Inputs) -> DataPoint:
    """Return the point; DataError `no_docstring` or `docstring_too_short` without a valid docstring."""
    require_docstring(point)
    return point
