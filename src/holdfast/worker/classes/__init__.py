"""Workers as classes: what a program makes, subclasses and runs itself, in place of `holdfast worker`."""
