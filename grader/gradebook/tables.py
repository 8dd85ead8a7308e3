"""The tables of the gradebook as the statements use them. `migrations` makes them."""

from sqlalchemy import Column, Float, ForeignKey, Integer, LargeBinary, MetaData, Table, Text

METADATA = MetaData()

# One row per examination of a submission. `evidence` is the record itself, the text of evidence_file.py; the
# other columns repeat what is asked for without reading it.
RUNS = Table(
    "runs",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("student_id", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("status", Text),
    Column("submission_digest", Text, nullable=False),
    Column("assignment_digest", Text, nullable=False),
    Column("engine", Text, nullable=False),
    Column("data_digest", Text),
    Column("evidence", Text, nullable=False),
)

# Images are in the book, so that a run and its images are there together or not at all, also on PostgreSQL;
# by content, because students share the hidden test images of the predictions.
IMAGES = Table(
    "images",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
RUN_IMAGES = Table(
    "run_images",
    METADATA,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("digest", ForeignKey("images.digest"), nullable=False),
)

# One row per edit (grader.domain.edit). `kind` says which class of edits it is, and `content` holds as JSON
# the fields that are that class's own. `student_id` is null for the whole class. Books that are older have a
# table `edits` as well, from which these were converted: it is kept as it was, and nothing reads it.
EDITS = Table(
    "decisions",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("student_id", Text),
    Column("kind", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("run", Integer),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("why", Text, nullable=False),
)

# One row, as old as the table: a random text that makes what is drawn for this class its own.
CLASS_SALT = Table(
    "class_salt",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("salt", Text, nullable=False),
)

# One row per change of a student's total (grader.domain.total).
TOTALS = Table(
    "totals",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("student_id", Text, nullable=False),
    Column("points", Float),
    Column("decided", Float, nullable=False),
    Column("awaiting", Float, nullable=False),
    Column("maximum", Float, nullable=False),
    Column("status", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("final", Float),
    Column("lateness", Text),
)

# One row per download that was graded: the account of its files, as JSON. Of each source, the last counts.
DOWNLOADS = Table(
    "downloads",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("assignment_id", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("record", Text, nullable=False),
)
