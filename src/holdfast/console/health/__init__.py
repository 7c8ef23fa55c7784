"""What needs attention: the rules, the checks of the doctor, and what is snoozed."""
