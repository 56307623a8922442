"""Codes of each Spark job."""

from __future__ import annotations

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import CHECKPOINT, SPARK, STOPPED

EXPLANATIONS: dict[Code, Explanation] = {
    Code.SPARK_SETTING: Explanation(
        "Invalid Spark setting",
        meaning="The job cannot run correctly in this Spark. The message says why, and the fix.",
        cause="""Spark Connect, a refused setting (`spark.speculation`: two attempts of one task would fence each
        other), executors whose Python is not on the driver's machine, or no Java that Spark can run on.""",
        fix=f"Correct it in spark-defaults.conf ({SPARK}), or install Java.",
    ),
    Code.SPARK_FAILED: Explanation(
        "Spark job failed",
        meaning="""A batch failed after Spark's own retries, for a reason that no other code names; the message has
        Spark's last error in plain words. If a restart of the query probably heals it (event `spark restarts`), the job
        tries that after 1, 2, 4 … 60 s, and ends after 10 minutes of failures. Unfinished work was never visible. An
        exception that one partition meets is CDC-084, and stops only that one.""",
        cause="""Most often an executor died (out of memory: see its log), the driver lost its workers, the driver's JVM
        died, or the cluster's manager ended the application.""",
        fix="""Start the job again: it continues from the group's offsets. If memory was short, lower `chunk_max_bytes`
        in the job's settings, or give the executors more.""",
    ),
    Code.CHECKPOINT_LOCATION: Explanation(
        "Checkpoint location refused",
        meaning="""The checkpoint location cannot be read or written. A starting job exits. Later the partitions
        that meet it stop, try again every 10 s, and continue by themselves. A call that hangs is given up after three
        quarters of the job's `transaction_timeout_seconds`.""",
        cause="""A folder is read-only, full, not mounted or hangs; a bucket is away; or its key may not read, list,
        write and delete below the folder.""",
        fix=f"""Correct that. On S3, executors do not have the driver's credentials: give them the instance's role, or
        `spark.executorEnv.AWS_ACCESS_KEY_ID` and `spark.executorEnv.AWS_SECRET_ACCESS_KEY`. Endpoint and region are in
        the location's query ({CHECKPOINT}).""",
    ),
    Code.TRANSACTION_TIMEOUT: Explanation(
        "Transaction timeout",
        meaning="""The brokers refuse the job's transaction timeout, so the job ends: the setting is the same for all
        partitions. It asks at its start; without the right to describe the brokers' settings, the first
        transaction shows it.""",
        cause="The job's `transaction_timeout_seconds` is more than the brokers' `transaction.max.timeout.ms`.",
        fix="Lower the one or raise the other.",
    ),
    Code.UNEXPECTED: Explanation(
        "Unexpected exception",
        meaning="""A partition, or the plan of a source topic, met an exception that no other code describes. Only that
        one stops. Nothing is lost: its position stays before the messages. It is tried again at least every 5
        minutes.""",
        cause="""A defect of this program, most often data that nothing has tested. Some are caused by the machine: a
        full disk under the job's `state_directory`, or too little memory. Those end with their cause.""",
        fix=f"""Report it with the trace, which has no row values: the logs of the driver and of the executor have it
        once (event `raw partition stopped`, in other jobs `partition stopped`; key `trace`). Upgrade once it is fixed.
        Raise the source topic's `retention.ms` in time ({STOPPED}).""",
    ),
    Code.TRANSACTION_EXPIRED: Explanation(
        "Transaction expired",
        meaning="""The brokers aborted a partition's transaction. Nothing of it is visible, nothing is lost, and it
        runs again by itself.""",
        cause="""It was open for longer than the job's `transaction_timeout_seconds`: a process was stopped, brokers
        or the checkpoint location are slow, or chunks are too large.""",
        fix="""See how long changelogs take to be stored. Lower `chunk_max_bytes` and `chunk_max_messages` in
        the job's settings, or raise the timeout.""",
    ),
    Code.RAW_PARTITION_STOPPED: Explanation(
        "Stopped raw partition",
        meaning=f"An alert: a raw partition has been stopped for 5 minutes. All others go on. {STOPPED}.",
        cause="""The label `code` names it. `cassandra-materializer status` (`cassandra-transformer status` for a
        transformer) shows message, offset, lag, fix, and the time until Kafka may delete what is unread.""",
        fix="""Do what that code's section says, then wait for the next try or run `cassandra-materializer retry`
        (`cassandra-transformer retry`).""",
    ),
}
