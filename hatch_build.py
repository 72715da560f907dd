"""Puts the manual pages into the wheel, made from the commands.

They are made at each build rather than kept in the repository, so they cannot differ from `--help`.
It needs click, which is why click is among the requirements of the build.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SharedFiles(BuildHookInterface[Any]):
    """The hook of hatchling's that `pyproject.toml` names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files into a temporary folder, and name them for the wheel."""
        sys.dont_write_bytecode = True  # the source tree may be read-only, or somebody else's
        sys.path.insert(0, self.root)

        from nbspam.cli.manual import manual_pages

        # Builds of the same source are the same: https://reproducible-builds.org/specs/
        now = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
        pages = manual_pages(time.strftime("%Y-%m-%d", time.gmtime(now)))
        files = {f"share/man/man1/{name}": text for name, text in pages.items()}
        self._folder = tempfile.TemporaryDirectory(prefix="nbspam-build-")
        for path, text in files.items():
            file = Path(self._folder.name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(file)] = path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder."""
        self._folder.cleanup()
