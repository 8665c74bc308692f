"""docker agent."""

from .input import DOCKER_AGENT, DOCKER_AGENT_CURRENT

__all__ = ["DOCKER_AGENT", "DOCKER_AGENT_CURRENT"]
