#!/bin/sh
# The day from which on an order makes a customer active: 90 days before the day that --on names.
set -eu
on=today
while [ $# -gt 0 ]; do
    case $1 in
        --on) on=$2; shift 2 ;;
        *) echo "active_since.sh --on YYYY-MM-DD" >&2; exit 2 ;;
    esac
done
date -u -d "$on - 90 days" +%F
