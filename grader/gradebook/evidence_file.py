"""Evidence as JSON text, and back, exactly."""

import json
from typing import Any

from pydantic_core import PydanticSerializationError

from grader.domain.errors import EngineError
from grader.domain.evidence import Evidence
from grader.files.typed_json import validator
from grader.gradebook.older_evidence import NEWEST, converted


def evidence_text(evidence: Evidence) -> str:
    """The evidence as JSON, with `NaN` and `Infinity` as Python writes them (a diverged loss is one).

    Raises:
        EngineError: A field holds something that is not of its type.
    """
    try:
        content = validator(Evidence).dump_python(evidence, mode="json", warnings=False)
    except PydanticSerializationError:
        raise EngineError(
            f"{evidence.student_id}: the evidence holds a value that is not of its type. "
            "Report this to the grader's authors."
        ) from None
    return json.dumps({"format": NEWEST, "evidence": content}, indent=1)


def evidence_from(text: str) -> Evidence:
    """What `evidence_text` was made from, by this version or an older one.

    Raises:
        ValueError: The text is something else.
    """
    content: Any = json.loads(text)
    if not isinstance(content, dict) or type(content.get("format")) is not int:
        raise ValueError("not a record of the grader")
    evidence = converted(content.get("evidence"), content["format"])
    found: Evidence = validator(Evidence).validate_python(evidence)
    return found
