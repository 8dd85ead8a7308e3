"""The scripts of a package: what installs it in an image, what starts a run, and the container file.

They name the version of Python and the package indexes. They decide nothing about grading.
"""

import json
import sys
from dataclasses import dataclass

from grader.packages.failed_run import NOT_FINISHED, failed_document
from grader.packages.package_contents import PINS, torch_requirements
from grader.packages.package_settings import PackageSettings

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


@dataclass(frozen=True)
class Places:
    """Where a package lies in an image.

    Attributes:
        root: The other grader's folder, where each run takes place.
        home: The folder that the libraries are installed in.
        package: The unpacked files that are installed.
    """

    root: str
    home: str
    package: str


PLACES = {
    "gradescope": Places("/autograder", "/autograder", "source"),
    "container": Places("/autograder", "/autograder", "source"),
    "prairielearn": Places("/grade", "/grader", "source"),
}


def python_version() -> str:
    """The version of Python that the pinned libraries are for: `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def setup_script(sources: Sources, places: Places) -> str:
    """`setup.sh`: run once as root, when the image is built."""
    return f"""#!/bin/sh
# Installs the grader into the image; run once, as root. Not tried on the real service.
# HOME_FOLDER defaults to {places.home}:  sh setup.sh [HOME_FOLDER]
set -eu
umask 022

PYTHON_VERSION="{python_version()}"
PACKAGE_INDEX="{sources.index}"
TORCH_INDEX="{sources.torch_index}"

home="${{1:-{places.home}}}"
package="$home/{places.package}"
python="python$PYTHON_VERSION"

if ! "$python" -c "import ensurepip" 2>/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install -y --no-install-recommends "$python" "$python-venv" libseccomp2
fi
"$python" -m venv "$home/venv"
pip() {{ "$home/venv/bin/python" -m pip --disable-pip-version-check install --no-cache-dir "$@"; }}
pip --index-url "$TORCH_INDEX" {torch_requirements()}
pip --index-url "$PACKAGE_INDEX" --constraint "$package/{PINS}" \\
    "$(echo "$package"/vit_grader-*.whl){sources.extra}"

# a student's process is nobody's: it reads Python and its libraries, and nothing of the package
chmod -R a+rX "$home/venv"
chmod a+rx "$home"
chown -R 0:0 "$package"
chmod -R go-rwx "$package"
"""


def run_script(settings: PackageSettings) -> str:
    """`run_autograder`: run once for each submission."""
    kind, places = settings.kind, PLACES[settings.kind]
    document = json.dumps(failed_document(kind, settings.translated(NOT_FINISHED)))
    home = "$root" if places.home == places.root else places.home
    return f"""#!/bin/sh
# Grades one submission. Whatever happens, a valid results.json is left.
#   run_autograder [ROOT [HOME_FOLDER]]
root="${{1:-{places.root}}}"
home="${{2:-{home}}}"
mkdir -p "$root/results"
rm -f "$root/results/results.json"
cat > "$root/results/results.json" <<'END'
{document}
END
exec "$home/venv/bin/python" -P -s -m grader.packages {kind} "$root"
"""


def container_file(places: Places, entry: str) -> str:
    """A Containerfile: for Docker and Podman alike.

    Args:
        entry: The script that is run for each submission.
    """
    folder = f"{places.home}/{places.package}"
    return f"""# Not tried with every version of Docker and Podman.
#   docker build -t grader .            podman build -t grader .
FROM docker.io/library/python:{python_version()}-slim-bookworm
COPY . {folder}
RUN sh {folder}/setup.sh
ENTRYPOINT ["{folder}/{entry}"]
"""
