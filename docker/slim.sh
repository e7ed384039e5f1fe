#!/bin/sh
# Removes what a broker's container never uses from the base image: package managers, other languages, setuid programs,
# documentation, and the parts of Python that are for developers. Licences in /usr/share/doc stay, and dpkg's list of
# packages, by which scanners find vulnerabilities.
set -eu
cd /
rm -rf usr/lib/*/gconv usr/lib/*/libperl* usr/lib/*/perl* usr/bin/perl* usr/share/perl* \
    usr/share/man usr/share/locale usr/share/info usr/share/bug usr/share/lintian usr/share/zoneinfo \
    usr/bin/apt* usr/lib/apt usr/lib/*/libapt-* etc/apt usr/bin/dpkg* usr/lib/dpkg usr/share/dpkg var/lib/dpkg/info \
    var/lib/apt var/cache/* var/log/*
for python in usr/lib/python3* usr/local/lib/python3*; do
    [ -d "$python" ] || continue
    rm -rf "$python"/ensurepip "$python"/idlelib "$python"/lib2to3 "$python"/pydoc_data "$python"/test \
        "$python"/tkinter "$python"/turtledemo "$python"/config-* "$python"/site-packages/pip* \
        "$python"/site-packages/setuptools* "$python"/site-packages/wheel*
done
find usr/share/doc -type f ! -name copyright -delete
find / -xdev -type f \( -perm -4000 -o -perm -2000 \) -delete
