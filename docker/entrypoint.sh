#!/bin/sh
# The container's command is that of `odradek`, or a shell's: Testcontainers' modules have one wait for their script.
case "${1-}" in
    sh | bash | /*) exec "$@" ;;
    *) exec odradek "$@" ;;
esac
