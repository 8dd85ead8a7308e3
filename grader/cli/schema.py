"""`grader schema`: the contract of results.json."""

import click


@click.command("schema")
def command() -> None:
    """Print the JSON schema of results.json, for programs that read grades.

    \b
    Example:
      grader schema > results.schema.json
    """
    from grader.reports.results_json.results_file import results_schema_text

    click.echo(results_schema_text(), nl=False)
