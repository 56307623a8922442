"""Every error code of librdkafka and of Kafka's brokers: its kind, what it means, and what to do.

Codes of librdkafka begin with an underscore. A test compares the table with the installed client.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """The remedy of an error. The value is the fix of errors that have no fix of their own."""

    TRANSIENT = (
        "None if it ends within a minute: the program tries again. Otherwise start the brokers that are down, or "
        "correct kafka.bootstrap_servers and its security settings."
    )
    """A later try heals it."""
    EXPIRED = "None: a new producer continues from the committed position."
    """A new client heals it at once: the broker has forgotten the producer, and no other instance has it."""
    RIGHTS = "Grant the program's user the rights listed in docs/guides/secure.md."
    CONFIGURATION = "Correct the setting of the program, the topic or the brokers that the error names."
    TOPIC = (
        "None if the broker has just started. Otherwise the topic was deleted or created again, or its partitions have "
        "changed: see docs/guides/recover.md."
    )
    """The topic or partition is missing or is another one now."""
    TOO_LARGE = "Raise max.message.bytes of the topic, and set its compression.type to producer."
    FENCED = (
        "None if this occurs once: the newer instance continues from the committed position. If it repeats, two "
        "programs share materializer.group_id, or a command runs beside the job: stop one of them."
    )
    """Another instance has taken over."""
    FATAL = (
        "Start the program again: its position has not moved past the refused request. If it recurs, look into the "
        "brokers' logs and report it."
    )
    """A defect of a client or a broker."""
    ANSWER = "None: this is an answer, not a failure."
    """The caller expects it."""


class Known(NamedTuple):
    """An error code."""

    # The kind, which decides what a program does.
    kind: Kind
    # Words that follow a colon in an error.
    meaning: str
    # The fix, if that of the kind does not fit.
    own_fix: str = ""

    @property
    def fix(self) -> str:
        return self.own_fix or self.kind.value


_LOGIN = "Correct kafka.sasl_mechanism, kafka.sasl_username and kafka.sasl_password, or the user in the brokers."
_CERTIFICATES = "Correct kafka.security_protocol, kafka.ssl_ca_file and kafka.ssl_identity_file."
_REPLICAS = "Start the brokers that are down, or lower min.insync.replicas of the topic."
_DISK = "Look at the broker's disks and log: it answers again once its log folder is usable."
_BROKER = "Look into the brokers' logs: they have the cause."
_VERSION = "Upgrade the brokers: docs/guides/install.md names the versions that work."

UNKNOWN = Known(Kind.FATAL, "Kafka answers with an error that this version does not know")

ERRORS: dict[str, Known] = {
    # librdkafka's own
    "_BAD_MSG": Known(Kind.FATAL, "a message or an answer cannot be read"),
    "_BAD_COMPRESSION": Known(Kind.FATAL, "compressed messages cannot be read"),
    "_DESTROY": Known(Kind.TRANSIENT, "the client is being closed"),
    "_FAIL": Known(Kind.TRANSIENT, "the communication with a broker failed"),
    "_TRANSPORT": Known(Kind.TRANSIENT, "the connection to a broker was lost or refused"),
    "_CRIT_SYS_RESOURCE": Known(
        Kind.FATAL,
        "the machine has no threads or memory left for the client",
        "Give the program more memory or threads.",
    ),
    "_RESOLVE": Known(
        Kind.TRANSIENT,
        "the name of a broker is not found",
        "None if the name service is just away. Otherwise correct kafka.bootstrap_servers or the brokers' "
        "advertised.listeners.",
    ),
    "_MSG_TIMED_OUT": Known(Kind.TRANSIENT, "a message was not acknowledged in time"),
    "_PARTITION_EOF": Known(Kind.ANSWER, "the end of the partition is reached"),
    "_UNKNOWN_PARTITION": Known(Kind.TOPIC, "the partition does not exist"),
    "_FS": Known(Kind.CONFIGURATION, "a file of the client cannot be read", _CERTIFICATES),
    "_UNKNOWN_TOPIC": Known(Kind.TOPIC, "the topic does not exist"),
    "_ALL_BROKERS_DOWN": Known(Kind.TRANSIENT, "no broker can be reached"),
    "_INVALID_ARG": Known(Kind.CONFIGURATION, "the client does not accept a setting or an argument"),
    "_TIMED_OUT": Known(Kind.TRANSIENT, "no broker answered in time"),
    "_QUEUE_FULL": Known(Kind.TRANSIENT, "the client's queue is full"),
    "_ISR_INSUFF": Known(Kind.TRANSIENT, "too few replicas of the partition are in sync", _REPLICAS),
    "_NODE_UPDATE": Known(Kind.TRANSIENT, "the address of a broker is changing"),
    "_SSL": Known(Kind.CONFIGURATION, "no encrypted connection to the brokers can be made", _CERTIFICATES),
    "_WAIT_COORD": Known(Kind.TRANSIENT, "the client waits for a coordinator"),
    "_UNKNOWN_GROUP": Known(Kind.CONFIGURATION, "the consumer has no group"),
    "_IN_PROGRESS": Known(Kind.TRANSIENT, "the same request is under way"),
    "_PREV_IN_PROGRESS": Known(Kind.TRANSIENT, "an earlier request is under way"),
    "_EXISTING_SUBSCRIPTION": Known(Kind.FATAL, "the consumer reads the topic already"),
    "_ASSIGN_PARTITIONS": Known(Kind.ANSWER, "partitions are being assigned"),
    "_REVOKE_PARTITIONS": Known(Kind.ANSWER, "partitions are being taken away"),
    "_CONFLICT": Known(Kind.CONFIGURATION, "two settings of the client exclude each other"),
    "_STATE": Known(Kind.FATAL, "the client is in a state that does not allow the request"),
    "_UNKNOWN_PROTOCOL": Known(Kind.CONFIGURATION, "the client does not know the protocol"),
    "_NOT_IMPLEMENTED": Known(Kind.FATAL, "the client does not have this function"),
    "_AUTHENTICATION": Known(Kind.RIGHTS, "the brokers refuse the login", _LOGIN),
    "_NO_OFFSET": Known(Kind.ANSWER, "no offset is stored"),
    "_OUTDATED": Known(Kind.TRANSIENT, "the request belongs to an earlier assignment"),
    "_TIMED_OUT_QUEUE": Known(Kind.TRANSIENT, "the request was not sent in time, because no broker is connected"),
    "_UNSUPPORTED_FEATURE": Known(Kind.CONFIGURATION, "the brokers lack a feature that the program needs", _VERSION),
    "_WAIT_CACHE": Known(Kind.TRANSIENT, "the client waits for metadata"),
    "_INTR": Known(Kind.TRANSIENT, "the request was interrupted"),
    "_KEY_SERIALIZATION": Known(Kind.FATAL, "a key cannot be encoded"),
    "_VALUE_SERIALIZATION": Known(Kind.FATAL, "a value cannot be encoded"),
    "_KEY_DESERIALIZATION": Known(Kind.FATAL, "a key cannot be decoded"),
    "_VALUE_DESERIALIZATION": Known(Kind.FATAL, "a value cannot be decoded"),
    "_PARTIAL": Known(Kind.TRANSIENT, "only a part of an answer arrived"),
    "_READ_ONLY": Known(Kind.FATAL, "the client was asked to change what is read only"),
    "_NOENT": Known(Kind.TRANSIENT, "the partition has no leader now"),
    "_UNDERFLOW": Known(Kind.TRANSIENT, "an answer of a broker is too short"),
    "_INVALID_TYPE": Known(Kind.FATAL, "the client was given a wrong type"),
    "_RETRY": Known(Kind.TRANSIENT, "the request is to be sent again"),
    "_PURGE_QUEUE": Known(Kind.TRANSIENT, "a message that was not sent yet was dropped with its transaction"),
    "_PURGE_INFLIGHT": Known(Kind.TRANSIENT, "a message under way was dropped with its transaction"),
    "_FATAL": Known(Kind.FATAL, "the client has stopped for good"),
    "_INCONSISTENT": Known(Kind.FATAL, "what the client knows of a partition does not fit the broker's answer"),
    "_GAPLESS_GUARANTEE": Known(Kind.FATAL, "the client cannot keep the messages in order"),
    "_MAX_POLL_EXCEEDED": Known(Kind.TRANSIENT, "the consumer was busy for longer than max.poll.interval.ms"),
    "_UNKNOWN_BROKER": Known(Kind.TRANSIENT, "the client does not know the broker yet"),
    "_NOT_CONFIGURED": Known(Kind.CONFIGURATION, "the client lacks a setting"),
    "_FENCED": Known(Kind.FENCED, "a newer producer has taken over"),
    "_APPLICATION": Known(Kind.FATAL, "the program itself failed while the client called it"),
    "_ASSIGNMENT_LOST": Known(Kind.TRANSIENT, "the group has taken the partitions away"),
    "_NOOP": Known(Kind.ANSWER, "nothing had to be done"),
    "_AUTO_OFFSET_RESET": Known(Kind.TOPIC, "the next offset does not exist any more, or not yet"),
    "_LOG_TRUNCATION": Known(Kind.TOPIC, "the partition has lost messages at its end, after a leader was lost"),
    "_INVALID_DIFFERENT_RECORD": Known(Kind.FATAL, "another message of the same batch was refused"),
    "_DESTROY_BROKER": Known(Kind.TRANSIENT, "the client has replaced a connection"),
    # of the brokers
    "UNKNOWN": Known(Kind.FATAL, "a broker failed without saying why", _BROKER),
    "NO_ERROR": Known(Kind.ANSWER, "there is no error"),
    "OFFSET_OUT_OF_RANGE": Known(Kind.TOPIC, "the offset does not exist any more, or not yet"),
    "INVALID_MSG": Known(Kind.FATAL, "a message was damaged on its way"),
    "UNKNOWN_TOPIC_OR_PART": Known(Kind.TOPIC, "the topic or partition does not exist"),
    "INVALID_MSG_SIZE": Known(Kind.FATAL, "a message has an invalid size"),
    "LEADER_NOT_AVAILABLE": Known(Kind.TRANSIENT, "the partition has no leader now"),
    "NOT_LEADER_FOR_PARTITION": Known(Kind.TRANSIENT, "another broker leads the partition by now"),
    "REQUEST_TIMED_OUT": Known(Kind.TRANSIENT, "a broker did not finish the request in time"),
    "BROKER_NOT_AVAILABLE": Known(Kind.TRANSIENT, "the broker is not available"),
    "REPLICA_NOT_AVAILABLE": Known(Kind.TRANSIENT, "the replica is not available"),
    "MSG_SIZE_TOO_LARGE": Known(Kind.TOO_LARGE, "a message is larger than the topic allows"),
    "STALE_CTRL_EPOCH": Known(Kind.TRANSIENT, "the controller is changing"),
    "OFFSET_METADATA_TOO_LARGE": Known(
        Kind.CONFIGURATION,
        "the metadata of an offset is larger than the brokers allow",
        "Raise offset.metadata.max.bytes of the brokers to at least 4096.",
    ),
    "NETWORK_EXCEPTION": Known(Kind.TRANSIENT, "the broker closed the connection before it answered"),
    "COORDINATOR_LOAD_IN_PROGRESS": Known(Kind.TRANSIENT, "the coordinator has just moved and is loading its state"),
    "COORDINATOR_NOT_AVAILABLE": Known(Kind.TRANSIENT, "the coordinator is not available"),
    "NOT_COORDINATOR": Known(Kind.TRANSIENT, "the coordinator has moved to another broker"),
    "TOPIC_EXCEPTION": Known(
        Kind.CONFIGURATION,
        "the name of the topic is invalid",
        "Kafka's names have up to 249 letters, digits, '.', '_' and '-'. Choose a shorter kafka.topic_prefix.",
    ),
    "RECORD_LIST_TOO_LARGE": Known(
        Kind.TOO_LARGE, "a batch of messages is larger than the topic's segments", "Raise segment.bytes of the topic."
    ),
    "NOT_ENOUGH_REPLICAS": Known(Kind.TRANSIENT, "too few replicas of the partition are in sync", _REPLICAS),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": Known(
        Kind.TRANSIENT, "a message was written to fewer replicas than min.insync.replicas", _REPLICAS
    ),
    "INVALID_REQUIRED_ACKS": Known(Kind.FATAL, "the broker does not know this kind of acknowledgement"),
    "ILLEGAL_GENERATION": Known(Kind.TRANSIENT, "the group has been assigned again"),
    "INCONSISTENT_GROUP_PROTOCOL": Known(
        Kind.CONFIGURATION,
        "other members of the group share partitions by another rule",
        "Give each program its own group, or stop the other members.",
    ),
    "INVALID_GROUP_ID": Known(Kind.CONFIGURATION, "the name of the group is invalid", "Correct the group's name."),
    "UNKNOWN_MEMBER_ID": Known(Kind.TRANSIENT, "the group has forgotten this member"),
    "INVALID_SESSION_TIMEOUT": Known(
        Kind.CONFIGURATION,
        "the consumer's session.timeout.ms is outside what the brokers allow",
        "Choose a value between the brokers' group.min.session.timeout.ms and group.max.session.timeout.ms.",
    ),
    "REBALANCE_IN_PROGRESS": Known(Kind.TRANSIENT, "the group is being assigned again"),
    "INVALID_COMMIT_OFFSET_SIZE": Known(
        Kind.CONFIGURATION,
        "a committed offset is larger than the brokers allow",
        "Raise max.message.bytes of the topic __consumer_offsets, or lower offset.metadata.max.bytes.",
    ),
    "TOPIC_AUTHORIZATION_FAILED": Known(Kind.RIGHTS, "the user lacks a right on the topic"),
    "GROUP_AUTHORIZATION_FAILED": Known(Kind.RIGHTS, "the user lacks a right on the consumer group"),
    "CLUSTER_AUTHORIZATION_FAILED": Known(Kind.RIGHTS, "the user lacks a right on the Kafka cluster"),
    "INVALID_TIMESTAMP": Known(
        Kind.CONFIGURATION,
        "the brokers refuse the timestamp of a message",
        "Compare the clocks of this machine and of the brokers, and message.timestamp.before.max.ms of the topic.",
    ),
    "UNSUPPORTED_SASL_MECHANISM": Known(Kind.CONFIGURATION, "the brokers do not have kafka.sasl_mechanism", _LOGIN),
    "ILLEGAL_SASL_STATE": Known(
        Kind.CONFIGURATION, "the brokers expect another login, or none", "Correct kafka.security_protocol."
    ),
    "UNSUPPORTED_VERSION": Known(Kind.CONFIGURATION, "the broker is too old, or too new, for the request", _VERSION),
    "TOPIC_ALREADY_EXISTS": Known(Kind.ANSWER, "the topic exists already"),
    "INVALID_PARTITIONS": Known(
        Kind.CONFIGURATION,
        "the brokers refuse this number of partitions",
        "Correct kafka.raw_partitions or kafka.change_partitions.",
    ),
    "INVALID_REPLICATION_FACTOR": Known(
        Kind.TRANSIENT,
        "Kafka has too few brokers now for kafka.replication_factor",
        "Start the brokers that are down, or correct kafka.replication_factor.",
    ),
    "INVALID_REPLICA_ASSIGNMENT": Known(Kind.CONFIGURATION, "the brokers refuse to place the replicas so"),
    "INVALID_CONFIG": Known(Kind.CONFIGURATION, "the brokers refuse a setting of the topic"),
    "NOT_CONTROLLER": Known(Kind.TRANSIENT, "the controller has moved to another broker"),
    "INVALID_REQUEST": Known(Kind.FATAL, "the broker does not understand the request"),
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": Known(
        Kind.CONFIGURATION, "the topic has an old message format", "Remove message.format.version from the topic."
    ),
    "POLICY_VIOLATION": Known(
        Kind.CONFIGURATION,
        "a policy of the brokers refuses the topic",
        "Ask the owner of create.topic.policy.class.name, or create the topic as docs/reference/raw-topics.md says.",
    ),
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Known(
        Kind.FATAL, "the broker misses an earlier message of this producer", "None if the program starts again."
    ),
    "DUPLICATE_SEQUENCE_NUMBER": Known(Kind.ANSWER, "the broker has the message already"),
    "INVALID_PRODUCER_EPOCH": Known(Kind.FENCED, "a newer producer has taken over"),
    "INVALID_TXN_STATE": Known(Kind.TRANSIENT, "the transaction is not in a state that allows the request"),
    "INVALID_PRODUCER_ID_MAPPING": Known(
        Kind.EXPIRED, "the brokers have forgotten this producer: it was idle for transactional.id.expiration.ms"
    ),
    "INVALID_TRANSACTION_TIMEOUT": Known(
        Kind.CONFIGURATION,
        "the transaction timeout is larger than transaction.max.timeout.ms of the brokers",
        "Lower transaction_timeout_seconds of the job, or raise transaction.max.timeout.ms on every broker.",
    ),
    "CONCURRENT_TRANSACTIONS": Known(Kind.TRANSIENT, "the broker is still ending the transaction before this one"),
    "TRANSACTION_COORDINATOR_FENCED": Known(Kind.TRANSIENT, "the transaction's coordinator has moved"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": Known(Kind.RIGHTS, "the user lacks a right on the transactional id"),
    "SECURITY_DISABLED": Known(
        Kind.CONFIGURATION, "the brokers have no authorizer", "Set authorizer.class.name on the brokers."
    ),
    "OPERATION_NOT_ATTEMPTED": Known(Kind.TRANSIENT, "the broker left this out because a part before it failed"),
    "KAFKA_STORAGE_ERROR": Known(Kind.FATAL, "a disk of the broker fails", _DISK),
    "LOG_DIR_NOT_FOUND": Known(Kind.CONFIGURATION, "the broker lacks a log folder", _DISK),
    "SASL_AUTHENTICATION_FAILED": Known(Kind.RIGHTS, "the brokers refuse the login", _LOGIN),
    "UNKNOWN_PRODUCER_ID": Known(
        Kind.EXPIRED, "the broker has forgotten this producer: all of its messages are deleted, or it was idle"
    ),
    "REASSIGNMENT_IN_PROGRESS": Known(Kind.TRANSIENT, "the partition is being moved"),
    "DELEGATION_TOKEN_AUTH_DISABLED": Known(Kind.CONFIGURATION, "the brokers have no delegation tokens", _LOGIN),
    "DELEGATION_TOKEN_NOT_FOUND": Known(Kind.RIGHTS, "the brokers do not know the delegation token", _LOGIN),
    "DELEGATION_TOKEN_OWNER_MISMATCH": Known(Kind.RIGHTS, "the delegation token belongs to another user", _LOGIN),
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": Known(Kind.RIGHTS, "no delegation token may be asked for here", _LOGIN),
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": Known(Kind.RIGHTS, "the user lacks a right on the token", _LOGIN),
    "DELEGATION_TOKEN_EXPIRED": Known(Kind.RIGHTS, "the delegation token has expired", _LOGIN),
    "INVALID_PRINCIPAL_TYPE": Known(Kind.CONFIGURATION, "the brokers do not know this kind of user", _LOGIN),
    "NON_EMPTY_GROUP": Known(
        Kind.CONFIGURATION, "the consumer group has members", "Stop the programs that use the group."
    ),
    "GROUP_ID_NOT_FOUND": Known(Kind.ANSWER, "the consumer group does not exist"),
    "FETCH_SESSION_ID_NOT_FOUND": Known(Kind.TRANSIENT, "the broker has forgotten this reader"),
    "INVALID_FETCH_SESSION_EPOCH": Known(Kind.TRANSIENT, "the broker and this reader disagree on the last request"),
    "LISTENER_NOT_FOUND": Known(
        Kind.TRANSIENT,
        "the leader has no listener of this kind",
        "None if the broker has just started. Otherwise give all brokers the same listeners.",
    ),
    "TOPIC_DELETION_DISABLED": Known(
        Kind.CONFIGURATION, "the brokers delete no topics", "Set delete.topic.enable=true on the brokers."
    ),
    "FENCED_LEADER_EPOCH": Known(Kind.TRANSIENT, "the partition has a newer leader"),
    "UNKNOWN_LEADER_EPOCH": Known(Kind.TRANSIENT, "the broker does not know the partition's newest leader yet"),
    "UNSUPPORTED_COMPRESSION_TYPE": Known(Kind.CONFIGURATION, "the broker does not know the compression", _VERSION),
    "STALE_BROKER_EPOCH": Known(Kind.TRANSIENT, "the broker was started again"),
    "OFFSET_NOT_AVAILABLE": Known(Kind.TRANSIENT, "the partition's new leader does not know its end yet"),
    "MEMBER_ID_REQUIRED": Known(Kind.TRANSIENT, "the group asks this member to join again"),
    "PREFERRED_LEADER_NOT_AVAILABLE": Known(Kind.TRANSIENT, "the preferred leader is not available"),
    "GROUP_MAX_SIZE_REACHED": Known(
        Kind.CONFIGURATION, "the consumer group is full", "Raise group.max.size on the brokers, or stop members."
    ),
    "FENCED_INSTANCE_ID": Known(Kind.FENCED, "another consumer has the same group.instance.id"),
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": Known(Kind.TRANSIENT, "no replica can lead the partition now"),
    "ELECTION_NOT_NEEDED": Known(Kind.ANSWER, "the partition has its leader"),
    "NO_REASSIGNMENT_IN_PROGRESS": Known(Kind.ANSWER, "no partition is being moved"),
    "GROUP_SUBSCRIBED_TO_TOPIC": Known(
        Kind.CONFIGURATION, "members of the group read the topic", "Stop the programs that use the group."
    ),
    "INVALID_RECORD": Known(
        Kind.CONFIGURATION,
        "the brokers refuse a message: a compacted topic takes none without a key, or a plugin checks it",
        "Correct cleanup.policy of the topic, or the plugin.",
    ),
    "UNSTABLE_OFFSET_COMMIT": Known(Kind.TRANSIENT, "a transaction that moves the offset is still open"),
    "THROTTLING_QUOTA_EXCEEDED": Known(
        Kind.TRANSIENT, "a quota of the brokers is used up", "None if it ends soon. Otherwise raise the user's quota."
    ),
    "PRODUCER_FENCED": Known(Kind.FENCED, "a newer producer has taken over"),
    "RESOURCE_NOT_FOUND": Known(Kind.FATAL, "the request names what does not exist"),
    "DUPLICATE_RESOURCE": Known(Kind.FATAL, "the request names the same thing twice"),
    "UNACCEPTABLE_CREDENTIAL": Known(Kind.RIGHTS, "the brokers do not accept the credential", _LOGIN),
    "INCONSISTENT_VOTER_SET": Known(Kind.FATAL, "the controllers disagree on who they are"),
    "INVALID_UPDATE_VERSION": Known(Kind.TRANSIENT, "a newer version was stored in the meantime"),
    "FEATURE_UPDATE_FAILED": Known(Kind.FATAL, "the controller could not change a feature"),
    "PRINCIPAL_DESERIALIZATION_FAILURE": Known(Kind.CONFIGURATION, "the controller cannot read the user's name"),
    "UNKNOWN_TOPIC_ID": Known(Kind.TOPIC, "the topic was deleted or created again, or the broker has just started"),
    "INCONSISTENT_TOPIC_ID": Known(Kind.TOPIC, "the topic was created again under the same name"),
    "FENCED_MEMBER_EPOCH": Known(Kind.TRANSIENT, "the group has assigned this member again"),
    "UNRELEASED_INSTANCE_ID": Known(Kind.FENCED, "another member still uses the same group.instance.id"),
    "UNSUPPORTED_ASSIGNOR": Known(Kind.CONFIGURATION, "the brokers do not know how the group shares partitions"),
    "STALE_MEMBER_EPOCH": Known(Kind.TRANSIENT, "the group has assigned this member again"),
    "MISMATCHED_ENDPOINT_TYPE": Known(
        Kind.CONFIGURATION, "kafka.bootstrap_servers names a controller", "Name the brokers' listeners instead."
    ),
    "UNSUPPORTED_ENDPOINT_TYPE": Known(Kind.CONFIGURATION, "the broker does not know this kind of listener", _VERSION),
    "UNKNOWN_CONTROLLER_ID": Known(Kind.TRANSIENT, "the controller is not known"),
    "UNKNOWN_SUBSCRIPTION_ID": Known(Kind.TRANSIENT, "the broker asks for the client's metrics again"),
    "TELEMETRY_TOO_LARGE": Known(Kind.TRANSIENT, "the client's metrics are larger than the broker takes"),
    "INVALID_REGISTRATION": Known(Kind.FATAL, "the controller refuses a broker"),
    "TRANSACTION_ABORTABLE": Known(Kind.TRANSIENT, "the broker asks for the transaction to be aborted and repeated"),
    "INVALID_RECORD_STATE": Known(Kind.FATAL, "a message of a share group is in another state"),
    "SHARE_SESSION_NOT_FOUND": Known(Kind.TRANSIENT, "the broker has forgotten this reader of a share group"),
    "INVALID_SHARE_SESSION_EPOCH": Known(Kind.TRANSIENT, "the broker and this reader of a share group disagree"),
    "FENCED_STATE_EPOCH": Known(Kind.FENCED, "another instance has the state of the share group"),
    "INVALID_VOTER_KEY": Known(Kind.FATAL, "a controller has another key than the others know"),
    "DUPLICATE_VOTER": Known(Kind.FATAL, "the controller is one of the voters already"),
    "VOTER_NOT_FOUND": Known(Kind.FATAL, "the controller is not one of the voters"),
    "INVALID_REGULAR_EXPRESSION": Known(Kind.CONFIGURATION, "the regular expression for topics is invalid"),
    "REBOOTSTRAP_REQUIRED": Known(Kind.TRANSIENT, "the broker asks the client to connect again"),
    "STREAMS_INVALID_TOPOLOGY": Known(Kind.FATAL, "the topology of a Kafka Streams program is invalid"),
    "STREAMS_INVALID_TOPOLOGY_EPOCH": Known(Kind.FATAL, "the topology of a Kafka Streams program has a wrong epoch"),
    "STREAMS_TOPOLOGY_FENCED": Known(Kind.FENCED, "another Kafka Streams program has a newer topology"),
    "SHARE_SESSION_LIMIT_REACHED": Known(Kind.TRANSIENT, "the broker has no room for another reader of a share group"),
}
