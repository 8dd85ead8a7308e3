"""Where the other grader puts the package and the submission, and where it expects the results.

It knows the folders of each grader below a root, and closes them to every user but the one that grades. It
reads no submission, and it decides nothing about points.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PackageTree:
    """The folders of one run.

    Attributes:
        root: Of the other grader: `/autograder`, `/grade`.
        package: Where the package lies, unpacked.
        submission: What the student handed in.
        metadata: What the other grader says of it.
        results: The file that the other grader reads.
    """

    root: Path
    package: Path
    submission: Path
    metadata: Path
    results: Path

    @property
    def course(self) -> Path:
        """The folder of the course, with the one assignment."""
        return self.package / "course"

    @property
    def closed(self) -> tuple[Path, ...]:
        """The folders that no student's process may enter."""
        own = (self.package, self.submission, self.results.parent)
        return own if self.metadata.parent == self.root else (*own, self.metadata.parent)

    def close(self) -> None:
        """Let nobody but the calling user enter these folders, as far as they are the calling user's.

        A run that proves its isolation by these permissions refuses where they are not closed.
        """
        for folder in self.closed:
            with contextlib.suppress(OSError):
                folder.chmod(0o700)
        with contextlib.suppress(OSError):
            self.metadata.chmod(0o600)

    def open_results(self) -> None:
        """Let others read the results, whoever fetches them."""
        with contextlib.suppress(OSError):
            self.results.parent.chmod(0o755)


def gradescope_tree(root: Path) -> PackageTree:
    """Gradescope's folders, which the container file's image has too."""
    return PackageTree(
        root=root,
        package=root / "source",
        submission=root / "submission",
        metadata=root / "submission_metadata.json",
        results=root / "results" / "results.json",
    )


def prairielearn_tree(root: Path) -> PackageTree:
    """PrairieLearn's folders."""
    return PackageTree(
        root=root,
        package=root / "tests",
        submission=root / "student",
        metadata=root / "data" / "data.json",
        results=root / "results" / "results.json",
    )


TREES = {"gradescope": gradescope_tree, "container": gradescope_tree, "prairielearn": prairielearn_tree}


def write_atomically(path: Path, content: bytes) -> None:
    """Put a file in the place of another one at once, also in that of a link."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    temporary.write_bytes(content)
    temporary.chmod(0o644)
    temporary.replace(path)
