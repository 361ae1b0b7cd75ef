"""Transactions: their records in `__transaction_state`."""
