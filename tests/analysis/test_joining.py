"""Several files of a student's are one program: imports between them, shared names, notebooks."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from grader.analysis.source import Source, source
from grader.domain.analyzed_program import Place


def read(main: str, **modules: str) -> Source:
    """A homework and the modules beside it; `parts__vit` is `parts/vit.py`."""
    files = {f"{name.replace('__', '/')}.py": text.encode() for name, text in modules.items()}
    return source("homework.py", main.encode(), files)


def run(found: Source) -> dict[str, Any]:
    """The global names after all cells were executed in one namespace."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in found.cells:
        exec(compile(cell.tree, cell.file, "exec"), namespace)  # noqa: S102 - written here
    return namespace


HELPERS = "SIZE = 3\n\n\ndef doubled(x):\n    return 2 * x * SIZE\n"


@pytest.mark.parametrize(
    "main",
    [
        "from helpers import doubled\nfound = doubled(7)",
        "from helpers import doubled as twice\nfound = twice(7)",
        "from helpers import *\nfound = doubled(7)",
        "import helpers\nfound = helpers.doubled(7)",
        "import helpers as h, math\nfound = h.doubled(math.floor(7.5))",
        "import math, helpers\nfound = helpers.doubled(math.floor(7.5))",
        "from helpers import (\n    doubled,\n    SIZE,\n)\nfound = doubled(7)",
        "from helpers import (\n    doubled,\n); found = doubled(7)",
        "if True:\n    from helpers import (\n        doubled,\n    ); found = doubled(7)",
        "def f():\n    from helpers import doubled\n    return doubled(7)\n\nfound = f()",
        "def f():\n    import helpers as h\n    return h.doubled(7)\n\nfound = f()",
        "try:\n    from helpers import doubled\nexcept ImportError:\n    doubled = None\nfound = doubled(7)",
        "import helpers\nfound = int(f'{helpers.doubled(7)}')",
        'import helpers\nfound = int(f"""{helpers.doubled(\n7)}""")',
    ],
)
def test_what_is_imported_is_there(main: str) -> None:
    found = read(main, helpers=HELPERS)
    assert run(found)["found"] == 42
    assert found.modules == ("helpers.py",) and found.text["helpers.py"] == HELPERS
    assert found.notes == ("`helpers.py` belongs to it through an import.",)


def test_lines_stay_where_they_are() -> None:
    """Of the homework and of the module, also after an import over several lines."""
    found = read("from helpers import (\n    doubled,\n)\n\nvalue = doubled(1)\n", helpers=HELPERS)
    places = {cell.file: [node.lineno for node in cell.tree.body] for cell in found.cells}
    assert places["homework.py"][-1] == 5
    assert places["helpers.py"] == [1, 4]


@pytest.mark.parametrize(
    ("main", "other", "expected"),
    [
        ("SIZE = 100\nfrom helpers import doubled\nfound = doubled(7), SIZE", HELPERS, (42, 100)),
        ("import helpers\nSIZE = 100\nfound = helpers.SIZE, SIZE", HELPERS, (3, 100)),
        ("from helpers import set_it, get\nx = 1\nset_it(5)\nfound = x, get()",
         "x = 0\ndef set_it(v):\n    global x\n    x = v\ndef get():\n    return x\n", (1, 5)),
        ("def f():\n    return 'mine'\nimport helpers\nfound = f(), helpers.f(), helpers.g()",
         "def f():\n    return 'theirs'\ndef g():\n    return f()\n", ("mine", "theirs", "theirs")),
        ("import helpers\nclass Net:\n    size = 1\nfound = Net.size, helpers.Net().get()",
         "class Net:\n    size = 2\n    def get(self):\n        return Net.size\n", (1, 2)),
        ("import helpers\nx = 1\nfound = helpers.shadow(9), x",
         "x = 5\ndef shadow(x):\n    return [x for x in [x]][0]\n", (9, 1)),
        ("import math as m\nimport helpers\nfound = m.floor(1.5), helpers.f()",
         "import cmath as m\ndef f():\n    return m.sqrt(-1)\n", (1, 1j)),
        ("import math\nimport helpers\nfound = helpers.f()",
         "import math\ndef f():\n    return math.floor(2.5)\n", 2),
    ],
)  # fmt: skip
def test_two_files_may_use_one_name(main: str, other: str, expected: object) -> None:
    assert run(read(main, helpers=other))["found"] == expected


def test_packages_and_relative_imports() -> None:
    found = read(
        "from parts.vit import net\nfrom parts import tools\nfound = net(), tools.ten()",
        parts__vit="from .tools import ten\nfrom parts.deep.more import one\n"
        "def net():\n    return ten() + one\n",
        parts__tools="def ten():\n    return 10\n",
        parts__deep__more="one = 1\n",
        unrelated="raise RuntimeError\n",
    )
    assert run(found)["found"] == (11, 10)
    assert found.modules == ("parts/tools.py", "parts/deep/more.py", "parts/vit.py")
    assert "unrelated.py" not in found.text


def test_a_cycle_ends() -> None:
    found = read(
        "import a\nfound = a.f()",
        a="import b\ndef f():\n    return b.g()\n",
        b="import a\ndef g():\n    return 5\n",
    )
    assert run(found)["found"] == 5


def test_a_module_in_another_folder_is_found() -> None:
    """`sys.path.append("src")`, or an LMS that took the folders away."""
    assert run(read("from helpers import SIZE\nfound = SIZE", src__helpers=HELPERS))["found"] == 3
    assert run(read("from src.helpers import SIZE\nfound = SIZE", helpers=HELPERS))["found"] == 3


def test_a_library_is_no_module_of_the_students() -> None:
    """`torchvision.datasets` is not `datasets.py`."""
    found = read("from torchvision import datasets\n", datasets="x = 1\n")
    assert found.modules == ()


def test_what_is_for_a_script_is_not_executed_in_a_module() -> None:
    guarded = HELPERS + 'if __name__ == "__main__":\n    SIZE = 1000\n'
    assert run(read("from helpers import doubled\nfound = doubled(7)", helpers=guarded))["found"] == 42


def test_a_module_that_is_not_python_is_told() -> None:
    found = read("from helpers import doubled\nx = 1\n", helpers="def f(:\n")
    [omission] = found.omissions
    assert omission.place == Place("helpers.py", 1) and omission.broken
    assert "helpers.py" in found.notes[0] and "not correct Python" in found.notes[0]


def notebook(*cells: str) -> bytes:
    made = [{"cell_type": "code", "source": text, "outputs": []} for text in cells]
    return json.dumps({"cells": made, "nbformat": 4}).encode()


def from_notebook(*cells: str, files: Mapping[str, bytes] | None = None) -> Source:
    return source("homework.ipynb", notebook(*cells), files)


def test_a_notebook_writes_a_module() -> None:
    """`%%writefile`: the cell is the module, with the lines of the cell."""
    found = from_notebook("%%writefile helpers.py\n" + HELPERS, "import helpers\nfound = helpers.doubled(7)")
    assert run(found)["found"] == 42
    assert found.modules == ("In [1], cell 1",) and not found.omissions
    [module] = [cell for cell in found.cells if cell.file == "In [1], cell 1" and cell.tree.body]
    assert [node.lineno for node in module.tree.body] == [2, 5]


def test_a_notebook_imports_what_lies_beside_it() -> None:
    found = from_notebook(
        "from helpers import doubled", "found = doubled(7)", files={"helpers.py": HELPERS.encode()}
    )
    assert run(found)["found"] == 42 and found.modules == ("helpers.py",)


@pytest.mark.parametrize("line", ["%run train.py", "!python train.py", "!python3 -u ./train.py --epochs 3"])
def test_a_notebook_executes_a_script(line: str) -> None:
    """With what is under its main guard."""
    script = b'found = 1\nif __name__ == "__main__":\n    found = 2\n'
    assert run(from_notebook("x = 1", line, files={"train.py": script}))["found"] == 2


def test_a_file_that_nothing_imports_stays_a_magic() -> None:
    found = from_notebook("%%writefile helpers.py\n" + HELPERS, "x = 1")
    assert found.modules == () and [one.place for one in found.omissions] == [Place("In [1], cell 1", 1)]
