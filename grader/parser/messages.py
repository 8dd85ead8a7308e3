"""What both ends of a parser know: requests, the sizes of messages, and the limits of a parser."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from grader.intake.archive_pieces import CHUNK
from grader.protocol.frames import FrameLimit
from grader.sandbox.process_limits import ProcessLimits
from grader.similarity.compared_work import MOST_TENSORS, PREVIEW, SAMPLES

MODULE = "grader.parser.service"  # what the parsers' host runs
VIEWS = "--views"  # with this option, the parsers' host loads in advance what rendering needs

# --- a source in a request; the first answer is its program, the second its view for people ---------------

SOURCE_LIMITS = ProcessLimits(memory_mb=1500, cpu_seconds=30, file_mb=1, scratch_mb=16)
SOURCE = FrameLimit(document=4_000_000, arrays=100_000_000)
PROGRAM = FrameLimit(document=64_000_000, arrays=0, values=1_000_000)

# --- a file, whose bytes a parser asks for as it reads them -------------------------------------------------


class FileRequest(StrEnum):
    """What a file is opened as: `open` in the request. A request without it carries a source."""

    ARCHIVE = "archive"  # its pieces
    CHECKPOINT = "checkpoint"  # why it is not accepted
    REPORT = "report"  # the accuracy that it claims
    METADATA = "metadata"  # the rows of the list that a download holds
    CODE = "code"  # the units that are compared
    WEIGHTS = "weights"  # samples of its tensors
    FIGURES = "figures"  # its pictures
    PAGES = "pages"  # a PDF's pages as pixels


FILE_LIMITS = ProcessLimits(memory_mb=500, cpu_seconds=30, file_mb=1, scratch_mb=16)
# equal to SOURCE_LIMITS, so that a parser that waits for a source can draw a PDF instead; for that it lowers
# its own limits before it reads the file
PAGE_LIMITS = SOURCE_LIMITS

FILE_PART = FrameLimit(document=100_000, arrays=CHUNK)  # to a parser: the bytes that it asked for
PIECE = FrameLimit(document=1_000_000, arrays=CHUNK)

MOST_TOKENS = 400_000
MOST_TEXT = 4_000_000  # characters of code in all
CODE = FrameLimit(document=40_000_000, arrays=8 * MOST_TOKENS, values=1_000_000)
WEIGHTS = FrameLimit(document=1_000_000, arrays=4 * SAMPLES * MOST_TENSORS)
FIGURE = FrameLimit(document=10_000, arrays=3 * PREVIEW * PREVIEW, values=100)

MOST_PAGES = 40  # of a PDF that are drawn
MOST_COUNTED = 1_000_000  # pages of a PDF
LONGEST_SIDE = 1200  # pixels of a page: 102 dots per inch of an A4 sheet
Pixels = NDArray[np.uint8]
"""The pixels of a page: rows, columns, and red, green and blue."""
MOST_PAGE_TEXT = 6_000  # characters of a page's text
PAGE = FrameLimit(document=2_000 + 12 * MOST_PAGE_TEXT, arrays=3 * LONGEST_SIDE * LONGEST_SIDE, values=100)
