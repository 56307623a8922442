"""Builds what opens a publisher's topics, from the settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdc_common.clients.registry.connection import check_certificates
from cdc_common.errors.codes import CdcError, Code
from publisher.kafka.topic_admin import TopicAdmin
from publisher.topics.raw_topics import RawTopics, RegistryIds

if TYPE_CHECKING:
    from cdc_common.clients.registry.confluent import RegistryClient
    from cdc_common.settings import RegistrySettings
    from publisher.kafka.sender import Sender
    from publisher.settings import Settings


def make_raw_topics(settings: Settings, cluster: str, sender: Sender) -> RawTopics:
    """Does not call Kafka, which may be away. CdcError if the registry is needed and is unreachable or refuses, or if
    its certificates cannot be used: otherwise every new table would wait.
    """
    registry = settings.registry
    check_certificates(registry)
    ids = RegistryIds(settings.publisher.state_directory / "registry.json", registry.url, partial(_registry, registry))
    ids.check_registry()
    return RawTopics(settings.kafka.topic_prefix, cluster, TopicAdmin(settings.kafka), sender, ids)


def _registry(settings: RegistrySettings) -> RegistryClient:
    """Imported only for a subject without a known id: it takes 15 MB. The certificates were good at the start: if they
    cannot be used now, they are just being replaced, and the publisher waits.
    """
    from cdc_common.clients.registry.confluent import RegistryClient  # noqa: PLC0415 - see above

    try:
        return RegistryClient(settings)
    except CdcError as error:
        raise CdcError(Code.REGISTRY_UNREACHABLE, error.problem, error.fix) from error
