"""An automated grader for deep-learning homework.

In a notebook, `import grader` and then `grader.check("ViT")` check one part, and `grader.check()` checks
all; a cell that begins with `%%check ViT` is executed and checked. On a terminal: `grader --help`.
"""

import importlib
import sys
from typing import Any

__version__ = "0.1.0"


def check(part: Any = "", *, assignment: Any = None) -> Any:
    """Run the public checks on what was executed in this notebook so far, and show what they find out.

    Args:
        part: The only part to be checked, `"Attention"`, or the class or function itself; empty: all are.
        assignment: The folder that the course handed out, where it is not the one that the notebook works in;
            it is remembered until the kernel is restarted.

    Returns:
        What was found: `.passed` and `.findings`. None outside of a notebook, with a sentence about that.
    """
    return _kernel().check_here(part, assignment)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext grader` does."""
    _kernel().activate(shell)


def _kernel() -> Any:
    """What checks in a notebook, by its name: whatever stands below it imports this package, too."""
    return importlib.import_module("grader.jupyter.kernel")


def _running_shell() -> Any:
    """The shell that this is imported in; None where there is none."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if hasattr(ipython, "get_ipython") else None


if (_shell := _running_shell()) is not None:
    load_ipython_extension(_shell)
