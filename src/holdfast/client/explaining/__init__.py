"""Why a job runs or does not."""
