"""Sentences in the language of a course: catalogs, and what finds a sentence's translation in them.

Facts stay English wherever they are stored; they are translated where a page shows them.
"""

from grader.language.translation import ENGLISH, Language, Piece, available, language, require_language

__all__ = ["ENGLISH", "Language", "Piece", "available", "language", "require_language"]
