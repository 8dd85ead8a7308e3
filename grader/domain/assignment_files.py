"""The files of an assignment: those that are handed in, and those that students are given."""

import re
from dataclasses import dataclass
from pathlib import Path

PROVIDED = "provided"  # a folder of an assignment
TORCH, HUB = "torch", "huggingface"  # folders of the cache: what TORCH_HOME and HF_HOME name
STUDENT_ID = "{student_id}"  # in the names of files


@dataclass(frozen=True)
class SubmittedFile:
    """A file that is handed in.

    Attributes:
        role: One of `Role`, or one that the assignment names: `metrics`.
        suffixes: Those that it may have: `.py`, `.ipynb`.
        stem: How its name begins, if differently from all other files.
        required: Whether there is no grade without it; otherwise only what depends on it is lost.
    """

    role: str
    suffixes: tuple[str, ...]
    stem: str = ""
    required: bool = True


@dataclass(frozen=True)
class AskedFile:
    """A file that must be handed in, and its required name.

    Attributes:
        stem: What its name begins with: `{student_id}_Lab8_Homework`.
        measure: For weights: the measure of their model.
        name_part: What distinguishes its name from those of other files with the same suffix; empty: none.
        required: Whether there is no grade without it.
    """

    role: str
    suffixes: tuple[str, ...]
    stem: str
    measure: str = ""
    name_part: str = ""
    required: bool = True

    def has_name_part(self, name: str) -> bool:
        """Whether a name has the part that distinguishes this file from others, in any spelling."""
        stem, part = Path(name).stem.casefold(), self.name_part.casefold()
        bare = _SEPARATORS.sub("", part)
        return part in stem or (len(bare) >= _TELLING and bare in _SEPARATORS.sub("", stem))

    def name(self, student_id: str, suffix: str = "") -> str:
        """Its required name: `400101204_Lab8_Homework.pdf`.

        Args:
            suffix: One of its own; empty: the first.
        """
        return self.stem.replace(STUDENT_ID, student_id) + (suffix or self.suffixes[0])


_SEPARATORS = re.compile(r"[\s_.-]+")
_TELLING = 4  # letters: a shorter part of a name may occur by chance


@dataclass(frozen=True)
class ProvidedFile:
    """A file that students get and that lies beside the homework wherever that is executed.

    Attributes:
        name: Its name there.
        sha256: Of its content, hexadecimal.
        cached: Where libraries that would download it look for it: `torch/hub/checkpoints/vit.pth`,
            `huggingface/OWNER/NAME/model.safetensors`.
        code: Its content, if it is a module that homework imports; empty on a student's own machine, where
            the file lies beside the homework.
    """

    name: str
    sha256: str
    cached: tuple[str, ...] = ()
    code: bytes = b""

    @property
    def cached_names(self) -> tuple[str, ...]:
        """Its names in caches, and the names of the repositories that it belongs to."""
        names: list[str] = []
        for place in self.cached:
            cache, *parts = place.split("/")
            names.append(parts[-1])
            if cache == HUB:
                is_whole = parts[0] == "hub" and len(parts) > 1
                names.append(
                    parts[1].removeprefix("models--").replace("--", "/") if is_whole else "/".join(parts[:2])
                )
        return tuple(dict.fromkeys(names))
