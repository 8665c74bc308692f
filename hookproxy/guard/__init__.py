"""One policy for an agent's own tools: a resident process of the user that judges what agents' hooks report.

It promises that an act is judged and recorded before its agent hears that it may go on. It knows nothing of servers and
pipes: `session/` judges those calls.
"""
