"""The command words after `odradek`: each module declares the actions of one word."""
