"""The release of grades: what must be settled before, what was released, and the pages for students."""
