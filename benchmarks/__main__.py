"""`python -m benchmarks [NAME ...]`: run these benchmarks, or all, and write RESULTS.md."""

import sys
from collections.abc import Callable

from benchmarks import check, lockdown
from benchmarks.peers import comparison
from benchmarks.peers.cost import ToolError
from benchmarks.peers.environment import NotInstalledError
from benchmarks.section import Section, here, write

BENCHMARKS: dict[str, Callable[[], Section]] = {
    "lockdown": lockdown.measured,
    "check": check.measured,
    "peers": comparison.measured,
}


def main() -> None:
    """Run the benchmarks that are named."""
    names = sys.argv[1:] or list(BENCHMARKS)
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}.")
    for name in names:
        print(f"{name} ...", flush=True)
        try:
            section = BENCHMARKS[name]()
        except (NotInstalledError, ToolError) as error:
            sys.exit(f"{name}: {error}")
        where = here()
        write(section, where)
        print(section.markdown(where), flush=True)


if __name__ == "__main__":
    main()
