"""The words after `odradek`: each module declares the actions of one."""
