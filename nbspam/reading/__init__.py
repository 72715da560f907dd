"""Bytes in, messages out: the only part of nbspam that opens mail, tables and mailboxes."""
