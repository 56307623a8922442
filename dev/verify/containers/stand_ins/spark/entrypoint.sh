#!/bin/bash
# `driver ARGUMENTS`: spark-submit in client mode. The official entry point starts executors too, which need Kubernetes.
set -e
if [ "$1" != driver ]; then
    echo "This stand-in starts drivers only." >&2
    exit 2
fi
shift
exec tini -s -- "$SPARK_HOME/bin/spark-submit" --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --deploy-mode client "$@"
