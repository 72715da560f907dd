"""The model file: read and write its metadata, its tokens and its ledger."""
