"""`python -m benchmarks [NAME ...]`: run these benchmarks, or all that are quick, and write RESULTS.md."""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import (
    breakpoints,
    channels,
    check,
    cifar10_small,
    class_size,
    cluster,
    console_load,
    finetuning,
    gpu,
    honest_pairs,
    interruptions,
    lockdown,
    marking_time,
    memorized,
    recipes,
    script_alone,
    training,
)
from benchmarks.peers import comparison
from benchmarks.peers.cost import ToolError
from benchmarks.peers.environment import NotInstalledError
from benchmarks.section import RESULTS, Section, here, write
from grader.domain.errors import GraderError

Benchmarks = Mapping[str, Callable[[], Section]]

QUICK: Benchmarks = {
    "lockdown": lockdown.measured,
    "channels": channels.measured,
    "check": check.measured,
    "training": training.overhead,
    "data": training.data,
    "gpu": gpu.measured,
    "class_size": class_size.measured,
    "interruptions": interruptions.measured,
    "peers": comparison.measured,
    "memorized": memorized.measured,
}
# they take long, most of them hours of training: done only when they are named, else what was measured before
# is shown
SLOW: Benchmarks = {
    "console": console_load.measured,
    "cluster": cluster.measured,
    "marking_time": marking_time.measured,
    "recipes": recipes.measured,
    "breakpoints": breakpoints.measured,
    "finetuning": finetuning.measured,
    "cifar10_small": cifar10_small.measured,
    "ingredients": recipes.ingredients_measured,
    "honest_pairs": honest_pairs.measured,
    "script_alone": script_alone.measured,
}
BEFORE: Benchmarks = {
    "recipes": recipes.recorded,
    "breakpoints": breakpoints.recorded,
    "finetuning": finetuning.recorded,
    "cifar10_small": cifar10_small.recorded,
    "ingredients": recipes.ingredients_recorded,
    "honest_pairs": honest_pairs.recorded,
    "script_alone": script_alone.recorded,
}


def main() -> None:
    """Run the benchmarks that are named."""
    known, names = {**QUICK, **SLOW}, sys.argv[1:]
    if unknown := set(names) - set(known):
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}.")
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as cache:
        os.environ["GRADER_CACHE"] = cache  # rates of what is measured here are no guide for real classes
        verdicts, failures = run({name: known[name] for name in names} or {**QUICK, **BEFORE})
    print("\n".join(["All in one:", *(f"* {sentence}" for sentence in verdicts)]), flush=True)
    if failures:
        sys.exit("\n".join(failures))


def run(benchmarks: Benchmarks, results: Path = RESULTS) -> tuple[list[str], list[str]]:
    """Measure, print and write one section after the other.

    Returns:
        What was asked for and whether it holds, in sentences; what could not be measured, and why.
    """
    verdicts: list[str] = []
    failures: list[str] = []
    for name, measured in benchmarks.items():
        print(f"{name} ...", flush=True)
        try:
            section = measured()
        except (NotInstalledError, ToolError, GraderError, SystemExit) as error:
            failures.append(f"{name}: {error}")
            continue
        where = section.where or here()
        write(section, where, results)
        print(section.markdown(where), flush=True)
        verdicts += section.verdicts
    return verdicts, failures


if __name__ == "__main__":
    main()
