"""The model of `source.toml`: the documentation of a source whose topics no topic file makes, such as a table."""

from __future__ import annotations

from pydantic import Field

from cdc_common.clients.registry.views import SourceDocumentation  # noqa: TC001 - pydantic looks at annotations
from schematizer.topic_files.files.base import FileModel, Word
from schematizer.topic_files.files.topic_file import DocumentedField, documentation_of


class SourceFile(FileModel):
    """`source.toml` (or .json, .yaml), in a folder of an environment; or a documentation file of another name."""

    namespace: Word = Field(description="The registry's namespace: of a table `PREFIX.KEYSPACE`, such as cdc.shop.")
    source: Word = Field(description="The source's name: of a table its own.")
    doc: str | None = Field(
        default=None, description="What it holds; without it, what the registry has stays, such as Cassandra's comment."
    )
    owner: str | None = Field(default=None, description="The team that owns it: a name of `owners` in catalogue.toml.")
    fields: dict[str, DocumentedField] = Field(
        default={}, description="Documentation of fields, by path; of a table's column, the name of its field."
    )

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.source}"

    def documentation(self, known_doc: str | None) -> SourceDocumentation:
        """Return the documentation to apply. `known_doc`: the source's doc in the registry, kept if the file has
        none.
        """
        return documentation_of(self.doc or known_doc, self.owner, self.fields)
