"""`grader doctor`: what this machine can do, and what it lacks."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from grader.cli.terminal_page import Page
    from grader.course.locate import Course
    from grader.sandbox.survey import Survey

LAYER_TITLES = {
    "namespaces": "no network, no other processes, no other files in sight",
    "landlock": "files outside its own folder are closed to it",
    "seccomp": "only the system calls that it needs",
    "cgroup": "its memory is bounded exactly",
}


@click.command("doctor")
@click.option("--course", type=click.Path(path_type=Path), metavar="FOLDER", help="The course's folder.")
def command(course: Path | None) -> None:
    """Show what this machine can do, and what it lacks.

    Looks at Python and PyTorch, the GPU, the layers that isolate other people's code during grading, and the
    course. It changes nothing. The exit code is 1 if your own homework cannot be checked here. In a course's
    folder it is also 1 if others' work cannot be graded.

    \b
    Example:
      grader doctor
    """
    from grader.cli.terminal_page import Page
    from grader.sandbox.survey import survey

    located, why = _located(course)
    page = Page()
    fault, gpu = _show_software(page)
    machine = survey()
    _show_layers(page, machine)
    if gpu and machine.verdict != "refused":
        _show_gpu_in_worker(page)
    unopened = "" if machine.verdict == "refused" else _show_parsing(page)
    _show_course(page, located, why)
    hindrance = _hindrance(machine, located) or unopened
    before = " once the secret is changed" if located is not None and located.secret_is_public else ""
    if fault:
        sentence = f"This machine cannot check homework yet. {fault}"
    elif hindrance and located is not None:
        sentence = f"This machine can check your own homework, but not grade others. {hindrance}"
    elif hindrance:
        sentence = f"This machine can check your own homework. (To grade others: {hindrance})"
    else:
        sentence = f"This machine can check your own homework, and grade others{before}."
    fine = not fault and (located is None or not hindrance)
    page.verdict(fine, f"Isolation: {machine.verdict}. {sentence}")
    sys.exit(0 if fine else 1)


def _located(folder: Path | None) -> tuple["Course | None", str]:
    """The course, or None and why there is none.

    Raises:
        UsageError: A folder was named that is not a course.
        CourseError: Its course.toml is malformed.
    """
    from grader.course.locate import located_course
    from grader.domain.errors import UsageError

    try:
        return located_course(folder), ""
    except UsageError as error:
        if folder is not None:
            raise
        return None, str(error).partition(". ")[0]


def _show_software(page: "Page") -> tuple[str, str]:
    """Show Python, PyTorch and the GPU.

    Returns:
        What prevents checks, and the GPU's name; each is empty where there is none.
    """
    from importlib.metadata import PackageNotFoundError, version

    from grader.grading.run import is_new_enough
    from grader.students.own_training import torch_probe

    page.heading("Software")
    page.item("passed", f"Python {sys.version.split()[0]}")
    try:
        torch = version("torch")
    except PackageNotFoundError:
        page.item("failed", "PyTorch is not installed.")
        return "Install PyTorch: python -m pip install torch torchvision", ""
    probe = torch_probe()
    if probe.fault:
        page.item("failed", f"PyTorch {torch} is installed, but cannot be imported: {probe.fault}")
        return "Install torch and torchvision again, both from the same place.", ""
    if is_new_enough(torch):
        page.item("passed", f"PyTorch {torch}")
    else:
        page.item(
            "skipped", f"PyTorch {torch}: fine for your own homework; grading others needs 2.10 or newer"
        )
    if probe.gpu:
        page.item("passed", f"GPU: {probe.gpu}")
    else:
        page.item("note", "GPU: PyTorch sees none; training runs on the processor")
    return "", probe.gpu


def _show_layers(page: "Page", machine: "Survey") -> None:
    page.heading(f"Isolation of other people's code: {machine.verdict}")
    for state in machine.states:
        form = f" ({state.detail})" if state.available and state.detail else ""
        page.item(
            "passed" if state.available else "skipped", f"{state.layer}: {LAYER_TITLES[state.layer]}{form}"
        )
        if not state.available:
            page.detail(state.detail, style="yellow", indent=4)
    _show_bubblewrap(page, machine)


def _show_gpu_in_worker(page: "Page") -> None:
    """Show whether isolated code can use the GPU, which takes some seconds to find out."""
    from grader.grading.devices import gpu_fault

    if fault := gpu_fault():
        page.item("failed", "GPU: isolated code cannot use it, so every training would stay unknown")
        page.detail(f"{fault} Grade with --device cpu.", style="yellow", indent=4)
    else:
        page.item("passed", "GPU: isolated code can use it")


def _show_parsing(page: "Page") -> str:
    """Show whether submissions can be opened, which takes some seconds; returns what prevents it."""
    from grader.grading.run import parsing_fault

    fault = parsing_fault()
    if not fault:
        page.item("passed", "submissions can be opened")
        return ""
    page.item("failed", "submissions cannot be opened")
    page.detail(fault, style="yellow", indent=4)
    return "The processes that open submissions do not start."


def _show_bubblewrap(page: "Page", machine: "Survey") -> None:
    """Show the second wall, which no grade requires."""
    from grader.sandbox import rootfs
    from grader.sandbox.survey import survey

    version = rootfs.bubblewrap_version()
    if not version:
        page.item("note", "bubblewrap is not installed (`apt install bubblewrap`): it would be a second wall")
    elif survey(wrapped=True).layers >= machine.layers:
        page.item("passed", f"bubblewrap {version}: a second wall around them all")
    else:
        page.item("note", f"bubblewrap {version} does not work beside these layers here, and is left out")


def _show_course(page: "Page", course: "Course | None", why: str) -> None:
    page.heading("Course")
    if course is None:
        page.item("note", f"{why}. Only instructors need one.")
        return
    page.item("passed", f"{course.title}, in {course.root}")
    page.item("passed", f"assignments: {', '.join(course.assignments()) or 'none'}")
    if course.secret_is_public:
        page.item("skipped", "The secret is still the one that the course was handed out with.")
        advice = "Change `secret` in course.toml, or set GRADER_SECRET, before you grade real work."
        page.detail(advice, style="yellow", indent=4)
    else:
        page.item("passed", "The secret of the hidden test images is your own.")


def _hindrance(machine: "Survey", course: "Course | None") -> str:
    """Why others' work cannot be graded here, in a sentence; empty when it can be."""
    from importlib.metadata import PackageNotFoundError, version

    from grader.grading.run import is_new_enough

    if machine.verdict == "refused":
        return f"It gives too little isolation: {' '.join(machine.missing)}"
    if course is not None and course.minimum_level == "strict" and machine.verdict != "strict":
        return "course.toml asks for the isolation `strict`, and this machine gives `standard`."
    try:
        torch = version("torch")
    except PackageNotFoundError:
        return "PyTorch is not installed."
    return "" if is_new_enough(torch) else f"PyTorch {torch} is older than 2.10: install a newer one."
