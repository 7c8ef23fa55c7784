"""The program that starts a warden: `python launch.py DIRECTORY PROGRAM DURABILITY LINGER`.

It is run by path, without site-packages: a warden needs a few files of this package and the standard library, and
starts in a quarter of the time that an import of all of holdfast takes.
"""

import sys
import types
from pathlib import Path


def main() -> None:
    package = types.ModuleType("holdfast")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["holdfast"] = package

    from holdfast.store import warden

    warden.main(sys.argv[1:])


if __name__ == "__main__":
    main()
