"""Modules with the names of other packages, so that a program can move by changing one import."""
