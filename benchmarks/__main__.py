"""`python -m benchmarks [NAME ...]`: run these benchmarks, or all that are quick, and write RESULTS.md."""

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.peers.cost import ToolError
from benchmarks.peers.environment import NotInstalledError
from benchmarks.section import RESULTS, Section, here, write
from grader.domain.errors import GraderError

Benchmarks = Mapping[str, Callable[[], Section]]


def within(module: str, function: str) -> Callable[[], Section]:
    """A benchmark's function, loaded when it is called: one benchmark needs no packages of another."""

    def measure() -> Section:
        section: Section = getattr(importlib.import_module(f"benchmarks.{module}"), function)()
        return section

    return measure


QUICK: Benchmarks = {
    "lockdown": within("lockdown", "measured"),
    "channels": within("channels", "measured"),
    "check": within("check", "measured"),
    "training": within("training", "overhead"),
    "data": within("training", "data"),
    "gpu": within("gpu", "measured"),
    "class_size": within("class_size", "measured"),
    "interruptions": within("interruptions", "measured"),
    "peers": within("peers.comparison", "measured"),
    "memorized": within("memorized", "measured"),
}
# they take long, most of them hours of training: done only when they are named, else what was measured before
# is shown
SLOW: Benchmarks = {
    "console": within("console_load", "measured"),
    "cluster": within("cluster", "measured"),
    "marking_time": within("marking_time", "measured"),
    "recipes": within("recipes", "measured"),
    "breakpoints": within("breakpoints", "measured"),
    "finetuning": within("finetuning", "measured"),
    "cifar10_small": within("cifar10_small", "measured"),
    "cifar10_gpu": within("cifar10_gpu", "measured"),
    "ingredients": within("recipes", "ingredients_measured"),
    "honest_pairs": within("honest_pairs", "measured"),
    "script_alone": within("script_alone", "measured"),
}
BEFORE: Benchmarks = {
    "recipes": within("recipes", "recorded"),
    "breakpoints": within("breakpoints", "recorded"),
    "finetuning": within("finetuning", "recorded"),
    "cifar10_small": within("cifar10_small", "recorded"),
    "cifar10_gpu": within("cifar10_gpu", "recorded"),
    "ingredients": within("recipes", "ingredients_recorded"),
    "honest_pairs": within("honest_pairs", "recorded"),
    "script_alone": within("script_alone", "recorded"),
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
