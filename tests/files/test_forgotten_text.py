"""Texts lose what they say about a person, and every other byte stays."""

import gzip
import json
from dataclasses import replace

import pytest

from grader.domain.mentions import Mentions
from grader.files.forgotten_text import (
    TableNames,
    compressed_without,
    decoded,
    encoded,
    json_lines_without,
    json_without,
    names_in_table,
    table_without,
)

HERS = Mentions(frozenset({"400101204"}), frozenset({"Jane Doe"}))


def test_records_of_lists_and_tables_go_and_the_layout_stays() -> None:
    document = {
        "submissions": [{"student_id": "400101204", "total": 1}, {"student_id": "400101205", "total": 2.5}],
        "grades": {"400101204": 1, "400101205": 2},
        "pages": {"students/400101204/report.html": {}, "students/400101205/report.html": {}},
        "team": ["400101204", "400101205"],
        "why": "like Jane Doe",
    }
    text = json.dumps(document, indent=1) + "\n"
    expected = {
        "submissions": [{"student_id": "400101205", "total": 2.5}],
        "grades": {"400101205": 2},
        "pages": {"students/400101205/report.html": {}},
        "team": [],
        "why": "like forgotten",
    }
    assert json_without(text, HERS) == json.dumps(expected, indent=1) + "\n"
    others = json.dumps({"a": [1.0, "é"]}, indent=2)
    assert json_without(others, HERS) == others


def test_counts_of_a_download_go_down_with_its_files() -> None:
    files = [{"name": "a", "fate": "matched", "student_id": "400101204", "count": 2}]
    files.append({"name": "b", "fate": "matched", "student_id": "400101205", "count": 1})
    account = {"matched": 3, "superseded": 0, "refused": 0, "files": files, "notes": []}
    found = json.loads(json_without(json.dumps({"download": account}), HERS))["download"]
    assert found["matched"] == 1 and len(found["files"]) == 1 and "forgotten" in found["notes"][0]


def test_lines_and_rows_go() -> None:
    kept = '{"student_id": "400101205"}\n'
    assert json_lines_without('{"student_id":"400101204"}\n' + kept + "torn 400101204\n", HERS) == kept
    table = 'id,name,note\r\n400101204,"Doe\nJane",x\r\n400101205,B,"as 400101204, twice"\r\n'
    assert table_without(table, HERS) == 'id,name,note\r\n400101205,B,"as forgotten, twice"\r\n'


def test_names_beside_an_id_are_learned() -> None:
    table = "First name,Last name,ID number\nJane,van Doe,400101204\nB,C,400101205\n"
    assert names_in_table(table, HERS) == TableNames(frozenset({"Jane van Doe"}), frozenset({"B C"}))
    assert names_in_table("Student,ID\nDoe Ann,400101204\n", HERS).theirs == {"Doe Ann"}
    nameless = "Student,ID\nDoe Ann,400101204\nDoe Ann,\nJane Doe,7\n"
    assert names_in_table(nameless, HERS) == TableNames(frozenset({"Doe Ann"}), frozenset({"Jane Doe"}))
    assert names_in_table("", HERS) == TableNames()
    with_others = replace(HERS, others=frozenset({"400101205"}))
    left = "Student,ID\nAnn B,400101205\nJane Doe,400101299\n"  # by a command that was cut short
    assert names_in_table(left, with_others).others == {"Ann B", "Jane Doe"}


def test_the_encoding_stays() -> None:
    content = "400101204\tA\r\n1\tB\r\n".encode("utf-16")
    text, encoding = decoded(content)
    assert encoded(text, encoding, content) == content
    with pytest.raises(ValueError):
        decoded(b"\x00\x01")


def test_a_view_loses_mentions_and_no_lines() -> None:
    view = {"file": "homework.py", "cells": [{"lines": [[["", "# thanks to 400101204"]], []]}]}
    content = gzip.compress(json.dumps(view).encode(), mtime=0)
    found = json.loads(gzip.decompress(compressed_without(content, HERS)))
    assert found["cells"][0]["lines"] == [[["", "# thanks to forgotten"]], []]
    other = gzip.compress(b'{"a": 1}', mtime=0)
    assert compressed_without(other, HERS) == other
    with pytest.raises(ValueError):
        compressed_without(b"no gzip", HERS)
