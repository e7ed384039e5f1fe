"""The command line of every program: the table of commands, the flags that they share, parsing, help and completion.

It imports only the standard library. A row of the table names the module of a command, which is imported when the
command is called.
"""
