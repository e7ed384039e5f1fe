"""SaslAuthenticate (36): carries a message of the SASL mechanism that SaslHandshake chose, and its answer (KIP-152). v1
adds the session's lifetime (KIP-368), v2 is flexible. After connection.failed.authentication.delay.ms a client that
failed gets an error, which doesn't reveal the existing users, and is disconnected.
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.request.authorisation import PUBLIC
from broker.security.authentication import Authentication, AuthenticationState
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.sasl.exchange import SaslError

ALREADY = "SaslAuthenticate request received after successful authentication"


async def sasl_authenticate(call: Call[SaslAuthenticateRequest]) -> SaslAuthenticateResponse:
    """Handles a message. After the last message the connection is authenticated as the user."""
    authentication = call.connection.authentication
    if not isinstance(authentication, Authentication) or authentication.state is not AuthenticationState.MESSAGES:
        return rejection(ErrorCode.ILLEGAL_SASL_STATE, ALREADY)
    try:
        step = await authentication.step(call.request.auth_bytes)
    except SaslError as error:
        call.connection.refused_because = f"authentication by {authentication.mechanism} failed: {error.reason}"
        await authentication.delay_failure()
        return rejection(ErrorCode.SASL_AUTHENTICATION_FAILED, message_of(error, authentication))
    lifetime_ms = authentication.lifetime_ms if step.identity is not None else 0
    return SaslAuthenticateResponse(
        error_code=0, error_message="", auth_bytes=step.answer or b"", session_lifetime_ms=lifetime_ms
    )


def message_of(error: SaslError, authentication: Authentication) -> str:
    """Returns the error message for a client that failed to authenticate."""
    if error.client_message is not None:
        return error.client_message
    what = "re-authentication" if authentication.is_repeated else "authentication"
    return (
        f"Authentication failed during {what} due to invalid credentials with SASL mechanism {authentication.mechanism}"
    )


def rejection(code: ErrorCode, message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=message, auth_bytes=b"")


API = Api(SaslAuthenticateRequest, SaslAuthenticateResponse, sasl_authenticate, authorize=PUBLIC)
