"""Crashes: which candidates can be killed, and the runs that kill them.

The stage that uses both is `checks/gate/durability.py`.
"""
