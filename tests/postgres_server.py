"""A PostgreSQL server of its own for tests, which listens on a socket in a folder only."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn


def installed_in() -> Path | None:
    """Where PostgreSQL's programs are; Debian puts them in no folder of the search path."""
    places = [Path(folder) for folder in os.get_exec_path()]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next(
        (place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None
    )


@contextlib.contextmanager
def server(home: Path, lacking: Callable[[str], NoReturn]) -> Iterator[Callable[[str], str]]:
    """`address(database)`: the URL of a database of a running server, which stops at the end.

    Args:
        home: An empty folder for its files.
        lacking: Skips the test if the programs are not installed.
    """
    programs = installed_in() or lacking("postgresql")
    as_user = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        import pwd

        owner = pwd.getpwnam("nobody")
        as_user = {"user": owner.pw_uid, "group": owner.pw_gid}
        home = Path("/tmp") / f"grader-postgres-{os.getpid()}-{home.name}"
        home.mkdir(mode=0o700)
        os.chown(home, owner.pw_uid, owner.pw_gid)

    def run(program: str, *words: str) -> None:
        command = [str(programs / program), *words]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=60, **as_user)  # type: ignore[call-overload]

    data = str(home / "data")
    try:
        run("initdb", "-D", data, "-U", "ta1", "--auth=trust", "--no-sync")
        run("pg_ctl", "-D", data, "-w", "-l", str(home / "log"), "-o", f"-h '' -k {home} -F", "start")
        try:
            yield lambda database: f"postgresql://ta1@/{database}?host={home}"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
