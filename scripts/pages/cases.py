"""The keys of a file with cases, from the tables that read it."""

# mypy: disable-error-code="import-not-found"

from tables import row

from hookproxy.config.pydantic_models import model_of
from hookproxy.policy_tests import tables as of_cases

TITLES = {
    of_cases.Case: "[[case]]",
    of_cases.Step: "[[case]] and [[case.steps]]",
    of_cases.Expect: "expect",
    of_cases.CaseFile: "At the top",
}
"""In the order of the page."""


def case_keys() -> str:
    """A table for each."""
    of_steps = set(model_of(of_cases.Step).model_fields)
    sections = []
    for table, title in TITLES.items():
        fields = model_of(table).model_fields
        shown = {name: field for name, field in fields.items() if table is not of_cases.Case or name not in of_steps}
        rows = [row(f"`{name}`", field.description or "") for name, field in shown.items()]
        sections.append("\n".join([row(title, "meaning"), row("---", "---"), *rows]))
    return "\n\n".join(sections)
