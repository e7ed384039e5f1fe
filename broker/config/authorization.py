"""Authorization: the authorizer, and the super users."""

from __future__ import annotations

from typing import Final

from protocol.config import BOOLEAN, STRING, Check, Config, option

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class AuthorizationOptions(Config):
    """Authorization: the authorizer, and the super users."""

    authorizer_class_name = option(
        STRING,
        "",
        f"{STANDARD_AUTHORIZER} checks every request against the cluster's ACLs; empty allows every request.",
        check=Check("non-null string", lambda name, value: None),
        importance="low",
    )
    super_users = option(
        STRING, "", "Principals that may do everything, such as User:alice;User:bob.", importance="low", internal=True
    )
    allow_everyone_if_no_acl_found = option(
        BOOLEAN, False, "Allow all operations on a resource that no ACL matches.", importance="low", internal=True
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
