"""The scripts of a package: what installs it in an image, what starts a run, and the container file.

They name the version of Python and the package indexes. They decide nothing about grading.
"""

import json
import sys
from dataclasses import dataclass

from grader.packages.failed_run import NOT_FINISHED, failed_document
from grader.packages.package_contents import PINS, torch_requirements

PYPI = "https://pypi.org/simple"
TORCH_CPU = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True)
class Sources:
    """Where the image gets its libraries from.

    Attributes:
        index: The package index of everything else than PyTorch.
        torch_index: The index of PyTorch without a GPU.
        extra: Of the engine: `[language]`, or empty.
    """

    index: str = PYPI
    torch_index: str = TORCH_CPU
    extra: str = ""


def python_version() -> str:
    """The version of Python that the pinned libraries are for: `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def setup_script(sources: Sources, root: str, package: str) -> str:
    """`setup.sh`: run once as root, when the image is built.

    Args:
        root: The other grader's folder, `/autograder`.
        package: Where the package lies below it, `source`.
    """
    return f"""#!/bin/sh
# Installs the grader into the image; run once, as root. Not tried on the real service.
# ROOT defaults to {root}:  sh setup.sh [ROOT]
set -eu
umask 022

PYTHON_VERSION="{python_version()}"
PACKAGE_INDEX="{sources.index}"
TORCH_INDEX="{sources.torch_index}"

root="${{1:-{root}}}"
package="$root/{package}"
python="python$PYTHON_VERSION"

if ! "$python" -c "import ensurepip" 2>/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install -y --no-install-recommends "$python" "$python-venv" libseccomp2
fi
"$python" -m venv "$root/venv"
pip() {{ "$root/venv/bin/python" -m pip --disable-pip-version-check install --no-cache-dir "$@"; }}
pip --index-url "$TORCH_INDEX" {torch_requirements()}
pip --index-url "$PACKAGE_INDEX" --constraint "$package/{PINS}" \\
    "$(echo "$package"/vit_grader-*.whl){sources.extra}"

# a student's process is nobody's: it reads Python and its libraries, and nothing of the package
chmod -R a+rX "$root/venv"
chmod a+rx "$root"
chown -R 0:0 "$package"
chmod -R go-rwx "$package"
"""


def run_script(kind: str, root: str) -> str:
    """`run_autograder`, or PrairieLearn's entry point: run once for each submission.

    Args:
        kind: `gradescope`, `container` or `prairielearn`.
        root: The other grader's folder.
    """
    document = json.dumps(failed_document(kind, NOT_FINISHED))
    return f"""#!/bin/sh
# Grades one submission. Whatever happens, a valid results.json is left.
# ROOT defaults to {root}:  run_autograder [ROOT]
root="${{1:-{root}}}"
mkdir -p "$root/results"
rm -f "$root/results/results.json"
cat > "$root/results/results.json" <<'END'
{document}
END
exec "$root/venv/bin/python" -P -s -m grader.packages {kind} "$root"
"""


def container_file(root: str, package: str, entry: str) -> str:
    """A Containerfile: for Docker and Podman alike.

    Args:
        root: The other grader's folder within the image.
        package: Where the package lies below it.
        entry: The script that is run for each submission.
    """
    return f"""# Not tried with every version of Docker and Podman.
#   docker build -t grader .            podman build -t grader .
FROM docker.io/library/python:{python_version()}-slim-bookworm
COPY . {root}/{package}
RUN sh {root}/{package}/setup.sh
ENTRYPOINT ["{root}/{package}/{entry}"]
"""
