"""The words that say nothing in a program: `python tests/analysis/words.py` renews grader/analysis/words.txt.

Those that this repository uses in three files or more, and those in the public names of the libraries that
students use.
"""

import builtins
import collections
import functools
import importlib
import inspect
import itertools
import keyword
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
FILES = ("*.md", "docs/*.md", "grader/**/*.py", "template/**/*.*", "benchmarks/**/*.py", "tests/**/*.py")
LIBRARIES = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.optim", "torch.optim.lr_scheduler"),
    *("torch.utils.data", "torchvision.transforms", "torchvision.datasets", "numpy", "pandas", "einops"),
    *("matplotlib.pyplot", "matplotlib.axes", "sklearn.metrics", "seaborn", "PIL.Image", "pathlib", "os"),
    *("math", "random", "time", "json", "copy", "typing", "shutil", "zipfile", "argparse", "dataclasses"),
)
LEAST_FILES, LEAST_LETTERS = 3, 3
HEAD = "# made by tests/analysis/words.py\n"


def words(text: str) -> set[str]:
    """The words of a text, parts of names too, in lower case."""
    found = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)
    return {word.lower() for word in found if len(word) >= LEAST_LETTERS}


def of_repository() -> set[str]:
    """The words that several files use."""
    files = {path for pattern in FILES for path in ROOT.glob(pattern) if path.is_file()}
    counts = Counter(word for path in files for word in words(path.read_text(encoding="utf-8")))
    return {word for word, count in counts.items() if count >= LEAST_FILES}


def of_libraries() -> set[str]:
    """The words of names that students can use, and of their arguments."""
    modules: list[ModuleType] = [builtins, collections, functools, itertools]
    modules += [importlib.import_module(name) for name in LIBRARIES]
    return {word for name in _names(modules) for word in words(name)} | set(keyword.kwlist)


def _names(modules: list[ModuleType]) -> Iterator[str]:
    for module in modules:
        for name in (each for each in dir(module) if not each.startswith("_")):
            yield name
            thing = getattr(module, name, None)
            if inspect.isclass(thing):
                yield from (each for each in dir(thing) if not each.startswith("_"))
            if callable(thing):
                try:
                    yield from inspect.signature(thing).parameters
                except (TypeError, ValueError):
                    continue


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = sorted(of_repository() | of_libraries())
    path = ROOT / "grader" / "analysis" / "words.txt"
    path.write_text(HEAD + "\n".join(every) + "\n", encoding="utf-8")
    print(f"{len(every)} words.")
