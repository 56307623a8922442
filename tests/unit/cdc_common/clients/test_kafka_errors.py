"""Every error code of the installed Kafka client has its kind, its words and what to do."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from cdc_common.clients import kafka_errors
from cdc_common.clients.kafka_error_table import ERRORS, UNKNOWN, Kind, Known
from cdc_common.errors.codes import Code

CODES = sorted(
    value
    for name in dir(KafkaError)
    if not name.startswith("__") and isinstance(value := getattr(KafkaError, name), int)
)
RIGHTS = "rights listed in docs/guides/secure.md"
PASSING = (Kind.TRANSIENT, Kind.EXPIRED)


def test_the_table_has_each_code_of_the_client_and_no_other() -> None:
    assert len(CODES) > 150
    assert {KafkaError(code).name() for code in CODES} == ERRORS.keys()


@pytest.mark.parametrize("code", CODES, ids=lambda code: KafkaError(code).name())
def test_each_error_has_words_of_its_own_and_a_fix(code: int) -> None:
    error = KafkaError(code, "the broker's words")
    known = ERRORS[error.name()]
    found = kafka_errors.kafka_error("Cannot read the topic orders", error)
    assert found.problem == f"Cannot read the topic orders: {known.meaning} ({error.name()}: the broker's words)."
    assert found.fix == known.fix
    assert found.fix.endswith(".")
    waits = known.kind in {*PASSING, Kind.TOPIC}
    assert found.code is (Code.KAFKA_UNREACHABLE if waits else Code.KAFKA_REFUSED)
    assert kafka_errors.is_transient(error) == waits
    assert kafka_errors.is_transient(error, awaits_topic=False) == (known.kind in PASSING)
    assert kafka_errors.is_fenced(error) == (known.kind is Kind.FENCED)
    assert kafka_errors.is_expired(error) == (known.kind is Kind.EXPIRED)


@pytest.mark.parametrize(("name", "known"), ERRORS.items())
def test_only_missing_rights_are_answered_with_rights(name: str, known: Known) -> None:
    assert (RIGHTS in known.fix) == (name.endswith("_AUTHORIZATION_FAILED") and not name.startswith("DELEGATION"))
    assert not known.meaning.endswith(".")
    assert known.meaning[0].islower() or known.meaning.startswith("Kafka ")


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        (Kind.EXPIRED, {KafkaError.INVALID_PRODUCER_ID_MAPPING, KafkaError.UNKNOWN_PRODUCER_ID}),
        (Kind.FENCED, {KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}),
        (Kind.TOO_LARGE, {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}),
        (
            Kind.TRANSIENT,
            {KafkaError._TRANSPORT, KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
            | {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.CONCURRENT_TRANSACTIONS},
        ),
        (Kind.TOPIC, {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_ID}),
        (Kind.RIGHTS, {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.SASL_AUTHENTICATION_FAILED}),
    ],
)
def test_what_the_programs_rely_on(kind: Kind, codes: set[int]) -> None:
    assert {ERRORS[KafkaError(code).name()].kind for code in codes} == {kind}


def test_a_code_of_a_newer_broker_is_an_error_without_a_guess() -> None:
    found = kafka_errors.kafka_error("Cannot write", KafkaError(1234))
    assert found.code is Code.KAFKA_REFUSED
    assert UNKNOWN.meaning in found.problem
    assert RIGHTS not in found.fix
