"""Dispatch: from a frame through the API's row to its handler, and from an error to the response."""
