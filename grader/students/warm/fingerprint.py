"""What must be the same for a warm process to find what a new one would."""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import grader
from grader import __version__

# the files of an assignment that are read or executed for a check, beside the homework
ASSIGNMENT_FILES = ("assignment.toml", "test_public.py", "conftest.py", "variant.json")
# the beginnings of what Python and the libraries read of the environment while they are loaded
READ_ON_LOADING = (
    *("PYTHON", "PYTEST", "VIRTUAL_ENV", "CONDA", "LD_", "DYLD_", "LANG", "LC_", "TZ", "GLIBC_", "MALLOC_"),
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLAS_", "VECLIB_", "NUMEXPR_", "NUMBA_", "NPY_"),
    *("TORCH", "PYTORCH_", "ATEN_", "CUDA", "CUDNN_", "CUBLAS_", "NVIDIA_", "NCCL_", "HIP_", "ROCR_", "HSA_"),
    *("MPL", "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "TQDM_", "KERAS_", "TF_", "JAX_", "XLA_"),
    *("HOME", "USERPROFILE", "XDG_", "TMP", "TEMP", "GRADER_"),
)
OURS_ALONE = ("GRADER_WARM",)  # it says whether there is a warm process, not what one finds


def fingerprint(folder: Path, environment: Mapping[str, str]) -> str:
    """A digest of the installed grader, the Python, the assignment and what matters of the environment.

    Args:
        folder: The assignment's, as students have it.
        environment: Of who wants to know; the rest of it is handed over with each check.
    """
    facts = {
        "grader": [__version__, *_modules(Path(grader.__file__).parent)],
        "python": [sys.version, sys.executable, sys.prefix],
        "libraries": _libraries(),
        "assignment": [str(folder.resolve()), *(_digest(folder / name) for name in ASSIGNMENT_FILES)],
        "environment": sorted(what_matters(environment).items()),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def what_matters(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are read while Python and the libraries are loaded, and never again."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper().startswith(READ_ON_LOADING) and name not in OURS_ALONE
    }


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _modules(folder: Path) -> Iterator[str]:
    """The modules below a folder, each with when it was written: a wheel may be installed anew."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
            yield from _modules(Path(entry.path))
        elif entry.name.endswith(".py"):
            about = entry.stat()
            yield f"{entry.path} {about.st_size} {about.st_mtime_ns}"


def _libraries() -> list[str]:
    """The folders of installed packages, each with when one was last put in or taken out."""
    found = []
    for entry in sys.path:
        if Path(entry).name in ("site-packages", "dist-packages"):
            try:
                found.append(f"{entry} {Path(entry).stat().st_mtime_ns}")
            except OSError:
                continue
    return sorted(set(found))
