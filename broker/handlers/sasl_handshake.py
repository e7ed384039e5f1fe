"""SaslHandshake (17): a client chooses the SASL mechanism by which it will authenticate.

After v0 the mechanism's messages follow as frames of their own (KIP-43), after v1 in SaslAuthenticate (KIP-152). An
authenticated client may reauthenticate on this connection if its session expires (KIP-368).
"""

from __future__ import annotations

from broker.dispatch.api import Api
from broker.dispatch.call import Call
from broker.request.authorisation import PUBLIC
from broker.security.authentication import Authentication
from protocol.errors import ErrorCode
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


async def sasl_handshake(call: Call[SaslHandshakeRequest]) -> SaslHandshakeResponse:
    """Answers with the listener's mechanisms; a client that chooses another mechanism gets an error, and is
    disconnected."""
    authentication = call.connection.authentication
    if not isinstance(authentication, Authentication):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    code = authentication.handshake(call.request.mechanism, call.version)
    if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        call.connection.refused_because = f"the listener has no SASL mechanism {call.request.mechanism[:100]!r}"
        await authentication.delay_failure()
    mechanisms = [] if code is ErrorCode.ILLEGAL_SASL_STATE else list(authentication.mechanisms)
    return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)


API = Api(SaslHandshakeRequest, SaslHandshakeResponse, sasl_handshake, authorize=PUBLIC)
