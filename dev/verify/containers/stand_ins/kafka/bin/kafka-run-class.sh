#!/bin/sh
# shellcheck disable=SC2086 - the variables hold several options
exec java ${KAFKA_HEAP_OPTS:--Xmx256m} -XX:+UseSerialGC -XX:-UsePerfData -XX:TieredStopAtLevel=1 $KAFKA_LOG4J_OPTS \
    $KAFKA_OPTS -cp '/opt/kafka/libs/*' "$@"
