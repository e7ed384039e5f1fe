"""The cluster client of the commands: settings, connections and partition leaders."""
