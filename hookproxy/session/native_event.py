"""What the agent's own hook has told of a call before the call came: the event is claimed, and its decision counts.

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
    from ..model.told_call import ToldCall


async def claim(context: CallContext, listed: Tool | None) -> ToldCall | None:
    """Claim the event of this call, and give it to the call; None: nobody has told of it.

    `listed` is the tool's entry in `tools/list`.
    """
    call, services, record, native = context.call, context.services, context.record, context.policy.hooks.native
    if native is None or call.mcp_method != TOOLS_CALL:
        return None
    if not native.is_away:  # true of few runs
        call.told = await native.claim(context.event_context, listed, id_of_agent(call))
    told = call.told
    session = services.session  # of which it is a part may have become known just now
    if told is not None:
        session = replace(session, id=told.session, cwd=told.cwd, project_dir=told.project_dir)
    record.session = session.id
    if session is not context.event_context.session:
        context.event_context = replace(context.event_context, session=session)
    if told is None:
        return None
    context.event_context = replace(
        context.event_context,
        tool_use_id=told.tool_use_id or context.event_context.tool_use_id,
        agent_state=told.state,
    )
    if not told.decided:
        record.native = told.record
        return told
    context.policy.audit.take_over(record, told.record)
    record.earlier_hooks, record.earlier_ms = raw_json.items(bytes(told.hooks)), told.hook_ms
    record.asked_by, record.answer, record.answered_by, record.reason = told.approval
    record.edited = told.edited
    if told.before:
        record.arguments, record.final = told.before, call.arguments
    return told


def without_answered_request(decision: Decision, told: ToldCall | None) -> Decision:
    """The decision without an approval request that a person has answered in the agent with a yes."""
    request = decision.approval_request if isinstance(decision, Proceed) else None
    if told is None or not told.asked or not isinstance(decision, Proceed) or request is None or request.managed:
        return decision
    if not (set(request.chains) <= set(told.chains) and set(request.limits) <= set(told.exceeds)):
        return decision
    return replace(decision, approval_request=None, asked=True, chains=(*decision.chains, *request.chains))
