"""Turns declared messages into Python functions that encode and decode them.

Imported when the first message is met. Knows the notation and the wire, not the messages.
"""
