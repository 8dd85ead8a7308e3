"""What Python's standard library does not offer."""

import ctypes
import subprocess
import sys

import pytest

# three blocks of 20 MB at once, more than glibc keeps by itself, ten times
ROUNDS = """
import resource, sys
from grader.sandbox.libc import keep_freed_memory, prctl
prctl(41, 1)  # PR_SET_THP_DISABLE: a fault brings one page, not 2 MB
if sys.argv[1] == "keep":
    keep_freed_memory()
for _ in range(10):
    blocks = [bytearray(20_000_000) for _ in range(3)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt * resource.getpagesize())
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="glibc's own"
)
def test_what_was_freed_is_not_fetched_from_the_kernel_again():
    """The bytes of the pages that were fetched: those of one round, not of all."""
    fetched = {
        kept: int(subprocess.check_output([sys.executable, "-c", ROUNDS, kept])) for kept in ("keep", "give")
    }
    assert fetched["keep"] < 150_000_000 < 300_000_000 < fetched["give"]
