"""UpdateFeatures (57): changes the finalized level of a feature of the cluster (KIP-584).

v1 adds validate-only and the kind of upgrade, v2 leaves out per-feature results (KIP-1022).
"""

from __future__ import annotations

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CLUSTER
from protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

API = Api(UpdateFeaturesRequest, UpdateFeaturesResponse, answered_by=CONTROLLER, authorize=whole(ALTER_CLUSTER))
