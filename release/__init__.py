"""Builds and tests what is released: wheels, the image, the Debian package. See CONTRIBUTING.md."""
