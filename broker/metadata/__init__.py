"""This broker's part in the cluster: the metadata log, the controller over it, and the node itself."""
