#!/bin/sh
# Denies changes outside of office hours. It fails closed: what it cannot find out is refused.
hour=$(date +%H) && day=$(date +%u) || { echo "the time is not known" >&2; exit 2; }
if [ "$day" -gt 5 ] || [ "$hour" -lt 8 ] || [ "$hour" -ge 18 ]; then
    echo "${HOOKPROXY_USER:-somebody} may change tickets on working days from 8 to 18 only. Say so to the user." >&2
    exit 2
fi
