"""What one student reads: the report and the pages beside it."""
