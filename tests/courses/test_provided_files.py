"""Files that a course provides: in the template, beside the homework, and read-only where it is executed."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course.assignment_file import read_assignment
from grader.course.homework_files import file_digest
from grader.course.reference_solution import solved_source
from grader.domain.errors import CourseError
from grader.domain.submission import Submission
from grader.intake import intake

HERE = Path(__file__).parent
CORPUS = HERE / "letters" / "reference" / "letter_corpus"
TUNED = HERE / "comparison" / "reference" / "fine_tuned"
ID = "400101204"
DOWNLOAD = 'torch.hub.load_state_dict_from_url("https://example.org/weights/scale-v1.pth")'
CONTENT = "To be, or not to be\n"


def solved(assignment: Path) -> str:
    """The text of a solution, as a student would hand it in."""
    return solved_source((assignment / "solution.py").read_text(encoding="utf-8"), "solution.py")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")


def results(out: Path) -> list[dict]:
    """What was found of each submission."""
    return json.loads((out / "results.json").read_text(encoding="utf-8"))["submissions"]


# --- reading ----------------------------------------------------------------------------------------------


def changed(letters: Path, old: str, new: str) -> Path:
    """The assignment with other settings."""
    folder = letters / "reference" / "letter_corpus"
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "assignment.toml").write_text(text.replace(old, new), encoding="utf-8")
    return folder


def test_it_says_what_is_provided() -> None:
    text, weights = read_assignment(CORPUS).provided
    assert (text.name, weights.name) == ("corpus.txt", "scale.pth")
    assert weights.cached == ("torch/hub/checkpoints/scale-v1.pth",) and not text.cached


def test_a_digest_that_is_missing_or_wrong_is_told_with_the_line_to_write(letters: Path) -> None:
    known = read_assignment(CORPUS).provided[0].sha256
    line = f'"corpus.txt" = "{known}"'
    folder = changed(letters, f"{line}\n", "")
    with pytest.raises(CourseError) as missing:
        read_assignment(folder)
    assert str(missing.value) == (
        f"assignment.toml: [provided]: 'corpus.txt' has no SHA-256. Write {line} below [provided.sha256]."
    )
    changed(letters, "[provided.sha256]\n", f'[provided.sha256]\n"corpus.txt" = "{"0" * 64}"\n')
    with pytest.raises(
        CourseError, match=r"is not the file that .* Put the right one there, or write"
    ) as wrong:
        read_assignment(folder)
    assert line in str(wrong.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"corpus.txt", ', '"corpus.txt", "absent.txt", ', "provided/absent.txt is missing"),
        ('"corpus.txt", ', '"corpus.txt", "../solution.py", ', "'../solution.py' is not the name of a file"),
        ('"corpus.txt", ', '"corpus.txt", "README.md", ', "'README.md' is the name of another file"),
        ('"corpus.txt", ', '"corpus.txt", "Homework.py", ', "'Homework.py' is the name of another file"),
        ('"corpus.txt", ', '"corpus.txt", "helper.so", ', "'helper.so' cannot be provided"),
        ('"corpus.txt", ', '"corpus.txt", "Corpus.txt", ', "'corpus.txt' is there twice"),
        ('["corpus.txt", "scale.pth"]', '["scale.pth"]', "has 'corpus.txt', which is not in 'files'"),
        ('"torch/hub', '"/torch/hub', "'/torch/hub/checkpoints/scale-v1.pth' is not a place in a cache"),
        ('"torch/hub', '"torch/../hub', "is not a place in a cache"),
        ('"torch/hub', '"bin/hub', "is not a place in a cache"),
        ('"torch/hub/checkpoints/scale-v1.pth', '"huggingface', "is not a place in a cache. Write torch/hub"),
        ('"torch/hub/checkpoints/', '"huggingface/owner/', "lacks the owner, the name or the file"),
        ('= "scale.pth"', '= "scales.pth"', "Did you mean 'scale.pth'?"),
    ],
)
def test_what_cannot_be_provided_is_told(letters: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(CourseError) as raised:
        read_assignment(changed(letters, old, new))
    assert said in str(raised.value)


def test_a_file_that_every_host_would_copy_is_bounded(letters: Path) -> None:
    path = letters / "reference" / "letter_corpus" / "provided" / "corpus.txt"
    os.truncate(path, 1_000_000_001)
    with pytest.raises(CourseError, match=r"corpus\.txt has over 1000 MB"):
        read_assignment(path.parents[1])


def test_a_link_is_no_provided_file(letters: Path) -> None:
    path = letters / "reference" / "letter_corpus" / "provided" / "corpus.txt"
    shutil.move(path, letters / "corpus.txt")
    path.symlink_to(letters / "corpus.txt")
    with pytest.raises(CourseError, match="or not a plain file"):
        read_assignment(path.parents[1])


# --- intake -----------------------------------------------------------------------------------------------


def test_a_provided_file_that_is_handed_in_is_nobodys_work(tmp_path: Path) -> None:
    """`corpus.txt` has the suffix of the notes that are asked for."""
    (tmp_path / f"{ID}_Corpus.py").write_text(solved(CORPUS), encoding="utf-8")
    (tmp_path / "corpus.txt").write_text("Another corpus.")
    files = tuple(sorted(tmp_path.iterdir()))
    assignment = read_assignment(CORPUS)
    found = intake(Submission(ID, assignment.id, files, "0"), assignment)
    assert found.missing == ("notes",) and not found.others
    (refused,) = found.refused
    assert refused.reason == "corpus.txt: is what the course provides. It need not be handed in."


# --- the whole way ----------------------------------------------------------------------------------------


def handed_in(folder: Path, student_id: str, source: str) -> None:
    """A homework with its notes."""
    (folder / student_id).mkdir(parents=True)
    (folder / student_id / f"{student_id}_Corpus.py").write_text(source, encoding="utf-8")
    (folder / student_id / f"{student_id}_Corpus.txt").write_text("Counted.")


WRITES = {
    "overwrites": 'open("corpus.txt", "w").write("b" * 9)',
    "adds": 'open("corpus.txt", "a").write("b" * 9)',
    "removes": 'import os; os.remove("corpus.txt")',
    "renames": 'import os; os.rename("corpus.txt", "other.txt")',
    "replaces": 'import os; open("new", "w").write("b" * 9); os.replace("new", "corpus.txt")',
    "truncates": 'import os; os.truncate("corpus.txt", 0)',
    "allows": 'import os; os.chmod("corpus.txt", 0o777)',
    "dates": 'import os; os.utime("corpus.txt", (1, 1))',
    "writes the cache": 'import os; open(os.environ["TORCH_HOME"] + "/hub/checkpoints/scale-v1.pth", "wb")',
    "adds to the cache": 'import os; open(os.environ["TORCH_HOME"] + "/hub/new.pth", "wb")',
    "unmounts": 'import ctypes; assert ctypes.CDLL(None).umount2(b"corpus.txt", 2) == 0',
}


def writing(source: str, attack: str) -> str:
    """A homework that does something to the corpus before it is counted; it says so where that succeeds."""
    before = f"""        super().__init__()
        try:
            {attack}
            done = True
        except (OSError, AssertionError):
            done = False
        if done or open("corpus.txt").read() != {CONTENT!r}:
            raise ValueError("it could be changed")
"""
    return source.replace("        super().__init__()\n", before, 1)


@pytest.mark.slow
def test_a_class_reads_and_cannot_change_what_is_provided(
    run: Callable[..., Result], letters: Path, tmp_path: Path, on_warm_hosts: None
) -> None:
    folder, source = tmp_path / "class", solved(CORPUS)
    handed_in(folder, ID, source)
    others = [f"4001013{number:02}" for number in range(len(WRITES))]
    for student_id, attack in zip(others, WRITES.values(), strict=True):
        handed_in(folder, student_id, writing(source, attack))
    words = ("--assignment", "letter_corpus", "--course", letters, "--out", tmp_path / "out", "--jobs", 2)
    done = run("grade", folder, *words)
    assert done.exit_code == 0, done.output
    first, *rest = results(tmp_path / "out")
    assert (first["total"], first["notes"]) == (6, [])
    for record, what in zip(rest, WRITES, strict=True):
        assert record["total"] == 6, (what, record["findings"])


@pytest.mark.slow
def test_it_is_valid(run: Callable[..., Result], letters: Path, tmp_path: Path, on_warm_hosts: None) -> None:
    """In copies: beside these tests pytest would find their own settings."""
    comparison = shutil.copytree(HERE / "comparison", tmp_path / "comparison")
    for course, name in ((letters, "letter_corpus"), (comparison, "fine_tuned")):
        done = run("validate", name, "--course", course)
        assert done.exit_code == 0 and "reference full; template 0" in done.output, done.output


@pytest.mark.slow
def test_a_traced_validation_finds_them_too(
    run: Callable[..., Result], letters: Path, comparison: Path, tmp_path: Path
) -> None:
    """In plain processes, and in this one."""
    for course, name in ((letters, "letter_corpus"), (comparison, "fine_tuned")):
        done = run("validate", name, "--course", course, "--only", "reference", "--debug")
        assert done.exit_code == 0 and "reference full" in done.output, done.output
    assert Path.cwd() == tmp_path and "HF_HUB_OFFLINE" not in os.environ


@pytest.mark.slow
def test_training_finds_what_is_provided(
    run: Callable[..., Result], tmp_path: Path, on_warm_hosts: None
) -> None:
    """On loading, where the model is built, in the script that trains, and where it is measured."""
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / f"{ID}_Tuned.py").write_text(solved(TUNED), encoding="utf-8")
    words = ("--assignment", "fine_tuned", "--course", HERE / "comparison", "--out", tmp_path / "out")
    done = run("grade", folder, *words, "--data", "synthetic")
    assert done.exit_code == 0, done.output
    (record,) = results(tmp_path / "out")
    assert record["training"]["outcome"] == "completed", record["training"]
    assert record["total"] == 20 and record["notes"] == [], record["notes"]


# --- a student's own machine ------------------------------------------------------------------------------


@pytest.fixture
def mine(run: Callable[..., Result], letters: Path, tmp_path: Path) -> Path:
    """A student's folder, with the solution in it."""
    made = run("template", "letter_corpus", "--course", letters)
    assert made.exit_code == 0 and "corpus.txt" in made.output and "scale.pth" in made.output
    folder = shutil.copytree(letters / "template" / "letter_corpus", tmp_path / "mine")
    assert (folder / "corpus.txt").read_text() == CONTENT
    assert (folder / "scale.pth").read_bytes() == (CORPUS / "provided" / "scale.pth").read_bytes()
    (folder / "homework.py").write_text(solved(CORPUS), encoding="utf-8")
    (folder / "homework.ipynb").unlink()
    return folder


@pytest.mark.slow
def test_a_student_finds_them_beside_the_homework(run: Callable[..., Result], mine: Path) -> None:
    """Whatever folder the command is given in."""
    checked = run("check", mine / "homework.py")
    assert checked.exit_code == 0, checked.output
    lacking = run("pack", mine, "--id", ID)
    assert "no notes" in lacking.output, "the corpus is not taken for the notes"
    (mine / "notes.txt").write_text("Counted.")
    packed = run("pack", mine, "--id", ID)
    assert packed.exit_code == 0, packed.output
    assert not (mine / "handin" / "corpus.txt").exists()


def test_one_that_is_gone_or_changed_is_told(run: Callable[..., Result], mine: Path) -> None:
    (mine / "corpus.txt").write_text("Another one.")
    told = run("check", mine / "homework.py")
    assert told.exit_code == 2
    assert "corpus.txt beside homework.py is not the file that the course provides." in told.output
    (mine / "corpus.txt").unlink()
    told = run("check", mine / "homework.py")
    gone = "corpus.txt, which the course provides, is not beside homework.py. Copy it there from"
    assert f"{gone} what the course handed out." in told.output, "not from where it is not"
    (mine / "corpus.txt").write_text("Another one.")
    (mine / "work").mkdir()
    (mine / "homework.py").rename(mine / "work" / "homework.py")
    told = run("check", mine / "work" / "homework.py", "--assignment-folder", mine)
    assert f"{gone} {mine}." in told.output


# --- what is not provided ---------------------------------------------------------------------------------


def not_provided(assignment: str, place: str) -> str:
    """The sentence, wherever it is told."""
    return (
        f"the file “{place}” is not provided: only weights that the course provides count, and nothing is "
        f"downloaded (an instructor would put the file into reference/{assignment}/provided/ and this place "
        "into [provided.cache])"
    )


def flat(text: str) -> str:
    """What a terminal showed, on one line."""
    return " ".join(text.split())


OTHER = 'torch.hub.load_state_dict_from_url("https://example.org/weights/scale-v2.pth")["scale"]'
SECOND = "torch/hub/checkpoints/scale-v2.pth"


def counting_with(source: str, scale: str) -> str:
    """The homework, in which a part takes its scale from elsewhere."""
    old = "        return SCALE * self.counts[letters]\n"
    assert old in source
    return source.replace(old, f"        return {scale} * self.counts[letters]\n")


@pytest.mark.slow
def test_a_student_finds_a_download_that_is_provided_and_no_other(
    run: Callable[..., Result], mine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was downloaded before on this machine does not count either."""
    before = tmp_path / "home" / "hub" / "checkpoints"
    before.mkdir(parents=True)
    shutil.copy(CORPUS / "provided" / "scale.pth", before / "scale-v2.pth")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    source = solved(CORPUS)
    (mine / "homework.py").write_text(counting_with(source, f'{DOWNLOAD}["scale"]'), encoding="utf-8")
    found = run("check", mine / "homework.py")
    assert found.exit_code == 0, found.output
    (mine / "homework.py").write_text(counting_with(source, OTHER), encoding="utf-8")
    told = run("check", mine / "homework.py")
    assert told.exit_code == 1 and not_provided("letter_corpus", SECOND) in flat(told.output), told.output
    at_top = source.replace('torch.load("scale.pth", weights_only=True)["scale"]', OTHER)
    (mine / "homework.py").write_text(at_top, encoding="utf-8")
    told = run("check", mine / "homework.py")
    assert told.exit_code == 1 and not_provided("letter_corpus", SECOND) in flat(told.output), told.output
    (mine / "homework.py").write_text(counting_with(source, 'torch.load("mine.pth")'), encoding="utf-8")
    told = run("check", mine / "homework.py")
    assert told.exit_code == 1 and "the file “mine.pth” is not there: only weights" in flat(told.output)
    assert (mine / "scale.pth").read_bytes() == (CORPUS / "provided" / "scale.pth").read_bytes()


TIMM = "test_vit.r160_in1k"
LIBRARIES = {
    "torchvision": (
        "torch/hub/checkpoints/squeezenet1_1-b8a52dc0.pth",
        'torchvision.models.squeezenet1_1(weights="DEFAULT").classifier[1].bias[0]',
        "torch/hub/checkpoints/squeezenet1_0-b66bff10.pth",
        'torchvision.models.squeezenet1_0(weights="DEFAULT").classifier[1].bias[0]',
    ),
    "timm": (
        f"huggingface/timm/{TIMM}/model.safetensors",
        f'timm.create_model("{TIMM}", pretrained=True).head.bias[0]',
        "huggingface/timm/test_vit2.r160_in1k/model.safetensors",
        'timm.create_model("test_vit2.r160_in1k", pretrained=True).head.bias[0]',
    ),
    "huggingface_hub": (
        "huggingface/owner/net/scale.bin",
        'torch.load(huggingface_hub.hf_hub_download("owner/net", "scale.bin"))["scale"]',
        "huggingface/owner/net/other.bin",
        'torch.load(huggingface_hub.hf_hub_download("owner/net", "other.bin"))["scale"]',
    ),
}


def random_weights(library: ModuleType, path: Path) -> None:
    """Random numbers as a library's model takes them, in which the number that counts is one half."""
    import torch

    if library.__name__ == "huggingface_hub":
        torch.save({"scale": torch.tensor(0.5)}, path)
        return
    is_timm = library.__name__ == "timm"
    model = library.create_model(TIMM) if is_timm else library.models.squeezenet1_1()
    state = model.state_dict()
    state["head.bias" if is_timm else "classifier.1.bias"][0] = 0.5
    if is_timm:
        import safetensors.torch

        safetensors.torch.save_file(state, path)
    else:
        torch.save(state, path)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_finds_its_models_weights_where_they_are_provided(
    name: str, run: Callable[..., Result], letters: Path, tmp_path: Path, on_warm_hosts: None
) -> None:
    """In a grade's workers and on a student's own machine; another model's are told of, in one sentence."""
    library = pytest.importorskip(name, reason=f"{name} is not installed (extra: finetuning)")
    place, call, other_place, other_call = LIBRARIES[name]
    assignment = letters / "reference" / "letter_corpus"
    weights = assignment / "provided" / "weights.bin"
    random_weights(library, weights)
    text = (assignment / "assignment.toml").read_text(encoding="utf-8")
    text = text.replace('"scale.pth"]', '"scale.pth", "weights.bin"]')
    text = text.replace("[provided.cache]\n", f'[provided.cache]\n"{place}" = "weights.bin"\n')
    digest = f'[provided.sha256]\n"weights.bin" = "{file_digest(weights)}"\n'
    text = text.replace("[provided.sha256]\n", digest)
    (assignment / "assignment.toml").write_text(text, encoding="utf-8")
    source = solved(assignment).replace("import torch\n", f"import torch\nimport {name}\n")

    folder = tmp_path / "class"
    handed_in(folder, ID, counting_with(source, call))
    handed_in(folder, "400101301", counting_with(source, other_call))
    words = ("--assignment", "letter_corpus", "--course", letters, "--out", tmp_path / "out")
    done = run("grade", folder, *words)
    assert done.exit_code == 0, done.output
    found, other = results(tmp_path / "out")
    assert found["total"] == 6, [finding["message"] for finding in found["findings"]]
    told = [finding["message"] for finding in other["findings"] if finding["status"] == "failed"]
    sentence = not_provided("letter_corpus", other_place)
    assert told and all(sentence in message for message in told), told

    assert run("template", "letter_corpus", "--course", letters).exit_code == 0
    homework = letters / "template" / "letter_corpus" / "homework.py"
    homework.write_text(counting_with(source, call), encoding="utf-8")
    checked = run("check", homework)
    assert checked.exit_code == 0, checked.output
    homework.write_text(counting_with(source, other_call), encoding="utf-8")
    checked = run("check", homework)
    assert checked.exit_code == 1 and sentence in flat(checked.output), checked.output


@pytest.mark.slow
def test_a_grade_says_the_same_of_what_is_not_provided(
    run: Callable[..., Result], letters: Path, tmp_path: Path, on_warm_hosts: None
) -> None:
    folder, source = tmp_path / "class", solved(CORPUS)
    handed_in(folder, ID, counting_with(source, f'{DOWNLOAD}["scale"]'))
    handed_in(folder, "400101301", counting_with(source, OTHER))
    handed_in(folder, "400101302", source.replace(DOWNLOAD, DOWNLOAD.replace("v1", "v2")))
    words = ("--assignment", "letter_corpus", "--course", letters, "--out", tmp_path / "out", "--jobs", 2)
    done = run("grade", folder, *words)
    assert done.exit_code == 0, done.output
    first, counts, scaled = results(tmp_path / "out")
    assert (first["total"], counts["total"], scaled["total"]) == (6, 2, 4)
    for record in (counts, scaled):
        messages = [finding["message"] for finding in record["findings"] if finding["status"] == "failed"]
        assert messages and all(not_provided("letter_corpus", SECOND) in told for told in messages), messages


@pytest.mark.slow
def test_training_says_the_same_of_what_is_not_provided(
    run: Callable[..., Result], comparison: Path, tmp_path: Path, on_warm_hosts: None
) -> None:
    """For a grade and on a student's own machine; a file that the source does not name, a grade does not."""
    url = "https://example.org/stem-v2.pth"
    asked = f'state = torch.hub.load_state_dict_from_url("{url}")'
    source = solved(TUNED).replace('state = torch.load("stem.pth", weights_only=True)', asked)
    assert asked in source
    hidden = source.replace(f'"{url}"', '"".join(("https://example.org/stem", "-v2.pth"))')
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / f"{ID}_Tuned.py").write_text(source, encoding="utf-8")
    (folder / "400101301_Tuned.py").write_text(hidden, encoding="utf-8")
    words = ("--assignment", "fine_tuned", "--course", comparison, "--out", tmp_path / "out")
    done = run("grade", folder, *words, "--data", "synthetic")
    assert done.exit_code == 0, done.output
    named, unnamed = (record["training"]["reason"] for record in results(tmp_path / "out"))
    sentence = not_provided("fine_tuned", "torch/hub/checkpoints/stem-v2.pth")
    assert sentence in named
    assert "stem" not in unnamed and "a file of weights that was asked for is not provided" in unnamed

    made = run("template", "fine_tuned", "--course", comparison)
    assert made.exit_code == 0, made.output
    mine = comparison / "template" / "fine_tuned"
    (mine / "homework.py").write_text(source, encoding="utf-8")
    trained = run("train", mine / "homework.py", "--data", "synthetic", "--out", tmp_path / "pictures")
    assert sentence in flat(trained.output), trained.output
