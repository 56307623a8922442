"""The rights of principals in Kafka, as the files ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from schematizer.topic_files.planning.things import Kind, Thing

if TYPE_CHECKING:
    from schematizer.topic_files.planning.things import Content

GROUP, TOPIC, TRANSACTIONAL_ID = "group", "topic", "transactional_id"
LITERAL, PREFIXED = "literal", "prefixed"
ALLOW = "allow"


class Right(NamedTuple):
    """An ACL: the names are Kafka's, in lower case."""

    # Who has it.
    principal: str
    # The operation, such as read.
    operation: str
    # The kind of resource: topic, group or transactional_id.
    resource: str
    # The name of the resource.
    name: str
    # Whether the name is the whole one or the beginning: literal or prefixed.
    pattern: str = LITERAL
    # allow or deny.
    permission: str = ALLOW
    # The client's host.
    host: str = "*"

    @property
    def thing(self) -> Thing:
        """Return its name as a thing: what is usual is left out."""
        unusual = [
            value
            for value, usual in ((self.pattern, LITERAL), (self.permission, ALLOW), (self.host, "*"))
            if value != usual
        ]
        return Thing(Kind.RIGHT, " ".join((self.principal, self.operation, self.resource, self.name, *unusual)))

    @property
    def content(self) -> Content:
        """Return it as properties."""
        return self._asdict()


def right_of(content: Content) -> Right:
    """Return the right with these properties."""
    return Right(**{name: str(value) for name, value in content.items()})


def producer_rights(principal: str, topic: str) -> list[Right]:
    """Return the rights of a producer on a topic. WRITE contains DESCRIBE and what idempotence needs."""
    return [Right(principal, "write", TOPIC, topic)]


def consumer_rights(principal: str, topic: str) -> list[Right]:
    """Return the rights of a consumer on a topic. READ contains DESCRIBE."""
    return [Right(principal, "read", TOPIC, topic)]


def program_rights(principal: str, topic: str) -> list[Right]:
    """Return the rights of one of the pipeline's programs on a topic: they also check its settings."""
    return [*consumer_rights(principal, topic), Right(principal, "describe_configs", TOPIC, topic)]


def group_right(principal: str, group: str) -> Right:
    """Return the right of a consumer on its group."""
    return Right(principal, "read", GROUP, group)


def transaction_right(principal: str, prefix: str) -> Right:
    """Return the right of a producer on transactional ids that begin so. WRITE contains DESCRIBE."""
    return Right(principal, "write", TRANSACTIONAL_ID, prefix, PREFIXED)
