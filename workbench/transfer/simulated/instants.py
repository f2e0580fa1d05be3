"""What comes first of all that happens at one instant of a transfer."""

DEATH, FLOW_ENDS, FLOW_JOINS, SETTLE = -1, 2, 3, 9
"""A failure comes first, then ends, then starts; rates are shared out anew when all of it is done. SimPy's own URGENT
(0) and NORMAL (1) events, which carry the consequences of each, come in between."""
