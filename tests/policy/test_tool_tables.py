"""Which `[tools.X]` are about no tool that the server lists."""

from __future__ import annotations

from hookproxy.model.aliases import Alias
from hookproxy.model.secret_settings import SecretSettings, SecretsOff, SecretsRestore
from hookproxy.model.settings import Settings
from hookproxy.model.shown_tools import ShownTool
from hookproxy.policy.tool_tables import idle_secret_tables, is_about, unknown_tools


def test_what_hooks_call_a_tool_counts_in_any_case_and_what_the_agent_sees_does_not() -> None:
    settings = Settings(
        aliases=(Alias("Run ", "Bash"), Alias("other", "Bash")),
        shown_tools=(ShownTool("Run"), ShownTool("run"), ShownTool("other")),
    )
    assert unknown_tools(settings, ["run"]) == ("other", "Run")
    assert unknown_tools(settings, ["run", "other", "Run"]) == ()


def test_tables_of_secrets_about_this_server_that_name_no_listed_tool_are_idle() -> None:
    settings = SecretSettings(
        restore=(SecretsRestore("log_in"), SecretsRestore("login"), SecretsRestore("sign_*", server="files")),
        off=(SecretsOff("hash_*"), SecretsOff("hash"), SecretsOff("other", server="mail")),
    )
    assert idle_secret_tables(settings, "files", ["log_in", "hash"]) == (
        "[[secrets.restore]] login",
        "[[secrets.restore]] sign_*",
        "[[secrets.off]] hash_*",
    )
    assert idle_secret_tables(settings, "mail", ["log_in", "login", "hash", "hash_of"]) == ("[[secrets.off]] other",)
    assert idle_secret_tables(None, "files", []) == ()


def test_a_table_is_about_what_its_whole_glob_names() -> None:
    assert is_about("log_*", "log_in")
    assert not is_about("log_*", "blog_in")
    assert not is_about("log", "log_in")
