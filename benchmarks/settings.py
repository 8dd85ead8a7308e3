"""What a person may set by environment variables: when to stop, how many, and where the real images are."""

import math
import os
import sys
import time
from pathlib import Path

DATA = Path(__file__).parents[2] / "shared" / "data"


def last_beginning() -> float:
    """When the last training may begin, by `time.monotonic`: `MINUTES` from now on, or whenever it likes."""
    written = os.environ.get("MINUTES", "inf")
    try:
        minutes = float(written)
    except ValueError:
        minutes = math.nan
    if math.isnan(minutes):
        sys.exit(f"MINUTES is a number, as in MINUTES=30, not {written!r}.")
    return time.monotonic() + 60 * minutes


def count(name: str, otherwise: int) -> int:
    """A whole number above 0 that a variable holds."""
    written = os.environ.get(name, str(otherwise))
    if not written.isdecimal() or not int(written):
        sys.exit(f"{name} is a whole number above 0, as in {name}={otherwise}, not {written!r}.")
    return int(written)


def cifar10() -> Path:
    """Where CIFAR-10 is: `CIFAR10`, or beside the repository. It need not be there."""
    return Path(os.environ.get("CIFAR10") or DATA / "CIFAR-10-jpeg.zip")
