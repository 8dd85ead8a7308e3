"""The question of PrairieLearn's that a package belongs to: its description and its page.

It names the image, the time and what students upload, as PrairieLearn documents `externalGradingOptions`. It
decides nothing about grading.
"""

import json
import uuid
from collections.abc import Iterable
from html import escape

from grader.domain.assignment import Assignment
from grader.domain.submission import Role
from grader.packages.package_contents import assignment_key
from grader.packages.package_settings import PackageSettings

MOST_MINUTES = 10.0  # that PrairieLearn allows
_NAME, _SUFFIXES = "homework", (".py", ".ipynb")


def question_description(
    assignment: Assignment, settings: PackageSettings, *, image: str, entry: str, secret: str
) -> str:
    """`info.json`.

    Args:
        image: The name of the image that the Containerfile makes.
        entry: The script in it.
        secret: The course's, of which the question's number is derived: the same for the same assignment.
    """
    number = uuid.UUID(assignment_key(secret, f"question of {assignment.id}")[:32], version=4)
    document = {
        "uuid": str(number),
        "title": assignment.title,
        "topic": "Homework",
        "type": "v3",
        "gradingMethod": "External",
        "externalGradingOptions": {
            "enabled": True,
            "image": image,
            "entrypoint": entry,
            "timeout": round(settings.minutes * 60),
            "enableNetworking": False,
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def question_page(assignment: Assignment) -> str:
    """`question.html`: one file of code is asked for, and each file of the assignment's own roles."""
    asked = {file.role: file for file in assignment.asked_files}
    code = [f"{_NAME}{suffix}" for suffix in _SUFFIXES if suffix in asked[Role.CODE].suffixes]
    others = [
        asked[role].name(_NAME, suffix) for role in assignment.own_roles for suffix in asked[role].suffixes
    ]
    also = f"  <p>Upload these, too, as far as you have them:</p>\n{_list(others)}\n" if others else ""
    return f"""<pl-question-panel>
  <p>{escape(assignment.title)}</p>
  <p>Upload one of these files:</p>
{_list(code)}
{also}</pl-question-panel>
<pl-file-upload file-names="" optional-file-names="{escape(",".join([*code, *others]))}"></pl-file-upload>
<pl-submission-panel>
  <pl-external-grader-results></pl-external-grader-results>
  <pl-file-preview></pl-file-preview>
</pl-submission-panel>
"""


def _list(names: Iterable[str]) -> str:
    items = "".join(f'<li><code dir="ltr">{escape(name)}</code></li>' for name in names)
    return f"  <ul>{items}</ul>"
