"""Mailboxes at an IMAP server: an account's folders, and the bytes of the messages in them."""
