"""Mailboxes of mail that one server received."""


def write_mailboxes(folder, texts, n):
    """Write n mails of each class into `folder/CLASS.mbox`; texts: class -> text.  Return paths."""
    for label, text in texts.items():
        mails = (
            f"From ann@example.org Sat Nov 28 10:00:00 2026\nReceived: by mx.example.org\n"
            f"Message-ID: <{label}{i}@example.net>\nSubject: {text}\n\n{text} {label}{i}\n\n"
            for i in range(n)
        )
        (folder / f"{label}.mbox").write_text("".join(mails))
    return [folder / f"{label}.mbox" for label in texts]
