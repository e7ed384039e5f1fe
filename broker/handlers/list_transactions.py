"""ListTransactions (66): lists the transactional ids that this broker coordinates, by state and producer id (KIP-664).

v1 filters by the least duration of a transaction (KIP-994), v2 by a pattern of ids, a regular expression of RE2 that
must match the whole id (KIP-1152).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from broker.dispatch.api import Api, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import own
from broker.request.authorisation import DESCRIBE_TRANSACTIONAL_ID
from coordinator.group import regex
from coordinator.transaction.state import BY_TEXT
from coordinator.transaction.transaction import Transaction
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse, TransactionState


async def list_transactions(call: Call[ListTransactionsRequest]) -> ListTransactionsResponse:
    request = call.request
    turns, texts = call.turns(), dict[str, None]()
    await turns.map(texts.setdefault, request.state_filters)
    unknown = [text for text in texts if text not in BY_TEXT]
    passes = filter_of(request, texts, call.now_ms)
    transactions = await turns.find(
        lambda transaction: described(transaction) if passes(transaction) else None,
        list(call.broker.transactions.all()),
    )
    call.announce(len(transactions))
    return ListTransactionsResponse(error_code=0, unknown_state_filters=unknown, transaction_states=transactions)


def described(transaction: Transaction) -> TransactionState:
    return TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.text,
    )


def filter_of(
    request: ListTransactionsRequest, state_texts: Collection[str], now_ms: int
) -> Callable[[Transaction], bool]:
    """Returns the request's filter of transactions. Raises INVALID_REGULAR_EXPRESSION."""
    states = {state for text, state in BY_TEXT.items() if text in state_texts}
    producer_ids = frozenset(request.producer_id_filters)
    matches = matcher(request.transactional_id_pattern)

    def passes(transaction: Transaction) -> bool:
        return (
            (not producer_ids or transaction.producer_id in producer_ids)
            and (not state_texts or transaction.state in states)
            and (request.duration_filter < 0 or now_ms - transaction.started_ms > request.duration_filter)
            and (matches is None or matches(transaction.transactional_id))
        )

    return passes


def matcher(pattern: str | None) -> Callable[[str], bool] | None:
    if not pattern:
        return None
    try:
        compiled = regex.compiled(pattern)
    except regex.InvalidPattern as error:
        message = f"Transaction ID pattern `{pattern}` is not a valid regular expression: {error}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from None
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None


async def listed_for(call: Call[ListTransactionsRequest], handle: Handle) -> ListTransactionsResponse:
    """Authorizes the client for each transactional id in the list; denied ids are left out."""
    response: ListTransactionsResponse = await handle(call)
    states = response.transaction_states
    names = await call.permitted(DESCRIBE_TRANSACTIONAL_ID, (state.transactional_id for state in states), quiet=True)
    response.transaction_states = [state for state in states if state.transactional_id in names]
    return response


API = Api(
    ListTransactionsRequest,
    ListTransactionsResponse,
    list_transactions,
    authorize=own(listed_for, DESCRIBE_TRANSACTIONAL_ID),
)
