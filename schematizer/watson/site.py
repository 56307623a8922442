"""The parts that all pages share: the catalogue, who may see it, and how a page is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar

from fastapi import Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.kinds import About
from schematizer.access import Access, Role
from schematizer.measures.sampler import Measures
from schematizer.service import Catalogue
from schematizer.topic_names import parse_topic
from schematizer.watson.forms import Forms
from schematizer.watson.links import Links
from schematizer.watson.rendering import Templates
from schematizer.watson.visitors import visitor_of

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import HTMLResponse

    from cdc_common.clients.registry.views import Namespace
    from schematizer.access import Grants

PAGE_SIZE = 50

T = TypeVar("T")


class Crumb(NamedTuple):
    """A link of the way to a page."""

    # The words of the link.
    text: str
    # The path that it leads to.
    link: str


class Remarks(NamedTuple):
    """The subject of a page's notes and tags."""

    # The kind of thing.
    about: About
    # The thing's id; 0 for a field without documentation, which the next ones name.
    about_id: int
    # The field's namespace.
    namespace: str = ""
    # The field's source.
    source: str = ""
    # The field's path.
    path: str = ""


class Paged(NamedTuple, Generic[T]):
    """A part of a list."""

    # The items of the part.
    rows: Sequence[T]
    # The part's number, from 1.
    number: int
    # The number of the last part.
    last: int
    # The number of items of the whole list.
    total: int


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of the registry that pages use. A handler names it as its first parameter, `site: SiteDep`."""

    # The catalogue.
    catalogue: Catalogue
    # The rights of requests.
    access: Access
    # The rates and lags of topics.
    measures: Measures
    # The tokens of forms.
    forms: Forms
    # Where signing in is mounted; None for nowhere.
    sign_in_path: str | None = None
    # The description of the REST interface, as OpenAPI has it.
    describe_api: Callable[[], dict[str, Any]] = dict
    # The templates of pages.
    templates: Templates = field(default_factory=Templates)

    def links(self, request: Request) -> Links:
        return Links(request.scope.get("root_path", ""))

    def grants(self, request: Request) -> Grants:
        """Return the rights of the asker."""
        return self.access.identify(request).grants

    def may(self, request: Request, role: Role, namespace: str | None) -> bool:
        """Return whether a page may show something. Unlike `require`, it leaves no trace in the audit log and the
        metrics.
        """
        return self.grants(request).allows(role, namespace)

    def sees(self, request: Request) -> Callable[[str | None, str], bool]:
        """Whether a page may show what has this namespace and name. What has no namespace is a data target, and shown
        to readers of every namespace that it reads.
        """
        grants = self.grants(request)
        targets = {} if grants.allows(Role.READER, None) else self.catalogue.data_targets.namespaces()

        def is_seen(namespace: str | None, name: str) -> bool:
            if namespace is None:
                return grants.allows_each(Role.READER, targets.get(name, ()))
            return grants.allows(Role.READER, namespace)

        return is_seen

    def enters(self, request: Request) -> None:
        """Raise CatalogueError for one who may read no namespace."""
        self.access.require_somewhere(request, Role.READER)

    def reads(self, request: Request, namespace: str | None) -> None:
        """Raise CatalogueError for one who may not read the namespace."""
        self.access.require(request, Role.READER, namespace)

    def reads_topic(self, request: Request, topic: str) -> str:
        """The topic's namespace, as reads."""
        namespace = parse_topic(topic, self.catalogue.rules.pii_prefix).namespace
        self.reads(request, namespace)
        return namespace

    def readable(self, request: Request) -> list[Namespace]:
        """The namespaces that the asker may see. CatalogueError if that is none of those that exist."""
        every = self.catalogue.namespaces.every()
        found = [namespace for namespace in every if self.may(request, Role.READER, namespace.name)]
        if not found:
            self.reads(request, None)
        return found

    def page(
        self,
        request: Request,
        template: str,
        crumbs: Sequence[Crumb] = (),
        *,
        namespace: str | None = None,
        remarks: Remarks | None = None,
        **context: object,
    ) -> HTMLResponse:
        """`namespace`: whose writers see the page's forms. `crumbs`: the last is the page itself. `remarks`: what the
        page's notes and tags are about.
        """
        links, visitor = self.links(request), visitor_of(request, self.sign_in_path)
        shared = {
            "to": links,
            "crumbs": [Crumb("Watson", links.front()), *crumbs],
            "token": self.forms.token(request),
            "may_write": self.may(request, Role.WRITER, namespace),
            "search_text": "",
            "visitor": visitor,
            "remarks": remarks,
            **self._said_of(remarks),
        }
        return self.templates.response(template, {**shared, **context}, is_of_login=visitor.name is not None)

    def _said_of(self, it: Remarks | None) -> dict[str, object]:
        if it is None or not it.about_id:
            return {"notes": [], "tags": []}
        catalogue = self.catalogue
        return {
            "notes": catalogue.notes.about(it.about, it.about_id),
            "tags": catalogue.tags.about(it.about, it.about_id),
        }


def keep_site(app: FastAPI, site: Site) -> None:
    """Keep the site where the application's requests find it."""
    app.state.site = site


def site_of_app(app: FastAPI) -> Site:
    """Return the site that the application keeps."""
    site: Site = app.state.site
    return site


async def site_of(request: Request) -> Site:
    """Return the site of the application that the request has reached."""
    return site_of_app(request.app)


SiteDep = Annotated[Site, Depends(site_of)]


def paged(rows: Sequence[T], number: int, size: int = PAGE_SIZE) -> Paged[T]:
    """Part `number` of the list; the nearest if there is none."""
    last = max(1, -(-len(rows) // size))
    number = min(max(1, number), last)
    return Paged(rows[(number - 1) * size : number * size], number, last, len(rows))
