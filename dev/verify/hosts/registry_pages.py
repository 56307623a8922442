"""The pages of the registry: its commands, documentation files and topic files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dev.verify.hosts.guide_page import items_of
from dev.verify.hosts.reader import CHECKOUT, PROGRAMS

if TYPE_CHECKING:
    from dev.verify.hosts.guide_page import Item
    from dev.verify.hosts.reader import Reader
    from dev.verify.hosts.servers import Servers

ENVIRONMENTS = ("staging", "prod")
EMPTY_DATABASE = "sqlite:////root/restored.db"


class RegistryPages:
    """The registry's unit runs all the time."""

    def __init__(self, servers: Servers, reader: Reader) -> None:
        self._node = servers.node
        self._reader = reader
        reader.do_otherwise(
            {
                "cassandra-schematizer serve --port*": self._is_served,
                "schematizer.md: namespace = *": self._write_documentation,
                "cassandra-schematizer docs comments shop": self._copy_comments,
                "cassandra-schematizer restore*": self._restore,
                'levels = ["company"*': lambda item: self._write_topic_file("catalogue.toml", item.text),
                'typology = "event"*': self._write_topic_files,
                "cassandra-schematizer topics new*": self._make_topic,
            }
        )

    def read(self) -> None:
        """Read both pages. A reader of topic files grants their rights first, and fills in the new files."""
        self._reader.read("schematizer.md", "Documentation files", only_files=True)
        self._reader.read("schematizer.md")
        self._reader.read("topic-files.md", "What is applied")
        self._reader.read("topic-files.md", only_blocks=True)  # the page names a command before the one that it needs
        self._reader.read("topic-files.md")
        self._reader.read("topic-files-in-ci.md")

    def _is_served(self, _: Item) -> None:
        """Find the unit, which has both settings by default, running."""
        self._node.run("systemctl is-active cassandra-schematizer")

    def _write_documentation(self, item: Item) -> None:
        self._node.run(f"mkdir -p {CHECKOUT}/docs/tables")
        self._node.write(f"{CHECKOUT}/docs/tables/orders.toml", item.text)

    def _copy_comments(self, item: Item) -> None:
        """With a login of Cassandra, too."""
        self._node.run(f"env $(cat /etc/cdc/publisher.env) {PROGRAMS}/{item.text}", folder=CHECKOUT)

    def _restore(self, item: Item) -> None:
        """Into an empty database, as the page says."""
        setting = f"CDC_SCHEMATIZER__DATABASE_URL={EMPTY_DATABASE}"
        self._node.run(f"env {setting} {PROGRAMS}/{item.text}", folder=CHECKOUT)

    def _make_topic(self, item: Item) -> None:
        """Make its folders, and write what the page shows into the files, as its comment says."""
        self._reader.run(item.text)
        catalogue, topic, *_ = [one for one in items_of(item.page) if (one.heading, one.kind) == ("Files", "toml")]
        self._write_topic_file("catalogue.toml", catalogue.text)
        self._write_topic_files(topic)

    def _write_topic_files(self, item: Item) -> None:
        for environment in ENVIRONMENTS:
            self._write_topic_file(f"acme/shop/orders/{environment}/topic.toml", item.text)

    def _write_topic_file(self, name: str, text: str) -> None:
        self._node.write(f"{CHECKOUT}/topics/{name}", text)
