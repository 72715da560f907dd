"""The model file: its metadata, its tokens and ledger, and how they are read and written."""
