"""`python -m benchmarks [NAME ...]`: run these benchmarks, or all, and write RESULTS.md."""

import sys
from collections.abc import Callable

from benchmarks import class_size, interruptions, lockdown
from benchmarks.section import Section, here, write

BENCHMARKS: dict[str, Callable[[], Section]] = {
    "lockdown": lockdown.measured,
    "class_size": class_size.measured,
    "interruptions": interruptions.measured,
}


def main() -> None:
    """Run the benchmarks that are named."""
    names = sys.argv[1:] or list(BENCHMARKS)
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}.")
    for name in names:
        print(f"{name} ...", flush=True)
        section = BENCHMARKS[name]()
        where = here()
        write(section, where)
        print(section.markdown(where), flush=True)


if __name__ == "__main__":
    main()
