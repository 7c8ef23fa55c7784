"""What tests of programs that use holdfast need: throwaway stores."""

from holdfast.testing.store import ScratchStore

__all__ = ["ScratchStore"]
