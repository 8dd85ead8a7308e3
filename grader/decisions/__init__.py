"""People's decisions about grades: marks by spreadsheet or one by one, deadlines, absences."""
