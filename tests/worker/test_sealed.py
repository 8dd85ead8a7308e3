"""Functions that hold what they need in their own code."""

import time
from typing import Any

from grader.worker.sealed_functions import sealed


def template(*values: Any) -> Any:
    """Calls what takes the constant's place."""
    original: Any = "sealed:original"
    return original(*values)


def test_what_is_written_in_c_can_import_within_sealed_code() -> None:
    """As PyTorch's fused attention does where its operations are counted, and `time.strptime` always."""
    assert sealed(template, "test", original=time.strptime)("2026", "%Y").tm_year == 2026
