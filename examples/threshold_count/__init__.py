"""The whole flow in one small mechanism, for a new room to copy: CSV, schema, ledger, coin, release."""
