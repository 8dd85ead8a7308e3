"""Which files beside a homework belong to it, by the words of its imports."""

from pathlib import Path

import pytest

from grader.files.file_names import modules_beside, spoken_of


@pytest.mark.parametrize(
    "code",
    [
        "import helpers",
        "import math, helpers as h",
        "from helpers import x",
        "from .helpers import x",
        "    from parts.helpers import (\n  x,\n)",
        "from parts import (\n    tools,\n    helpers,\n)",
        '{"cells": [{"source": ["from helpers import x\\n"]}]}',
        "%run helpers.py",
        "!python helpers.py --epochs 3",
    ],
)
def test_every_way_to_import_is_seen(code: str) -> None:
    others = {"helpers.py": b"import more", "more.py": b"", "other.py": b"import helpers"}
    assert spoken_of(code.encode(), others) == ("helpers.py", "more.py")


def test_a_word_in_the_code_is_no_import() -> None:
    assert spoken_of(b"helpers = 3\n# helpers\nprint('helpers')\n", {"helpers.py": b""}) == ()


def test_modules_lie_beside_the_homework_and_in_folders_that_it_names(tmp_path: Path) -> None:
    files = {
        "homework.py": "import helpers\nfrom parts.vit import net\n",
        "helpers.py": "x = 1\n",
        "unused.py": "x = 2\n",
        "parts/__init__.py": "",
        "parts/vit.py": "from .deep.tools import ten\n",
        "parts/deep/tools.py": "ten = 10\n",
        "checks/helpers.py": "never = 1\n",
        ".hidden/helpers.py": "never = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = modules_beside(tmp_path / "homework.py")
    assert sorted(found) == ["helpers.py", "parts/__init__.py", "parts/deep/tools.py", "parts/vit.py"]
    assert found["helpers.py"] == b"x = 1\n"
