"""Where the two may differ: the weaknesses of the reference that our core does not have, by number.

Each is either met by a rule that makes the difference vanish, or kept out of the sequences; the table says which.
"""

from typing import Any

KEPT_OUT = {
    "W1": "times are finite and grow",
    "W4": "priorities are whole and times are in seconds",
    "W5": "no two jobs of one queue become ready in one call with one priority",
    "W8": "only jobs that exist are untracked",
    "W12": "a retry names the job's own queue",
    "W14": "no job that was timed out is looked for at its worker",
    "W15": "a job whose lock was noticed as lost is left alone, or not put again afterwards",
    "W16": "a job that holds or awaits slots is not put, while throttles are looked at",
    "W20": "a failed job is put into the queue where it failed",
    "W21": "only jobs that exist are cancelled",
    "W22": "data is written as it would be written again",
    "W28": "max-job-history is 0 or at least 3",
    "W35": "due jobs are moved by a look at the head of the queue before they are counted or listed",
    "W38": "a maximum is changed only while nobody waits for a slot",
}
"""Not generated."""


def same_job(reference: Any, ours: Any) -> bool:
    """Whether two job objects are the same, but for what the rules here allow."""
    if not isinstance(reference, dict) or not isinstance(ours, dict):
        return bool(reference == ours)
    reference = dict(reference)
    if reference["state"] != "running":  # W13: a job that was given back shows its former holder
        reference["worker"], reference["expires"] = "", 0
    if reference["state"] == "scheduled" and ours["state"] == "waiting":  # W35: due, and not moved yet
        reference["state"] = "waiting"
    return reference == ours
