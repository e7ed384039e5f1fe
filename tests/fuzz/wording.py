"""Explains error messages that differ although the code is the same."""

from __future__ import annotations

import re
from typing import Any, Final

from protocol.errors import error_code
from tests.fuzz.twins import Answers
from tests.interop.conformance.compare import Difference

OF_A_MESSAGE: Final = re.compile(r"(.*\.)((?:acknowledge_|batch_index_)?error_)message")
CLUSTER_ID: Final = re.compile(r'cluster id "[\w-]{22}"')
ENDPOINT_MISSING: Final = "Add voter request didn't include the endpoint ("
STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")

WITH_THE_CODE: Final = "the error code is another, and its message with it"
OWN_WORDS: Final = "what a code means is told in the project's own words"
NO_WORDS: Final = "here it is told what is wrong, where Apache Kafka has a code alone"
ONE_OF_SEVERAL: Final = "of several faults Apache Kafka tells the first of a hash map"
OF_OTHER_CLUSTERS: Final = "each names its own cluster's id"

WITHOUT_WORDS: Final = frozenset({
    "ConsumerGroupDescribeRequest", "ShareAcknowledgeRequest", "ShareFetchRequest", "ShareGroupDescribeRequest",
    "ShareGroupHeartbeatRequest", "WriteShareGroupStateRequest",
})  # fmt: skip
"""Requests for which Apache Kafka returns no message with some or all errors."""

PARTS_AT_FAULT: Final = {
    "AlterConfigsRequest": ("resources", "configs"),
    "IncrementalAlterConfigsRequest": ("resources", "configs"),
    "CreateTopicsRequest": ("topics", "configs"),
    "UpdateFeaturesRequest": ("", "feature_updates"),
}
"""For requests whose error message names the wrong part: the field with the list of entries, and the entry's field with
the list of parts."""


def wording(difference: Difference, answers: Answers) -> str | None:
    """Returns the reason why a message may differ; None for any other difference, or without a known reason."""
    message = OF_A_MESSAGE.fullmatch(difference.path)
    if message is None:
        return None
    at_code = f"{message[1]}{message[2]}code"
    code, their_code = value_at(answers.ours, at_code), value_at(answers.theirs, at_code)
    if code != their_code:
        return WITH_THE_CODE
    return why_in_other_words(type(answers.request).__name__, answers.request, code, difference)


def why_in_other_words(api: str, request: Any, code: int, difference: Difference) -> str | None:
    ours, theirs = difference.ours, difference.theirs
    if isinstance(ours, str) and ours == error_code(code).message:
        return OWN_WORDS
    if theirs is None and isinstance(ours, str) and api in WITHOUT_WORDS:
        return NO_WORDS
    if isinstance(ours, str) and isinstance(theirs, str):
        if CLUSTER_ID.sub("", ours) == CLUSTER_ID.sub("", theirs):
            return OF_OTHER_CLUSTERS
        if ours.startswith(ENDPOINT_MISSING) and theirs.startswith(ENDPOINT_MISSING):
            return OWN_WORDS
        if names_several_faults(api, request):
            return ONE_OF_SEVERAL
    return None


def value_at(value: Any, path: str) -> Any:
    """Returns the value at the path of a difference."""
    for name, index in STEP.findall(path):
        value = value[name] if name else value[int(index)]
    return value


def names_several_faults(api: str, request: Any) -> bool:
    if api not in PARTS_AT_FAULT:
        return False
    owners, parts = PARTS_AT_FAULT[api]
    return any(len(getattr(owner, parts)) > 1 for owner in (getattr(request, owners) if owners else [request]))
