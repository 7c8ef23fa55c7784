"""Running a job's code in a program of one's own, without a worker. `python-api` 5 says which callable that is."""

from typing import Any

from holdfast.code.steps import await_steps, run_steps

# What finds and runs code is loaded when a job is performed: most programs only put jobs.


class Performing:
    """How a blocking client runs the code of a job."""

    def perform(self) -> Any:
        """Run the job's code here, with its middleware; answers what it returned, and raises what it raises.

        The class is imported, again if its file changed, and the attribute named like the queue is called with this job,
        else `process`, else `perform`; a function job gets its own arguments. A job for which there is nothing to run
        fails: in `<queue>-<Error>` if importing raised, in `<queue>-method-missing`. The job is never completed, that is
        for its code to do. Raises UsageError for `async def`, which only a job of an AsyncClient can await, and LeaseLost.
        """
        from holdfast.client.jobs import code as code_of_jobs

        code = run_steps(code_of_jobs.ready(self, can_await=False))
        return None if code is None else code_of_jobs.run(self, code)

    def process(self) -> None:
        """The same, but what the code raises fails the job, in group `<queue>-<Error>` with the traceback.

        KeyboardInterrupt, SystemExit and their like are raised on, and record nothing. Raises LeaseLost if the job is not
        held any more, so that it cannot be failed.
        """
        from holdfast.client.jobs import code as code_of_jobs

        code = run_steps(code_of_jobs.ready(self, can_await=False))
        if code is not None:
            try:
                code_of_jobs.run(self, code)
            except Exception as error:
                run_steps(code_of_jobs.failed(self, error))


class AsyncPerforming:
    """The same for an async client: code that is `async def` is awaited, other code runs in this thread."""

    async def perform(self) -> Any:
        """Run the job's code here, with its middleware; answers what it returned, and raises what it raises.

        As `Job.perform`. What plain code returns is awaited if it can be, so that it may return `job.complete()`.
        """
        from holdfast.client.jobs import code as code_of_jobs

        code = await await_steps(code_of_jobs.ready(self, can_await=True))
        return None if code is None else await code_of_jobs.run_async(self, code)

    async def process(self) -> None:
        """The same, but what the code raises fails the job. As `Job.process`."""
        from holdfast.client.jobs import code as code_of_jobs

        code = await await_steps(code_of_jobs.ready(self, can_await=True))
        if code is not None:
            try:
                await code_of_jobs.run_async(self, code)
            except Exception as error:
                await await_steps(code_of_jobs.failed(self, error))
