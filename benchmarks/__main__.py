"""`python -m benchmarks [NAME ...]`: run these benchmarks, or all that are quick, and write RESULTS.md."""

import sys
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


def main() -> None:
    """Run the benchmarks that are named."""
    names = sys.argv[1:] or list(BENCHMARKS)
    known = BENCHMARKS | SLOW
    if unknown := set(names) - set(known):
        sys.exit(f"There is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}.")
    failed = []
    for name in names:
        print(f"{name} ...", flush=True)
        try:
            section = known[name]()
        except (NotInstalledError, ToolError) as error:
            failed.append(f"{name}: {error}")
            continue
        where = section.where or here()
        write(section, where)
        print(section.markdown(where), flush=True)
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
