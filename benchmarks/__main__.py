"""`python -m benchmarks [NAME ...]`: run these benchmarks, or all, and write RESULTS.md."""

import sys
from collections.abc import Callable

from benchmarks import check, class_size, interruptions, lockdown, training
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


def main() -> None:
    """Run the benchmarks that are named."""
    names = sys.argv[1:] or list(BENCHMARKS)
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}.")
    failed = []
    for name in names:
        print(f"{name} ...", flush=True)
        try:
            section = BENCHMARKS[name]()
        except (NotInstalledError, ToolError) as error:
            failed.append(f"{name}: {error}")
            continue
        where = here()
        write(section, where)
        print(section.markdown(where), flush=True)
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
