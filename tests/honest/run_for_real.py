"""Runs generated submissions as their students would: from the first line to the last, beside a data set.

    python tests/honest/run_for_real.py CLASS DATASET.zip [ID ...]

A notebook is run as one script, without its magics (`!unzip` is done here). Prints a line for each file, and
the end of the traceback where one fails. It takes about 5 seconds a file, so no test does it.
"""

import os
import shutil
import sys
import tempfile
import time
import traceback
import types
from pathlib import Path

from generated import python_text


def run(file: Path, dataset: Path) -> str:
    """Empty, or what went wrong."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(dataset, folder / "dataset.zip")
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        error = folder / "error.txt"
        said = f"exit status {status}" if status else ""
        if error.exists():
            said = error.read_text(encoding="utf-8")
        shutil.rmtree(folder)
        return said
    os.chdir(folder)
    try:
        _run_here(file)
    except BaseException:  # noqa: BLE001 - whatever a student's file does
        Path("error.txt").write_text(traceback.format_exc(limit=-4), encoding="utf-8")
    os._exit(0)


def _run_here(file: Path) -> None:
    sys.stdout = Path("out.txt").open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stdout
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        display = types.ModuleType("IPython.display")
        display.clear_output = lambda **_: None
        shell = types.ModuleType("IPython")
        shell.version_info, shell.get_ipython, shell.display = (8, 30), lambda: None, display
        sys.modules.update({"IPython": shell, "IPython.display": display})
        text = _shelled(text, file.name)
    else:
        Path(file.name).write_bytes(file.read_bytes())
        text = python_text(file.name, text)
    sys.argv = [file.name]
    main = types.ModuleType("__main__")
    main.__file__ = str(Path(file.name).resolve())
    sys.modules["__main__"] = main
    exec(compile(text, file.name, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - our own pieces


def _shelled(text: str, name: str) -> str:
    import json

    content = json.loads(text)
    for cell in content["cells"]:
        whole = "".join(cell["source"])
        if cell["cell_type"] == "code" and "!unzip" in whole:
            unpack = "shutil.unpack_archive('dataset.zip', 'raw')"
            whole = whole.replace("!unzip -q -o dataset.zip -d raw", unpack)
        cell["source"] = whole
    return python_text(name, json.dumps(content))


def main() -> None:
    # once, before the processes part
    import einops.layers.torch  # noqa: F401
    import matplotlib as mpl
    import seaborn  # noqa: F401
    import sklearn.metrics
    import sklearn.model_selection  # noqa: F401
    import torch
    import torchvision  # noqa: F401

    mpl.use("Agg")

    torch.set_num_threads(1)
    folder, dataset, *chosen = sys.argv[1:]
    for file in sorted(Path(folder).glob("*/*_Homework.*")):
        if file.suffix not in (".py", ".ipynb") or (chosen and file.parent.name not in chosen):
            continue
        start = time.perf_counter()
        said = run(file.resolve(), Path(dataset).resolve())
        verdict = "ok" if not said else "FAILED\n" + said
        print(f"{file.name} {time.perf_counter() - start:.1f} s {verdict}", flush=True)


if __name__ == "__main__":
    main()
