"""The pages of oral checks: five questions about a student's own work, and notes for the examiner."""
