"""The archive's error codes: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.ARCHIVE_MESSAGE: Explanation(
        "Message cannot become a row",
        meaning="""A message is not of the schema that its header names, or has no header. The message of the error
        names partition, offset and reason, without values. Its share stops at the committed offsets: nothing is lost,
        and the job tries again after pauses of up to 5 minutes. Other shares continue.""",
        cause="""Another program wrote to the topic, its messages have another `format` than the settings say, or JSON
        has no schema in the registry.""",
        fix="""Set `on_error` for the topic in `archive.topic_settings`, and restart the job. With `bytes` the message
        becomes a row whose key and value are bytes (`cdc_archive_bytes_rows_total`), with `dead_letter` it goes to
        `archive.dead_letter_topic`, and with `skip` it is left out (`cdc_archive_refused_messages_total`).""",
    ),
    Code.ARCHIVE_LOCATION: Explanation(
        "Archive location refused",
        meaning="""A file cannot be read or written: in the archive's location, or in a worker's spool directory. A
        starting job exits. Later the shares that meet it stop, try again, and continue by themselves.""",
        cause="""A folder is read-only, full or not mounted, or its file system has no hard links, with which a file
        gets its name only once.""",
        fix="""Make `archive.location` writable for all workers, and `archive.spool_directory` on each of them, with
        free space.""",
    ),
    Code.ARCHIVE_STORE_AWAY: Explanation(
        "Archive store does not answer",
        meaning="""The store of S3 cannot be reached, answers with an error of its own (5xx), or asks to slow down, and
        some tries in a row did not help. A starting job exits. Later the shares that meet it stop, try again within 10
        seconds, and continue by themselves.""",
        cause="The network or the store is down or overloaded.",
        fix="See that the store answers workers and driver. Nothing is lost while Kafka keeps the messages.",
    ),
    Code.ARCHIVE_INTENT: Explanation(
        "Open cut cannot be finished",
        meaning="""A cut was begun: its files and their numbers of rows are stored as an intent. The messages that
        are read again, or the stored files, differ from it. The share stops before it commits anything.""",
        cause="""Retention deleted messages of the cut before it was finished, or somebody changed files of the
        location, or the group's offsets. Compaction is no cause: rows that it removed are counted.""",
        fix="""Compare the intent (`_archive/intents/TOPIC` in the location) with the topic. Restore files from a
        backup. If messages are lost, archive the topic again with another group and location.""",
    ),
    Code.ARCHIVE_LEDGER: Explanation(
        "File events and files do not fit",
        meaning="""`cassandra-archive verify` has found offsets that no file event has, or that two have, or a file that
        is missing or has other rows than its event says.""",
        cause="""Files of the location, or messages of the topic of file events, were deleted or changed.""",
        fix="""Restore them from a backup. The file events are the only list of what is archived: keep their topic
        without a limit. If nothing was changed, this is a defect.""",
    ),
    Code.ARCHIVE_TABLE: Explanation(
        "Table of the lake not registered",
        meaning="""The registrar cannot add files to a table of the catalog. The files and their events are committed:
        nothing is lost. The registrar tries again, and other tables continue.""",
        cause="""The catalog does not answer or refuses, or somebody changed the table: its columns have other numbers
        than the archive's, or the property with the offsets is gone.""",
        fix="""Correct what the message names. A table can be dropped from the catalog, without its files:
        after a restart the registrar makes it again from all file events.""",
    ),
    Code.ARCHIVE_VERSION: Explanation(
        "Schema needs another version",
        meaning="""The columns of a new schema do not fit those of the table: a field has another type, which no column
        can hold beside the one before. Its messages go to another schema version: for `iceberg` to a table that ends in
        `__v2`, for `hive` to the folder `schema_version=2`. Nothing stops, and nothing is lost.""",
        cause="""A producer registered a schema whose field changed its type, such as from int to string.""",
        fix="""Tell the readers of the table: they read both versions, or a view of both. If the change was a mistake,
        register the former type again: later messages go to the version that fits.""",
    ),
    Code.ARCHIVE_SETTING: Explanation(
        "Archive setting refused",
        meaning="A setting of the archive is missing, or does not fit what was archived before.",
        cause="""No topics are named, two topics would have one table, the location belongs to another group,
        `partitions_per_share` was changed, or the native core is missing. `check` says it of a catalog, too, that does
        not answer or refuses.""",
        fix="The message of the error says what to set.",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.KAFKA_UNREACHABLE: (Scope.RAW_PARTITION, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.PROGRAM),
    Code.REGISTRY_UNREACHABLE: (Scope.RAW_PARTITION,),
    Code.REGISTRY_REFUSED: (Scope.RAW_PARTITION,),
    Code.RAW_SKIPPED: (Scope.RAW_PARTITION,),
    Code.STATE_MISMATCH: (Scope.RAW_PARTITION, Scope.TOPIC),
    Code.ARCHIVE_MESSAGE: (Scope.RAW_PARTITION,),
    Code.ARCHIVE_LOCATION: (Scope.RAW_PARTITION, Scope.START),
    Code.ARCHIVE_STORE_AWAY: (Scope.RAW_PARTITION, Scope.START),
    Code.ARCHIVE_INTENT: (Scope.RAW_PARTITION,),
    Code.ARCHIVE_LEDGER: (Scope.COMMAND,),
    Code.ARCHIVE_TABLE: (Scope.TABLE,),
    Code.ARCHIVE_SETTING: (Scope.RAW_PARTITION, Scope.START),
    Code.ARCHIVE_VERSION: (Scope.NOTHING,),
    Code.TRANSACTION_EXPIRED: (Scope.RAW_PARTITION,),
    Code.UNEXPECTED: (Scope.RAW_PARTITION,),
    Code.RAW_PARTITION_STOPPED: (Scope.RAW_PARTITION,),
    Code.SPARK_SETTING: (Scope.START,),
    Code.SPARK_FAILED: (Scope.PROGRAM,),
    Code.TRANSACTION_TIMEOUT: (Scope.PROGRAM,),
}
"""How much of the program each code stops."""
