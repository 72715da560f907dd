"""`nbspam imap`: mail at a provider."""

import click

from nbspam.cli.program import CommandFile, LazyGroup

_FILES = {
    "filter": CommandFile("imap.filter", "Judge new mail and move spam to the junk folder"),
    "learn": CommandFile("imap.learn", "Learn from what is in the junk folder and in others"),
    "watch": CommandFile("imap.watch", "Filter mail as it comes"),
}


@click.group("imap", cls=LazyGroup, files=_FILES)
def command() -> None:
    """Filter the mail of IMAP accounts, and learn from it.

    An account is a table of the config file, ~/.config/nbspam/config.toml; or it is named by its
    address, imaps://USER@HOST, and the password is asked for.

    \b
      [imap.home]
      host = "mail.example.org"
      user = "hal"
      password-command = "pass show mail"    # or password-file, token-command
      folders = ["INBOX"]                    # to filter
      ham = ["INBOX", "Archive"]             # to learn as ham what was read there
      junk = "Spam"                          # if the server marks none as \\Junk
      tls = "starttls"                       # if port 993 is not there

    Needs imapclient: pip install imapclient.  docs/imap.md has recipes for cron and systemd.
    """
