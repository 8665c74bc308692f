"""One hook for several agents: writes a hook file of one system as another's, and runs a hook inside of another agent.

It knows agents only by `dialects/agent_side`. Law 3: whatever an agent cannot express is reported, and never lets a
call pass that a hook wanted changed or shown to a person.
"""
