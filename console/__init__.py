"""The console: shows and operates a Kafka cluster in the browser (docs/console.md).

It is a process of its own, and reaches brokers through `client/` and the data functions of `commands/`, as the commands
do. Pages are rendered here; htmx and server-sent events update parts of them. `guard.py` has the checks that every
request passes, `app.py` the table of routes, `changes.py` the way of a change from its plan to the audit log, and
`pages/` a module for each page.
"""
