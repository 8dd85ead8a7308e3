"""`python -m benchmarks [NAME ...]`: run these benchmarks, or all that are quick, and write RESULTS.md."""

import os
import sys
import tempfile
from collections.abc import Callable

from benchmarks import check, class_size, interruptions, lockdown, recipes, training
from benchmarks.peers import comparison
from benchmarks.peers.cost import ToolError
from benchmarks.peers.environment import NotInstalledError
from benchmarks.section import Section, here, write

BENCHMARKS: dict[str, Callable[[], Section]] = {
    "lockdown": lockdown.measured,
    "check": check.measured,
    "training": training.overhead,
    "data": training.data,
    "class_size": class_size.measured,
    "interruptions": interruptions.measured,
    "peers": comparison.measured,
}
SLOW: dict[str, Callable[[], Section]] = {  # hours of training: only when they are named
    "recipes": recipes.measured,
    "ingredients": recipes.ingredients_measured,
}
KNOWN = BENCHMARKS | SLOW


def main() -> None:
    """Run the benchmarks that are named."""
    names = sys.argv[1:] or list(BENCHMARKS)
    if unknown := set(names) - set(KNOWN):
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(KNOWN)}.")
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as cache:
        os.environ["GRADER_CACHE"] = cache  # rates of what is measured here are no guide for real classes
        failed = _failed(names)
    if failed:
        sys.exit("\n".join(failed))


def _failed(names: list[str]) -> list[str]:
    """Measure and write a section for each; what could not be measured, and why."""
    failed = []
    for name in names:
        print(f"{name} ...", flush=True)
        try:
            section = KNOWN[name]()
        except (NotInstalledError, ToolError) as error:
            failed.append(f"{name}: {error}")
            continue
        where = section.where or here()
        write(section, where)
        print(section.markdown(where), flush=True)
    return failed


if __name__ == "__main__":
    main()
