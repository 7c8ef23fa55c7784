"""The command line: one file per noun, imported when it is named."""
