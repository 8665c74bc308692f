"""The worker process that evaluates policies on inputs that may take long: one request per line, one reply for each.

It exists so that a timeout can end an evaluation. It has no more memory than one needs: a policy that makes lists of
lists ends with an error, and not with the memory of the machine.
"""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Final

import msgspec

from hookproxy.model.errors import UserError
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.runners.policy import Policy, PolicyText, Reply
from hookproxy.runners.runner import HookFailed

_MEMORY: Final = 2 << 30  # bytes of address space: a message of 64 MiB as objects, several times


_TYPES: Final = ("cel", "cedar")


class _Request(msgspec.Struct):
    policy: PolicyText
    input: msgspec.Raw


@lru_cache(maxsize=1)  # the process serves one hook
def _compiled(policy: PolicyText) -> Policy:
    """The policy, compiled. Raises ConfigError."""
    if policy.type not in _TYPES:
        raise HookFailed(f"has a type that is not evaluated here: {policy.type!r}")
    spec = HookSpec("hookproxy", event=Event.PRE_TOOL_USE, **msgspec.structs.asdict(policy))
    compiled: Policy = import_module(f"hookproxy.runners.{policy.type}").compile_policy(spec)
    return compiled


def reply_to(line: bytes) -> Reply:
    """The reply to one request. Raises nothing that a request can cause."""
    try:
        request = msgspec.json.decode(line, type=_Request)
        return Reply(output=_compiled(request.policy).evaluate(bytes(request.input)).decode())
    except HookFailed as failure:
        return Reply(failure=str(failure))
    except UserError as error:
        return Reply(failure=error.message)
    except MemoryError:
        return Reply(failure="needs too much memory for this call")
    except (ValueError, RecursionError) as error:
        return Reply(failure=f"cannot read its input: {error}")


def main() -> None:
    """Serve standard input until it ends."""
    with suppress(OSError, ValueError):  # a system that has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(msgspec.json.encode(reply_to(line)) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
