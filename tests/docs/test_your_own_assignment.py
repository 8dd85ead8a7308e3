"""docs/your-own-assignment.md: its files and commands, from top to bottom, print what the page shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/your-own-assignment.md").read_text("utf-8")
BLOCK = re.compile(r"(?:<!-- file: (\S+) -->\n\n)?^(`{3,})(\w+)\n(.*?)^\2$", re.MULTILINE | re.DOTALL)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def normalized(text: str) -> str:
    """The text without measured seconds, and with single spaces."""
    return " ".join(re.sub(r"\b\d+\.\d\b", "0.0", text).split())


def shown(output: str, printed: str) -> bool:
    """Whether what was printed is the page's output, in which `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in normalized(output).split("..."))
    return re.fullmatch(pattern, normalized(printed)) is not None


@pytest.mark.slow
def test_the_page_runs_from_an_empty_folder(tmp_path: Path) -> None:
    folder = tmp_path
    scripts = Path(sys.executable).parent
    environment = {key: value for key, value in os.environ.items() if key != "GRADER_COURSE"}
    environment |= {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    ran = []
    for name, _, language, body in BLOCK.findall(PAGE):
        if name:
            (folder / name).write_text(body, encoding="utf-8")
            continue
        assert language == "console", "a file is written under its name, everything else is run"
        for command, output in commands(body):
            if command.startswith("cd "):
                folder = (folder / command.removeprefix("cd ")).resolve()
                continue
            done = subprocess.run(
                command, shell=True, cwd=folder, env=environment, capture_output=True, encoding="utf-8"
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            assert shown(output, done.stdout), f"the page should show for {command}:\n{done.stdout}"
            ran += re.findall(r"^grader (\S+)", command)
    assert ran == ["new-course", "new-assignment", "validate", "validate", "template", "grade"]


def test_another_output_is_noticed() -> None:
    assert shown("a ...\n 0.3 s", "a b c  0.7 s\n")
    assert not shown("3.33 of 10", "3.34 of 10")
