"""Conditions of queries for what a login may read: what it may not read takes no place in a limited list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, false, func, not_, or_, select, true

from schematizer.access import Role
from schematizer.model.client_tables import ConsumerGroupRow, DataSourceRow, DataTargetRow
from schematizer.model.source_tables import NamespaceRow

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, SQLColumnExpression

    from schematizer.access import Grants


def is_readable_namespace(name: SQLColumnExpression[str], grants: Grants) -> ColumnElement[bool]:
    """The condition that a reader with these grants may read the namespace in a column (as Grants.allows)."""
    readers = [grant for grant in grants.every if grant.role >= Role.READER]
    if any(grant.covers(None) for grant in readers):
        return true()
    words = [grant.namespace.removesuffix("*") for grant in readers]
    exact = [word for word in words if not word.endswith(".")]
    begun = [func.substr(name, 1, len(word)) == word for word in words if word.endswith(".")]
    return or_(false(), name.in_(exact), *begun)


def is_readable_target(grants: Grants) -> ColumnElement[bool]:
    """The condition that all namespaces which a DataTargetRow reads are readable (as Grants.allows_each)."""
    if grants.allows(Role.READER, None):
        return true()
    reads = (
        select(DataSourceRow.id)
        .join(DataSourceRow.group)
        .join(DataSourceRow.namespace)
        .where(ConsumerGroupRow.data_target_id == DataTargetRow.id)
    )
    hidden = reads.where(not_(is_readable_namespace(NamespaceRow.name, grants)))
    return and_(reads.exists(), not_(hidden.exists()))
