"""A folder with one sub-folder per class, which is named after the class."""

from collections.abc import Iterator
from pathlib import Path

from nbspam.errors import Remedy
from nbspam.labels import normal_label
from nbspam.reading.folder import folder_messages, is_given_itself, is_left_out, is_maildir
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind
from nbspam.urls import real_name


def _has_class_folders(source: Source, _: ReadingOptions) -> bool:
    return source.is_folder and bool(_folders(source.path)) and not is_maildir(source.path)


def _folders(path: Path) -> list[Path]:
    return [p for p in sorted(path.iterdir()) if p.is_dir() and not p.name.startswith(".")]


def _read_class_folders(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    for entry in sorted(source.path.iterdir()):
        is_message = entry.is_file() and not entry.name.startswith(".")
        if is_message and not is_given_itself(entry, request):
            request.skips.note(
                str(entry), "the file is in no folder of a class", Remedy.GIVE_OUTSIDE_LABEL
            )
    root = real_name(source.path)
    for folder in _folders(source.path):
        if is_given_itself(folder, request) or is_left_out(folder, root, request):
            continue
        if label := normal_label(folder.name):
            yield from folder_messages(folder, request._replace(label=label), source.path)
        else:
            request.skips(str(folder), "the folder's name has no printable character")


CLASS_FOLDERS = SourceKind(Labels.ON_REQUEST, _has_class_folders, _read_class_folders)
