"""Every error and alert has a code (`CDC-012`), which cdc_common.errors.reference explains.

A number always means the same situation: numbers are never reused. A test fails if a code is not explained.
"""

from __future__ import annotations

from enum import Enum


class Code(Enum):
    """The situations that a program reports. The value is (number, exit status)."""

    CONFIG_UNKNOWN_KEY = (1, 2)
    CONFIG_INVALID = (2, 2)
    CONFIG_FILE = (3, 2)
    PORT_IN_USE = (4, 2)
    STACK_MISSING = (5, 2)
    PROGRAM_UNREACHABLE = (6, 3)
    NOT_COMPILED = (7, 0)
    MEMORY = (8, 0)  # only for an alert: Prometheus compares, no program reports it
    CASSANDRA_UNREACHABLE = (10, 3)
    CASSANDRA_AUTH = (11, 3)
    CDC_DISABLED = (12, 3)
    CDC_RAW_MISSING = (13, 3)
    CASSANDRA_QUERY = (14, 3)
    FILLER_PAUSED = (15, 3)
    NODETOOL_FAILED = (16, 3)
    CHANGES_WOULD_BE_LOST = (17, 3)
    SPOOLING = (18, 3)
    SEGMENTS_STUCK = (19, 3)
    KAFKA_UNREACHABLE = (20, 3)
    KAFKA_REFUSED = (21, 3)
    TOPIC_SETTINGS = (22, 3)
    TOPIC_NAMES_COLLIDE = (23, 3)
    TOPIC_PREFIX_TAKEN = (24, 3)
    REGISTRY_UNREACHABLE = (30, 3)
    REGISTRY_REFUSED = (31, 3)
    REGISTRY_DATABASE = (32, 3)
    BACKUP = (33, 3)
    DOCUMENTATION = (34, 1)
    CLIENTS_LATE = (35, 0)  # only for an alert
    REGISTRY_KEY = (36, 2)
    REGISTRY_OPEN = (37, 2)
    REGISTRY_CERTIFICATE = (38, 2)
    REGISTRY_ISSUER = (39, 3)
    IMPORT = (140, 3)
    SEGMENT_CORRUPT = (40, 4)
    SEGMENT_UNSUPPORTED = (41, 4)
    POSITION_FILE = (42, 4)
    SCHEMA_UNKNOWN = (43, 4)
    LOG_ENCRYPTED = (44, 3)
    KEYSTORE = (45, 3)
    CDC_RAW_FILLING = (46, 3)
    CDC_RAW_WAS_FULL = (47, 3)
    QUARANTINED = (48, 4)
    QUARANTINE_FULL = (49, 4)
    RAW_SKIPPED = (50, 4)
    STATE_MISMATCH = (51, 4)
    STATE_DAMAGED = (52, 4)
    STATE_FORMAT = (53, 4)
    RAW_PARTITIONS_CHANGED = (54, 4)
    CLOCK_AHEAD = (55, 4)
    SPARK_SETTING = (56, 2)
    SPARK_FAILED = (57, 4)
    RAW_MESSAGE_UNREADABLE = (58, 4)
    NOT_SUPPORTED = (59, 4)
    TABLE_WAITS = (61, 4)
    TOPIC_NAME = (62, 4)
    TABLE_NOT_PUBLISHED = (63, 4)
    TABLE_CDC_DISABLED = (64, 4)
    NEEDS_SNAPSHOT = (65, 4)
    TOPIC_VERSION = (66, 4)
    KEY_NOT_REPRESENTABLE = (67, 4)
    PUBLISHER_STALLED = (68, 4)
    SEGMENT_LOST = (69, 4)
    DEAD_LETTERED = (80, 4)
    TOO_MANY_DEAD_LETTERS = (81, 4)
    MESSAGE_TOO_LARGE = (82, 4)
    TRANSACTION_TIMEOUT = (83, 4)
    UNEXPECTED = (84, 4)
    TRANSACTION_EXPIRED = (85, 4)
    RAW_PARTITION_STOPPED = (86, 0)  # only for an alert: what stops a raw partition has a code of its own
    SNAPSHOT_GIVEN_UP = (87, 4)
    SNAPSHOT_STALLED = (88, 0)  # only for an alert
    NOT_TRUNCATED = (89, 4)
    CHANGE_TOPIC_RECREATED = (93, 4)
    TRANSFORM_FAILED = (95, 4)
    TRANSFORM_STEP = (96, 4)
    TRANSFORM_SOURCE = (97, 4)
    TRANSFORM_REPEATED = (98, 4)
    FORM_CHANGED = (99, 4)
    ARCHIVE_MESSAGE = (110, 4)
    ARCHIVE_LOCATION = (111, 3)
    ARCHIVE_INTENT = (112, 4)
    ARCHIVE_LEDGER = (113, 4)
    ARCHIVE_TABLE = (114, 4)
    ARCHIVE_SETTING = (115, 2)
    ARCHIVE_VERSION = (116, 4)
    ARCHIVE_STORE_AWAY = (143, 3)
    JOIN_PLAN = (120, 4)
    JOIN_INPUT = (121, 4)
    JOIN_MESSAGE = (122, 4)
    JOIN_REPEATED = (123, 4)
    JOIN_CASE = (146, 1)
    JOIN_HISTORY = (147, 4)
    JOIN_LIMIT = (155, 4)
    JOIN_AUDIT = (156, 4)
    JOIN_REBUILD = (157, 4)
    JOIN_CHANGED = (158, 4)
    WAREHOUSE_MESSAGE = (130, 4)
    WAREHOUSE_VALUE = (131, 4)
    WAREHOUSE_SCHEMA = (132, 4)
    WAREHOUSE_STATE = (133, 4)
    WAREHOUSE_TABLE = (134, 4)
    WAREHOUSE_AWAY = (135, 3)
    WAREHOUSE_SETTING = (136, 2)
    WAREHOUSE_AUDIT = (137, 4)
    WAREHOUSE_PERSONAL = (151, 4)
    WAREHOUSE_PAUSED = (152, 4)
    WAREHOUSE_LOCATION = (163, 4)
    WAREHOUSE_STORE_AWAY = (164, 3)
    WAREHOUSE_BATCH = (165, 4)
    TOPIC_FILES = (141, 1)
    TOPICS_REFUSED = (149, 1)
    TOPICS_LEASED = (150, 3)
    SERVER_FAILED = (70, 5)
    CHECKPOINT_LOCATION = (71, 3)

    @property
    def text(self) -> str:
        return f"CDC-{self.value[0]:03d}"

    @property
    def exit_status(self) -> int:
        return self.value[1]


class CdcError(Exception):
    """An error with a code: `problem` says what is wrong and where, `fix` what to do about it.

    The command line prints it without a stack trace and exits with the code's status.
    """

    def __init__(self, code: Code, problem: str, fix: str) -> None:
        super().__init__(f"{code.text} {problem} {fix}")
        self.code = code
        self.problem = problem
        self.fix = fix

    def __reduce__(self) -> tuple[type[CdcError], tuple[Code, str, str]]:
        """Spark pickles it to send it from a worker to the driver."""
        return CdcError, (self.code, self.problem, self.fix)
