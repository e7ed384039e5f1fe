"""The rules by which rows of the table of APIs authorize requests: as a whole, entry by entry, or by a function of that
API.

What is checked, and in which order, is as in Apache Kafka (KafkaApis, ControllerApis). The rule is
applied to a large request part by part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import itemgetter, not_
from typing import Any, Final, Protocol, TypeVar

from broker.dispatch.api import Handle, before
from broker.dispatch.call import Call
from broker.dispatch.rejection import RejectionBuilder, rejection
from broker.request.authorisation import CLUSTER_NAME, AuthorizationRule, Requirement, Resource
from protocol.errors import ErrorCode, KafkaError
from protocol.types import Uuid

Q = TypeVar("Q")
T = TypeVar("T")

AUTHORIZES: Final = "Authorizes the client "
"""The beginning of the docstring of an API's own rule."""

DENIED: Final[Mapping[Resource, ErrorCode]] = {
    Resource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    Resource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    Resource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    Resource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def denial(requirement: Requirement) -> KafkaError:
    """Returns the error of a client that is not authorized."""
    return KafkaError(DENIED[requirement.resource])


def word(requirement: Requirement) -> str:
    """Returns the word for a resource in the rule's text."""
    return requirement.resource.name.lower().replace("_", " ")


# Rules


def the_cluster(_: object) -> str:
    """Returns the name of the cluster."""
    return CLUSTER_NAME


def whole(requirement: Requirement, name_of: Callable[[Any], str] = the_cluster) -> AuthorizationRule:
    """Returns the rule that rejects the whole request unless the client may do the operation on one resource: the
    cluster, or the resource whose name `name_of` returns."""

    async def answer(call: Call[Q], handle: Handle) -> object:
        if call.may(requirement, name_of(call.request)):
            return await handle(call)
        return await reject(call, denial(requirement))

    return AuthorizationRule(
        (requirement,), "for the request" if name_of is the_cluster else f"for the {word(requirement)}", answer
    )


def every(requirement: Requirement, names_of: Callable[[Any], Iterable[str]]) -> AuthorizationRule:
    """Returns the rule that rejects a request as a whole unless the client may do the operation on all the resources
    whose names `names_of` returns."""

    async def answer(call: Call[Q], handle: Handle) -> object:
        names = set(names_of(call.request))
        if len(await call.permitted(requirement, names)) == len(names):
            return await handle(call)
        return await reject(call, denial(requirement))

    return AuthorizationRule((requirement,), f"for every {word(requirement)}", answer)


class RequestTopic(Protocol):
    """A topic of a request."""

    name: str


class IdentifiedTopic(RequestTopic, Protocol):
    """A topic of a request that may name it by id."""

    topic_id: Uuid


def named(_: object, topic: RequestTopic) -> str:
    """Returns the name of a topic in a request."""
    return topic.name


def itself(_: object, name: str) -> str:
    """Returns an entry of a request that consists only of a name."""
    return name


def named_since(first_id_version: int) -> Callable[[Any, Any], str | None]:
    """Returns a function for requests that name topics by id since a version. It returns the name of a topic, or None
    for an unknown id."""

    def name_of(call: Call[Q], topic: IdentifiedTopic) -> str | None:
        if call.version < first_id_version:
            return topic.name
        image = call.topic_by_id(topic.topic_id)
        return None if image is None else image.name

    return name_of


def named_once(names: Iterable[str]) -> set[str]:
    """Returns the names that occur once: the handler rejects the others."""
    return {name for name, count in Counter(names).items() if count == 1}


def each(
    requirement: Requirement,
    requested: str = "topics",
    answered: str = "topics",
    name_of: Callable[[Any, Any], str | None] = named,
    *,
    rejected: Callable[[Sequence[Any]], Iterable[Any]] = lambda denied: denied,
    beside_error: bool = True,
) -> AuthorizationRule:
    """Returns the rule that rejects entries of a request one by one. `requested` and `answered` are the fields of
    request and response with the entries. `name_of` takes the call and an entry and returns the name of its resource,
    or None for an entry that the handler rejects. `rejected` returns the denied entries that the response repeats.
    Without `beside_error` a response that has an error of its own repeats none."""

    async def answer(call: Call[Q], handle: Handle) -> object:
        permitted, denied = await split(call, requirement, getattr(call.request, requested), partial(name_of, call))
        setattr(call.request, requested, permitted)
        response = await handle(call)
        if beside_error or not response.error_code:
            error = denial(requirement)
            await add_rejections(call, response, answered, list(rejected(denied)), error)
        return response

    return AuthorizationRule((requirement,), f"for each {word(requirement)}", answer)


def unless(requirement: Requirement, rule: AuthorizationRule) -> AuthorizationRule:
    """Returns the rule that applies another rule unless the client may do an operation on the cluster."""

    async def answer(call: Call[Q], handle: Handle) -> object:
        may = call.may(requirement, quiet=True)
        return await (handle if may else before(rule.answer, handle))(call)

    return AuthorizationRule((requirement, *rule.requirements), f"unless {requirement} is allowed: {rule.how}", answer)


def own(
    function: Callable[[Any, Handle], Coroutine[Any, Any, Any]], *requirements: Requirement, always: bool = False
) -> AuthorizationRule:
    """Returns the rule of an API that has its own function: (call, handler) → the response. The function's docstring
    begins with AUTHORIZES, and its rest describes the rule in the documentation. With `always` it also validates the
    request."""
    how = " ".join((function.__doc__ or "").split()).removeprefix(AUTHORIZES).rstrip(".")
    return AuthorizationRule(requirements, how, function, always)


def in_order(first: AuthorizationRule, *others: AuthorizationRule) -> AuthorizationRule:
    """Returns the rule that applies several rules in order: each to the entries that the previous rules have left."""
    if not others:
        return first
    rest = in_order(*others)

    async def answer(call: Call[Q], handle: Handle) -> object:
        return await before(first.answer, before(rest.answer, handle))(call)

    requirements, how = (*first.requirements, *rest.requirements), f"{first.how}; then {rest.how}"
    return AuthorizationRule(requirements, how, answer, first.always or rest.always)


class OfGroup(Protocol):
    """A request about a group, or a group of a request."""

    @property
    def group_id(self) -> str | None: ...


class OfTransaction(Protocol):
    """A request about a transaction."""

    transactional_id: str


def of_group(request: OfGroup) -> str:
    """Returns the name of the group that a request is about."""
    return request.group_id or ""


def of_transaction(request: OfTransaction) -> str:
    """Returns the transactional id that a request is about."""
    return request.transactional_id


# Their parts


async def split(
    call: Call[Q], requirement: Requirement, entries: Sequence[T], name_of: Callable[[T], str | None]
) -> tuple[list[T], list[T]]:
    """Returns the entries for which the client is authorized, and the other entries."""

    def is_denied(entry: T) -> bool:
        name = name_of(entry)
        return name is not None and not call.may(requirement, name)

    denied = await call.turns().map(is_denied, entries)
    return list(compress(entries, map(not_, denied))), list(compress(entries, denied))


async def reject(call: Call[Q], error: KafkaError) -> object:
    """Returns the response that rejects all of a request; a thread makes it if the request is large."""
    make = partial(rejection, call.api, call.request, call.version, error)
    threads = call.host.codec_threads.of(call.context.size_bytes)
    return await threads.call(make) if call.context.is_large else make()


async def add_rejections(call: Call[Q], answer: object, answered: str, entries: Sequence[T], error: KafkaError) -> None:
    """Adds the answers that reject entries of a request to a list of the response, or of an entry of it."""
    builder = RejectionBuilder(call.version, error, explains=call.api.explains)
    entry_of = partial(builder.entry_of, type(answer), answered)
    getattr(answer, answered).extend(await call.turns().map(entry_of, entries))


def as_requested(requested: Sequence[Q], answered: Iterable[Q], answers: Iterable[T]) -> list[T]:
    """Returns the answers in the order of the request's entries; `answered` has the entry for each answer."""
    places = {id(entry): place for place, entry in enumerate(requested)}
    in_places = zip((places[id(entry)] for entry in answered), answers, strict=True)
    return [answer for _, answer in sorted(in_places, key=itemgetter(0))]
