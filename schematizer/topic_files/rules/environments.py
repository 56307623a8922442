"""Rules about the order of environments: staging before production."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.topic_files.rules.codes import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from schematizer.topic_files.files.reading import TopicFolder

Places = dict[tuple[tuple[str, ...], str], "TopicFolder"]
"""Topics by their levels and environment."""


def check_order(
    topics: Mapping[tuple[tuple[str, ...], str], TopicFolder], topic: TopicFolder, before: str | None
) -> Iterator[Finding]:
    """`before`: the environment that the topic must be in too."""
    if before is None:
        return
    earlier = topics.get((topic.levels, before))
    if earlier is None:
        yield Finding("T701", topic.path, f"{'/'.join(topic.levels)} is not in {before}")
        return
    first = [schema.canonical for schema in earlier.values]
    own = [schema.canonical for schema in topic.values]
    if own != first[: len(own)]:
        yield Finding("T702", topic.path, f"its schemas are not the first {len(own)} of {earlier.path}")
    if topic.file.primary_key != earlier.file.primary_key:
        yield Finding("T603", topic.path, f"its primary key is not the one of {earlier.path}")
