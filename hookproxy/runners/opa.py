"""Runs a hook that is a rule of an Open Policy Agent: posts the input document to its data API.

The rule's value is a boolean, or an object with `allow` and perhaps a `reason`. A rule that is undefined for an input
gives no result, and that is a failure: OPA answers so as well to a rule that it does not have.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.hooks import Document, Ended, HookResult, HookSpec
from . import http, policy_result
from .runner import HookFailed, Report, StatefulRunner


def open_runner(hooks: list[HookSpec], report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. The connections are those of HTTP hooks, with their limits."""
    posts = http.open_runner(hooks, report)

    async def run_opa_hook(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        if raw_json.fields(bytes(document.stdin))["groups"] == msgspec.Raw(b"null"):
            return HookResult(Ended.FAILED, detail=policy_result.GROUPS_IN_DOUBT)
        body = b'{"input":%b}' % bytes(document.stdin).strip()
        result = await posts.run(spec, replace(document, stdin=body), env)
        if result.ended is not Ended.EXITED or result.cut:
            return result
        try:
            return replace(result, stdout=_read(spec, result.stdout))
        except HookFailed as failure:
            return replace(result, ended=Ended.FAILED, stdout=b"", detail=str(failure))

    return StatefulRunner(run_opa_hook, posts.aclose)


def _read(spec: HookSpec, body: bytes) -> bytes:
    """The hook's output for OPA's response. Raises HookFailed."""
    try:
        members = raw_json.fields(body)
        result = bytes(members["result"]).strip() if "result" in members else None
        values = raw_json.fields(result) if result is not None and result.startswith(b"{") else {}
        reason = raw_json.text(values["reason"]) if "reason" in values else ""
    except (ValueError, RecursionError) as error:
        raise policy_result.failed(f"answered with JSON that cannot be read: {error}") from None
    if result is None:
        raise policy_result.failed("has no result for this call: there is no such rule, or it is undefined")
    allow = bytes(values.get("allow", msgspec.Raw(b"null"))).strip() if result.startswith(b"{") else result
    if allow not in (b"true", b"false"):
        raise policy_result.failed("gave a result that is neither a boolean nor an object with a boolean `allow`")
    if reason is None:
        raise policy_result.failed("gave a `reason` that is not a text")
    return policy_result.output(spec, allowed=allow == b"true", reason=reason)
