"""The public tools, installed from the package index into a virtual environment of their own."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

FOLDER = Path(__file__).parent
REQUIREMENTS = FOLDER / "requirements.txt"
CACHE = FOLDER / ".cache"
INSTALL_SECONDS = 900


class NotInstalledError(Exception):
    """The tools cannot be had here; the message says why, in one sentence."""


class Environment:
    """A virtual environment with the pinned tools.

    PyTorch and what else the notebooks import are not downloaded again: this environment's packages are
    found after its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def is_ready(self) -> bool:
        """Whether it holds the tools in the versions that are asked for now."""
        return self._stamp.is_file() and self._stamp.read_bytes() == REQUIREMENTS.read_bytes()

    @property
    def _stamp(self) -> Path:
        """What was installed."""
        return self._folder / "installed.txt"

    def program(self, name: str) -> str:
        """The path of one of its commands."""
        return str(self._folder / "bin" / name)

    def variables(self, home: Path) -> dict[str, str]:
        """The surroundings of a command: its own programs first, and no settings of the person's."""
        return {
            **os.environ,
            "PATH": f"{self._folder / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
            "HOME": str(home),
            "IPYTHONDIR": str(home / "ipython"),
            "JUPYTER_CONFIG_DIR": str(home / "jupyter"),
            "JUPYTER_DATA_DIR": str(home / "jupyter_data"),
            "JUPYTER_RUNTIME_DIR": str(home / "jupyter_run"),
        }

    def install(self) -> None:
        """Make it.

        Raises:
            NotInstalledError: The package index cannot be reached, or has other versions only.
        """
        venv.create(self._folder, clear=True, with_pip=True)
        command = [self.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            done = subprocess.run(
                [*command, "-r", str(REQUIREMENTS)],
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotInstalledError(
                f"nbgrader and Otter could not be installed within {INSTALL_SECONDS} s. Try again later."
            ) from None
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            said = (errors or done.stderr.splitlines() or ["pip said nothing"])[0]
            raise NotInstalledError(
                f"nbgrader and Otter could not be installed from the package index ({said}). "
                "Connect to it and run the same command again."
            )
        own = Path(self._folder, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}")
        packages = sysconfig.get_paths()["purelib"]
        # a .pth file's folders come after the environment's own packages
        (own / "site-packages" / "zz_after_own.pth").write_text(packages + "\n", encoding="utf-8")
        self._stamp.write_bytes(REQUIREMENTS.read_bytes())


def tools_environment(*, install: bool = True) -> Environment:
    """The environment with the tools, which is made on first use.

    Raises:
        NotInstalledError: It is not there and cannot be made, or is not to be.
    """
    found = Environment(CACHE / f"python{sys.version_info.major}.{sys.version_info.minor}")
    if not found.is_ready:
        if not install:
            raise NotInstalledError(
                "nbgrader and Otter are not installed. Install them: python -m benchmarks peers"
            )
        print(f"Installing nbgrader and Otter into {found.program('')} (once) ...", flush=True)
        found.install()
    return found
