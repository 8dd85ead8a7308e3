"""`grader pack` in a student's folder."""

import importlib.util
import re
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ID = "400101204"
EXAMPLE = "400101200"  # in the homework as it is handed out
STEM = f"{ID}_Lab8_Homework"


@pytest.fixture(scope="session")
def uploads(course_root: Path) -> ModuleType:
    """The module that builds example uploads (importlib mode puts no test folder on the path)."""
    path = course_root / "tests" / "submissions" / "build.py"
    spec = importlib.util.spec_from_file_location("uploads_for_packing", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def built(uploads, course_root, tmp_path_factory) -> Path:
    """The three files of a good submission, under their right names."""
    behavior = course_root / "tests" / "submissions" / "good_script"
    return Path(uploads.build(behavior, tmp_path_factory.mktemp("built")))


@pytest.fixture
def ready(desk, built) -> Path:
    """A folder in which everything is there, under a student's own names."""
    for path in built.iterdir():
        name = {".py": "homework.py", ".pth": "400101204.pth", ".pdf": "my report.pdf"}[path.suffix]
        (desk / name).write_bytes(path.read_bytes())
    state_id(desk / "homework.py", ID)
    return desk


def state_id(path, student_id):
    """Write a STUDENT_ID into a homework."""
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(r'^STUDENT_ID = "\d+"', f'STUDENT_ID = "{student_id}"', text, flags=re.MULTILINE)
    assert count == 1
    path.write_text(changed, encoding="utf-8")


def write(path, text):
    """A homework of a student's own."""
    path.write_text(text, encoding="utf-8")
    state_id(path, ID)


@pytest.fixture
def weights_of():
    """Saves the weights that a homework's model begins with: `weights_of(code, path)`."""

    def saved(code, path):
        import torch

        text = code.read_text(encoding="utf-8")
        parts = text[text.index("class PreNorm") : text.index("# %% [markdown]\n# ## 4.")]
        model = next(line for line in text.splitlines() if line.startswith("model = ViT("))
        space: dict[str, object] = {}
        imports = "import torch\nfrom torch import nn\nfrom einops import rearrange, repeat\n"
        imports += "from einops.layers.torch import Rearrange\n"
        exec(imports + parts + model, space)  # noqa: S102 - the reference, our own
        torch.save(space["model"].state_dict(), path)  # type: ignore[attr-defined]

    return saved


def pack(run, *arguments):
    """Pack without the public checks, which take long and have tests of their own."""
    return run("pack", "--no-checks", *arguments)


def test_a_complete_folder_is_packed_and_zipped(ready, run):
    result = pack(run, "--id", ID, "--zip")
    assert result.exit_code == 0, result.output
    for name, source in (("py", "homework.py"), ("pth", f"{ID}.pth"), ("pdf", "my report.pdf")):
        assert (ready / "handin" / f"{STEM}.{name}").read_bytes() == (ready / source).read_bytes()
        assert f"{STEM}.{name} (from {source})" in result.output
    assert "they fit the model in your code" in result.output
    assert "homework.ipynb was left out" in result.output, "the untouched notebook is not the homework"
    with zipfile.ZipFile(ready / "handin" / f"{STEM}.zip") as archive:
        assert sorted(archive.namelist()) == [f"{STEM}.pdf", f"{STEM}.pth", f"{STEM}.py"]
    before = (ready / "handin" / f"{STEM}.zip").read_bytes()
    again = pack(run, "--id", ID, "--zip")
    assert again.exit_code == 0, "the same content again is not a conflict"
    assert (ready / "handin" / f"{STEM}.zip").read_bytes() == before
    inferred = pack(run, "handin", "--assignment-folder", ".", "--out", "elsewhere")
    assert inferred.exit_code == 0, "right names say whose work it is"
    assert sorted(path.name for path in (ready / "elsewhere").iterdir()) == [
        f"{STEM}.{s}" for s in ("pdf", "pth", "py")
    ]


def test_nothing_is_overwritten_unless_it_is_said(ready, run):
    (ready / f"{ID}.pth").unlink()
    target = ready / "handin" / f"{STEM}.py"
    target.parent.mkdir()
    target.write_text("older\n", encoding="utf-8")
    result = pack(run, "--id", ID)
    assert result.exit_code == 1 and "is there already, with different content" in result.output
    assert target.read_text(encoding="utf-8") == "older\n"
    pack(run, "--id", ID, "--force")
    assert target.read_bytes() == (ready / "homework.py").read_bytes()


def test_what_is_missing_is_said_and_the_rest_is_packed(ready, run, uploads):
    (ready / "my report.pdf").unlink()
    (ready / "report.docx").write_bytes(b"PK\x03\x04")
    (ready / f"{ID}.pth").write_bytes(uploads._foreign_weights())
    result = pack(run, "--id", ID, "--zip")
    assert result.exit_code == 1
    assert "There is no .pdf file. Export your report as PDF" in result.output
    assert f"{ID}.pth does not belong to the submitted model" in result.output
    assert "Not complete: no weights, no report. If one file is missing, there is no grade." in result.output
    assert [path.name for path in (ready / "handin").iterdir()] == [f"{STEM}.py"]


def test_files_that_are_not_what_they_should_be_are_not_packed(ready, run):
    (ready / "homework.py").write_text("def broken(:\n", encoding="utf-8")
    (ready / "my report.pdf").write_bytes(b"PK\x03\x04 a Word document")
    result = pack(run, "--id", ID, "--code", "homework.py")
    assert result.exit_code == 1
    assert "homework.py:1" in result.output
    assert "is not a PDF (it is a Word document under another name)" in result.output
    assert f"{ID}.pth could not be tried, because there is no code" in result.output
    assert [path.name for path in (ready / "handin").iterdir()] == [f"{STEM}.pth"]


def test_of_two_equally_good_files_the_student_chooses(desk, run):
    result = pack(run, "--id", ID)
    assert result.exit_code == 1
    assert "Which one is meant, homework.ipynb or homework.py? Say so: --code FILE" in result.output
    chosen = pack(run, "--id", ID, "--code", "homework.ipynb", "--id-is-right")
    assert f"✓ code     {STEM}.ipynb (from homework.ipynb)" in chosen.output
    assert "14 of its parts are not written yet." in chosen.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pack"], "Say so: grader pack --id STUDENT_ID"),
        (["pack", "--id", "a/b"], "letters, digits, `-` and `_` only"),
        (["pack", "nowhere", "--id", ID], "nowhere is not a folder"),
        (["pack", "--id", ID, "--report", "no.pdf"], "--report no.pdf: there is no such file."),
        (["pack", "--id", ID, "--file", "report=no.pdf"], "--report no.pdf: there is no such file."),
        (["pack", "--id", ID, "--file", "metrics"], "--file metrics: name a role and its file, as in"),
    ],
)
def test_wrong_arguments_get_a_sentence(desk, run, arguments, told):
    result = run(*arguments)
    assert result.exit_code == 2 and told in result.output, result.output


def test_modules_that_the_homework_imports_are_packed_with_it(ready, run):
    text = (ready / "homework.py").read_text(encoding="utf-8")
    (ready / "parts").mkdir()
    (ready / "parts" / "tools.py").write_text("def same(x):\n    return x\n", encoding="utf-8")
    (ready / "homework.py").write_text("from parts.tools import same\n" + text, encoding="utf-8")
    result = pack(run, "--id", ID, "--zip")
    assert result.exit_code == 0, result.output
    assert "module   parts/tools.py: your code imports it" in result.output
    assert (ready / "handin" / "parts" / "tools.py").read_text(encoding="utf-8").startswith("def same")
    with zipfile.ZipFile(ready / "handin" / f"{STEM}.zip") as archive:
        assert "parts/tools.py" in archive.namelist()


def test_the_checks_are_made_and_their_verdict_is_the_last_line(ready, run, small_solution, weights_of):
    write(ready / "homework.py", small_solution)
    weights_of(ready / "homework.py", ready / f"{ID}.pth")
    result = run("pack")
    assert result.exit_code == 0, result.output
    last = result.output.strip().splitlines()[-1]
    assert last.startswith(
        "✓ Everything is in handin. All 50 public checks pass, and the training runs: 2"
    ), last
    assert "cannot be built" not in result.output and "parameters, image_size 28" in result.output
    scores = "scores = q @ k.transpose(-2, -1) * self.scale"
    assert scores in small_solution
    write(ready / "homework.py", small_solution.replace(scores, scores.removesuffix(" * self.scale")))
    result = run("pack", "--force")
    last = result.output.strip().splitlines()[-1]
    assert result.exit_code == 1
    assert last.startswith("✗ Everything is in handin, but the work is not right yet: 49 of 50"), last
    assert (ready / "handin" / f"{STEM}.py").is_file(), (
        "what is wrong with it keeps no file from being packed"
    )


def test_the_id_is_read_from_the_code(ready, run):
    result = pack(run)
    assert result.exit_code == 0, result.output
    assert f"✓ id       {ID}" in result.output and (ready / "handin" / f"{STEM}.py").is_file()


def test_an_id_that_the_code_contradicts_is_asked_for(ready, run):
    other = pack(run, "--id", "400101299")
    assert other.exit_code == 2 and not (ready / "handin").exists()
    assert "--id 400101299, and STUDENT_ID at homework.py:" in other.output
    assert f"is {ID}. Whose work is it?" in other.output and "--id-is-right" in other.output
    confirmed = pack(run, "--id", "400101299", "--id-is-right")
    assert confirmed.exit_code == 0, confirmed.output
    assert (ready / "handin" / "400101299_Lab8_Homework.py").is_file()


def test_the_example_in_the_template_is_nobodys_id(ready, run):
    state_id(ready / "homework.py", EXAMPLE)
    result = pack(run)
    assert result.exit_code == 2 and not (ready / "handin").exists()
    assert f"is still {EXAMPLE}, as it was handed out. Correct that line" in result.output
    given = pack(run, "--id", ID)
    assert given.exit_code == 2 and f"--id {ID}, and STUDENT_ID" in given.output


def test_names_of_files_that_contradict_the_code_are_told(ready, run):
    (ready / f"{ID}.pth").rename(ready / "400101777_Lab8_Homework.pth")
    result = pack(run)
    assert result.exit_code == 2 and "and the names of files here say 400101777" in result.output


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("depth=1", "depth=2", "has 1 entry in it and 2 in the model (in the code: depth=2)"),
        (
            "dim=64",
            "dim=48",
            "has the shape (1, 1, 64) in it and (1, 1, 48) in the model (in the code: dim=48)",
        ),
        ("mlp_dim=128", "mlp_dim=96", "(in the code: mlp_dim=96)"),
        ("patch_size=4", "patch_size=7", "(in the code: image_size=28 and patch_size=7)"),
    ],
)
def test_sizes_that_do_not_fit_are_named(ready, run, small_solution, weights_of, before, after, told):
    write(ready / "homework.py", small_solution)
    weights_of(ready / "homework.py", ready / f"{ID}.pth")
    assert before in small_solution
    write(ready / "homework.py", small_solution.replace(before, after))
    result = pack(run)
    assert result.exit_code == 1
    assert told in result.output.replace("\N{NO-BREAK SPACE}", " "), result.output
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("✗ Not complete: no weights."), last


def test_weights_of_a_compiled_model_fit(ready, run, small_solution, weights_of):
    import torch

    write(ready / "homework.py", small_solution)
    weights_of(ready / "homework.py", ready / f"{ID}.pth")
    state = torch.load(ready / f"{ID}.pth", weights_only=True)
    torch.save({f"_orig_mod.{name}": value for name, value in state.items()}, ready / f"{ID}.pth")
    result = pack(run)
    assert result.exit_code == 0 and "they fit the model in your code" in result.output, result.output
