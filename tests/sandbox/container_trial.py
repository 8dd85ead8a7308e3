"""Start a host as a package does, and print what a child is and can do: `container_trial.py REQUEST`.

The request is JSON: `closed` (a folder that the child may not enter), `sabotage` (a step that is left out),
`in_package`, and `codes`, which the child executes one after the other.
"""

import json
import sys
from pathlib import Path

from grader.domain.errors import SandboxError
from grader.sandbox import Host, ProcessLimits

sys.path.insert(0, str(Path(__file__).parent))
import sandbox_child


def main() -> None:
    """Print `{"level", "layers", "answers"}`, or `{"refused"}`."""
    request = json.loads(sys.argv[1])
    limits = ProcessLimits(memory_mb=200, file_mb=4, processes=8)
    if request.get("sabotage"):
        step = sandbox_child.SABOTAGES.index(request["sabotage"])
        limits = ProcessLimits(open_files=sandbox_child.FIRST_SABOTAGE + step)
    try:
        host = Host.start(
            "sandbox_child",
            env={"PYTHONPATH": str(Path(__file__).parent)},
            hidden=(Path(request["closed"]),),
            in_package=request.get("in_package", True),
            timeout=60,
        )
        with host, host.spawn(limits) as child:
            answers = []
            for code in request.get("codes", ()):
                child.writer.write(json.dumps({"code": code}).encode() + b"\n")
                child.writer.flush()
                answers.append(json.loads(child.reader.read(65_536)))
            proof = child.attestation
        answer = {"level": proof.level, "layers": proof.layers, "missing": proof.missing, "answers": answers}
    except SandboxError as error:
        answer = {"refused": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
