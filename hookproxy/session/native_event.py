"""What the agent's own hook has reported of a call before it came: the event is claimed, and its decision counts.

The call gets the event's context: the session, the folder, the subagent. If the guard has judged it under the same
configuration, and hooks saw what they would see here, they do not run again, and the guard's record is continued here.
Rules are applied again in any case, so that nothing passes which they deny, whatever was reported (law 1). A person who
has allowed the call in the agent is not asked again, unless the administrator requires it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.decision import Decision, Proceed
from ..policy.methods import TOOLS_CALL
from .call_context import CallContext, id_of_agent

if TYPE_CHECKING:
    from ..model.hooks import Tool
    from ..model.reported_call import ReportedCall


async def claim(context: CallContext, listed: Tool | None) -> ReportedCall | None:
    """Claim the event of this call, and give it to the call; None: nobody has reported it.

    `listed` is the tool's entry in `tools/list`.
    """
    call, services, record, native = context.call, context.services, context.record, context.policy.hooks.native
    if native is None or call.mcp_method != TOOLS_CALL:
        return None
    if not native.is_away:  # true of few runs
        call.reported = await native.claim(context.event_context, listed, id_of_agent(call))
    reported = call.reported
    session = services.session  # of which it is a part may have become known just now
    if reported is not None:
        session = replace(session, id=reported.session, cwd=reported.cwd, project_dir=reported.project_dir)
    record.session = session.id
    if session is not context.event_context.session:
        context.event_context = replace(context.event_context, session=session)
    if reported is None:
        return None
    context.event_context = replace(
        context.event_context,
        tool_use_id=reported.tool_use_id or context.event_context.tool_use_id,
        agent_state=reported.state,
    )
    if not reported.decided:
        record.native = reported.record
        return reported
    context.policy.audit.take_over(record, reported.record)
    record.earlier_hooks, record.earlier_ms = raw_json.items(bytes(reported.hooks)), reported.hook_ms
    record.asked_by, record.answer, record.answered_by, record.reason = reported.approval
    record.edited = reported.edited
    if reported.before:
        record.arguments, record.final = reported.before, call.arguments
    return reported


def without_answered_request(decision: Decision, reported: ReportedCall | None) -> Decision:
    """The decision without an approval request that a person has answered in the agent with a yes."""
    request = decision.approval_request if isinstance(decision, Proceed) else None
    if (
        reported is None
        or not reported.asked
        or not isinstance(decision, Proceed)
        or request is None
        or request.managed
    ):
        return decision
    if not (set(request.chains) <= set(reported.chains) and set(request.limits) <= set(reported.exceeds)):
        return decision
    return replace(decision, approval_request=None, asked=True, chains=(*decision.chains, *request.chains))
