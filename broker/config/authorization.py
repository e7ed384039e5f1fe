"""Authorization: the authorizer, and the super users."""

from __future__ import annotations

from typing import Final

from protocol.config import BOOLEAN, STRING, Check, Config, option

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class AuthorizationOptions(Config):
    """Authorization: the authorizer, and the super users."""

    authorizer_class_name = option(
        "authorizer.class.name",
        STRING,
        "",
        check=Check("non-null string", lambda name, value: None),
        importance="low",
        doc=f"{STANDARD_AUTHORIZER} checks every request against the cluster's ACLs; empty allows every request.",
    )
    super_users = option(
        "super.users",
        STRING,
        "",
        importance="low",
        internal=True,
        doc="Principals that may do everything, such as User:alice;User:bob.",
    )
    allow_everyone_if_no_acl_found = option(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        importance="low",
        internal=True,
        doc="Allow all operations on a resource that no ACL matches.",
    )

    @property
    def super_user_names(self) -> frozenset[str]:
        """The super users, as User:name."""
        return frozenset(name.strip() for name in self.super_users.split(";") if name.strip())


def authorizer_problem(config: AuthorizationOptions) -> str | None:
    """Returns the problem of the authorizer's options; None if there is none."""
    if config.authorizer_class_name not in ("", STANDARD_AUTHORIZER):
        name = config.authorizer_class_name
        return f"authorizer.class.name is {name}; Java classes are not loaded, only {STANDARD_AUTHORIZER} is supported"
    malformed = sorted(name for name in config.super_user_names if ":" not in name)
    if malformed:
        return f"super.users: {malformed[0]!r} is not a principal such as User:alice; separate several by semicolons"
    return None
