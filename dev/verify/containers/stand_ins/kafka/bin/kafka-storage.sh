#!/bin/sh
exec "${0%/*}/kafka-run-class.sh" kafka.tools.StorageTool "$@"
