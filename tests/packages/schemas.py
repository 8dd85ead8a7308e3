"""What other graders accept, by their documentation."""

import json
from pathlib import Path
from typing import Any

import jsonschema


def require_valid(kind: str, document: dict[str, Any]) -> None:
    """Fail where the other grader would not take the document.

    Args:
        kind: `gradescope`, `container` or `prairielearn`.
        document: Without what the tests added.
    """
    name = "prairielearn" if kind == "prairielearn" else "gradescope"
    schema = json.loads((Path(__file__).parent / f"{name}.schema.json").read_text("utf-8"))
    own = {key: value for key, value in document.items() if key != "printed"}
    jsonschema.validate(own, schema)
    most = 1_000_000
    assert len(json.dumps(own, ensure_ascii=False).encode()) < most
