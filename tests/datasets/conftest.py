"""Small data sets of generated images, laid out like the course's."""

import importlib.util
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
CLASSES = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")


def dataset_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"dataset_under_test_{name}", ROOT / "datasets" / f"{name}.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def dataset() -> Callable[[str], ModuleType]:
    """A data set file of the course, by its name."""
    return dataset_module


@pytest.fixture(scope="session")
def neu_cls() -> ModuleType:
    return dataset_module("neu_cls")


@pytest.fixture(scope="session")
def synthetic_steel() -> ModuleType:
    return dataset_module("synthetic_steel")


@pytest.fixture(scope="session")
def real_zip() -> Path:
    path = Path(os.environ.get("NEU_CLS") or ROOT.parent / "shared" / "data" / "NEU-CLS.zip")
    if not path.exists():
        pytest.skip(f"the NEU images are not at {path}; set NEU_CLS to the zip")
    return path


def encoded_image(
    level: int, *, size: tuple[int, int] = (12, 12), mode: str = "L", suffix: str = ".png"
) -> bytes:
    """An image file with pixels that depend on the level alone."""
    rng = np.random.default_rng(level)
    gray = Image.fromarray(rng.integers(0, 256, (size[1], size[0]), dtype=np.uint8))
    buffer = io.BytesIO()
    kind = {".png": "PNG", ".bmp": "BMP", ".jpg": "JPEG", ".jpeg": "JPEG"}[suffix.lower()]
    gray.convert(mode).save(buffer, format=kind)
    return buffer.getvalue()


def files_of_the_course(per_class: int = 4) -> dict[str, bytes]:
    """File name -> content, as the course hands the data out."""
    return {
        f"{label}/{label}_{i}.png": encoded_image(100 * c + i)
        for c, label in enumerate(CLASSES)
        for i in range(1, per_class + 1)
    }


@pytest.fixture(scope="session")
def encoded() -> Callable[..., bytes]:
    return encoded_image


@pytest.fixture(scope="session")
def course_files() -> Callable[..., dict[str, bytes]]:
    return files_of_the_course


Layout = Callable[[dict[str, bytes]], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Layout:
    def written(files: dict[str, bytes]) -> Path:
        root = tmp_path / "unpacked"
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        root.mkdir(exist_ok=True)
        return root

    return written


@pytest.fixture
def zipped(tmp_path: Path) -> Layout:
    def written(files: dict[str, bytes]) -> Path:
        path = tmp_path / "data.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path

    return written
