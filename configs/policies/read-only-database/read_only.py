"""Refuses SQL that is not plainly one statement that reads."""

import re

from hookproxy.hooks.api import HookInput, deny

READS = re.compile(r"(?i)\s*(select|with|show|describe|desc|explain|values|table)\b")
WRITES = re.compile(
    r"(?i)\b(insert|update|delete|merge|replace|create|alter|drop|truncate|rename|grant|revoke|call|do|exec|execute"
    r"|copy|load|import|attach|detach|vacuum|analyze|reindex|cluster|lock|set|reset|pragma|into|prepare|handler"
    r"|load_extension|writefile|dblink\w*|lo_\w+|pg_(?!get_|typeof|indexes|tables|catalog|class|stat)\w+|xp_\w+|sp_\w+|sleep)\b"
)
HIDES = re.compile(r"/\*|--|#|\\|[^\x09\x0a\x0d\x20-\x7e\xa0-\uffff]")
"""Comments and escapes: databases differ in what they run of these."""
READING_TOOLS = re.compile(
    r"(?i)(?!.*(and|or|write|update|delete|create|insert))(list|describe|get|show|read|search)([_-]\w*)?"
)


def statements(value):
    """The texts of a JSON value under names of arguments that hold SQL."""
    for name, item in value.items():
        if re.search(r"(?i)sql|quer|statement|command|script", name):
            yield item


def check(hook_input: HookInput):
    found = list(statements(hook_input.tool_input))
    tool = hook_input.tool_name
    if not found and not READING_TOOLS.fullmatch(tool):
        return deny(f"The database is read-only here, and {tool} may write. Ask the user to do it.")
    for sql in found:
        if not isinstance(sql, str):
            return deny("Pass the SQL statement as one text.")
        one = sql.strip().removesuffix(";")
        if ";" in one or HIDES.search(one):
            return deny("Pass one statement, without a second one, comments and backslashes.")
        if not READS.match(one) or WRITES.search(one):
            return deny("The database is read-only here: only statements that read. Ask the user to run this one.")
    return None
