"""The example uploads can be built, and are what their descriptions say."""

import ast
import importlib.util
import io
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import torch

HERE = Path(__file__).resolve().parent
BEHAVIORS = sorted(path.parent.name for path in HERE.glob("*/upload.toml"))


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_uploads", HERE / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(folder: Path) -> dict[str, bytes]:
    return {path.suffix: path.read_bytes() for path in folder.iterdir() if "Homework" in path.name}


@pytest.mark.parametrize("name", BEHAVIORS)
def test_upload_has_the_files_that_its_description_names(
    build: ModuleType, name: str, tmp_path: Path
) -> None:
    described = build.described(HERE / name)
    upload = described["upload"]
    folder = build.build(HERE / name, tmp_path)
    assert folder == tmp_path / upload["student_id"]
    suffixes = {f".{upload['format']}": "code", ".pth": "checkpoint", ".pdf": "report"}
    wanted = {suffix for suffix, role in suffixes.items() if role not in upload.get("leave_out", [])}
    named = {f"{upload['student_id']}_Lab8_Homework{suffix}" for suffix in wanted}
    modules = upload.get("modules", {})
    assert {path.name for path in folder.iterdir()} == named | {name.split("/")[0] for name in modules}
    assert all(ast.parse((folder / name).read_text(encoding="utf-8")).body for name in modules)
    built = files(folder)
    code = built[f".{upload['format']}"].decode("utf-8")
    assert "# >>>" not in code and "400101200" not in code
    if upload["format"] == "ipynb":
        nbformat.validate(nbformat.reads(code, as_version=4))
    elif name != "syntax_error":
        ast.parse(code)
    torch.load(io.BytesIO(built[".pth"]), weights_only=True)
    assert described["why"].strip() and described["expected"]["status"] in {"graded", "incomplete", "refused"}
    assert (name == "empty_file") == (code == "")


def test_ids_are_unique_and_the_demo_shows_all_that_it_should(build: ModuleType) -> None:
    ids = [build.described(path)["upload"]["student_id"] for path in build.behaviors()]
    assert len(set(ids)) == len(ids) == len(BEHAVIORS)
    assert [path.name for path in build.behaviors(demo_only=True)] == [
        "good_script",
        "good_notebook",
        "bare_template",
        "missing_scale",
        "prebuilt_vit",
        "missing_file",
        "hangs",
        "forges",
    ]


def test_building_twice_gives_the_same_bytes(build: ModuleType, tmp_path: Path) -> None:
    names = ["good_notebook", "missing_scale"]
    first = build.build_class(tmp_path / "one", names)
    build._weights.cache_clear()
    second = build.build_class(tmp_path / "two", names)
    assert [files(folder) for folder in first] == [files(folder) for folder in second]
    assert [folder.name for folder in first] == ["400101202", "400101204"]


def test_weights_fit_the_models_that_they_come_with(build: ModuleType, tmp_path: Path) -> None:
    good, notebook = (
        torch.load(next(folder.glob("*.pth")), weights_only=True)
        for folder in build.build_class(tmp_path, ["good_script", "good_notebook"])
    )
    assert sum(weights.numel() for weights in good.values()) == 499_462
    assert {"patch_embed.weight", "transformer.layers.0.0.fn.q.bias", "transformer.norm.weight"} <= set(
        notebook
    )


def test_the_notebook_is_like_a_real_one(build: ModuleType, tmp_path: Path) -> None:
    folder = build.build(HERE / "good_notebook", tmp_path)
    read = nbformat.read(next(folder.glob("*.ipynb")), as_version=4)
    code = [cell for cell in read.cells if cell.cell_type == "code"]
    source = "\n".join(cell.source for cell in code)
    for trait in ("%matplotlib inline", "!unzip", "from torchsummary import", "EPOCHS = 12"):
        assert trait in source
    assert "#: " not in source
    assert any(cell.outputs for cell in code) and code[-1].execution_count == len(code)


def test_an_edit_that_no_longer_fits_is_an_error(build: ModuleType, tmp_path: Path) -> None:
    behavior = tmp_path / "odd"
    behavior.mkdir()
    (behavior / "upload.toml").write_text(
        '[upload]\nstudent_id = "1"\nbase = "solution"\nformat = "py"\nedits = [["no such text", ""]]\n'
    )
    with pytest.raises(ValueError, match="occurs 0 times"):
        build.build(behavior, tmp_path / "out")


def test_pdf_has_offsets_that_point_at_its_objects(build: ModuleType) -> None:
    content = build.pdf("one (line)")
    start = int(content.rsplit(b"startxref\n", 1)[1].split(b"\n")[0])
    assert content.startswith(b"%PDF-") and content.endswith(b"%%EOF\n")
    table = content[start:].split(b"\n")
    assert table[0] == b"xref"
    for number, entry in enumerate(table[3:8], start=1):
        assert content[int(entry[:10]) :].startswith(b"%d 0 obj" % number)
