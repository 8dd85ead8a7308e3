"""The commands, by who uses them: where each is, and its line in `grader --help`."""

# name -> (module:attribute, its line in `grader --help`)
STUDENTS = {
    "check": ("grader.cli.check:command", "Run the public checks on your homework."),
    "train": (
        "grader.cli.homework_commands:train_command",
        "Train your homework the way your grade will be measured.",
    ),
    "program": (
        "grader.cli.homework_commands:program_command",
        "Show which model counts, and what trains it.",
    ),
    "pack": (
        "grader.cli.homework_commands:pack_command",
        "Put together the files to hand in, and verify them.",
    ),
}
ASSISTANTS = {
    "grade": (
        "grader.cli.grading_commands:grade_command",
        "Grade a submission, a folder of them, or an LMS download.",
    ),
    "regrade": (
        "grader.cli.decision_commands:regrade_command",
        "Score stored evidence again, with the current rubric.",
    ),
    "marks": ("grader.cli.marks:command", "Enter marks and comments that people give, by spreadsheet."),
    "serve": ("grader.cli.serve:command", "Serve the pages on which people mark."),
    "claim": ("grader.cli.decision_commands:claim_command", "Record the accuracy that a student claims."),
    "rule": (
        "grader.cli.decision_commands:rule_command",
        "Decide on submissions that lack a file or cannot be graded.",
    ),
    "accept": (
        "grader.cli.decision_commands:accept_command",
        "Accept a file that was set aside as the report.",
    ),
    "received": (
        "grader.cli.decision_commands:received_command",
        "Record when a submission arrived, or that it is not late.",
    ),
    "owner": (
        "grader.cli.decision_commands:owner_command",
        "Assign a submission to a student, where its owner is unknown.",
    ),
    "oral": (
        "grader.cli.oral_command:command",
        "Pick students for oral checks, and record outcomes.",
    ),
    "requests": (
        "grader.cli.request_commands:command",
        "Take regrade requests of students, and answer them.",
    ),
    "inquiries": (
        "grader.cli.inquiry_command:command",
        "Ask students about what looks suspicious in their work.",
    ),
    "waive": ("grader.cli.decision_commands:waive_command", "Give a check's points back to the whole class."),
    "count": ("grader.cli.decision_commands:count_command", "Choose which run of a student counts."),
    "history": ("grader.cli.history:command", "Show how a student's grade came about."),
    "review": (
        "grader.cli.review_command:command",
        "Record which grades you have looked over, before a release.",
    ),
    "similar": ("grader.cli.grading_commands:similar_command", "Show which submissions have much in common."),
    "study": ("grader.cli.grading_commands:study_command", "Train a submission with different values."),
    "export": (
        "grader.cli.publishing_commands:export_command",
        "Write grades and reports in an LMS's format.",
    ),
    "push": (
        "grader.cli.push_commands:push_command",
        "Send grades and reports to Canvas or Moodle.",
    ),
    "publish": (
        "grader.cli.publishing_commands:publish_command",
        "Write the pages as a static folder or a zip.",
    ),
    "serve-students": (
        "grader.cli.serve_students:command",
        "Serve students their own reports, and take regrade requests.",
    ),
    "term": (
        "grader.cli.term_command:command",
        "Add up a course: totals, late days, who may not pass.",
    ),
    "export-person": (
        "grader.cli.privacy_commands:export_person_command",
        "Put together all that is kept about a person.",
    ),
    "forget": (
        "grader.cli.privacy_commands:forget_command",
        "Forget a person, or everybody of a past term.",
    ),
}
INSTRUCTORS = {
    "validate": (
        "grader.cli.authoring_commands:validate_command",
        "Try the checks on work whose worth is known.",
    ),
    "template": (
        "grader.cli.authoring_commands:template_command",
        "Make the students' folder from the reference.",
    ),
    "package": (
        "grader.cli.package_commands:package_command",
        "Make a package for Gradescope or another grader.",
    ),
    "new-assignment": (
        "grader.cli.authoring_commands:new_assignment_command",
        "Begin a small assignment that already validates.",
    ),
    "new-course": ("grader.cli.authoring_commands:new_course_command", "Make the folder of a course."),
    "new-term": (
        "grader.cli.authoring_commands:new_term_command",
        "Begin a term: new values, and all templates again.",
    ),
}
EVERYBODY = {
    "data": ("grader.cli.homework_commands:data_command", "Look at a data set, or write the synthetic one."),
    "doctor": ("grader.cli.doctor:command", "Show what this machine can do, and what it lacks."),
    "schema": ("grader.cli.publishing_commands:schema_command", "Print the JSON schema of results.json."),
}
GROUPS = {
    "For students": STUDENTS,
    "For teaching assistants": ASSISTANTS,
    "For instructors": INSTRUCTORS,
    "For everybody": EVERYBODY,
}
COMMANDS = {**STUDENTS, **ASSISTANTS, **INSTRUCTORS, **EVERYBODY}
