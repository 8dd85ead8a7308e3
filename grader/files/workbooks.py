"""Opens spreadsheets that people, or programs other than the grader, wrote."""

import io
from typing import Any


def opened_workbook(content: bytes, *, values: bool = False) -> Any:
    """An `.xlsx` file as openpyxl has it.

    Args:
        values: Have the stored values of formulas, rather than the formulas.

    Raises:
        ValueError: It is damaged, or is no such file.
    """
    from openpyxl import load_workbook

    try:
        return load_workbook(io.BytesIO(content), data_only=values)
    except Exception as error:  # a damaged file gives errors of zip, of XML, of types
        raise ValueError("no workbook that can be read") from error
