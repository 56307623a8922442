#!/bin/bash
# Puts the official image's variables into cassandra.yaml, gives root's folders to cassandra, and becomes cassandra.
set -e
if [ "$#" -eq 0 ] || [ "${1#-}" != "$1" ]; then
    set -- cassandra -f "$@"
fi
if [ "$1" = cassandra ] && [ "$(id -u)" = 0 ]; then
    find /var/lib/cassandra /var/log/cassandra "$CASSANDRA_CONF" ! -user cassandra -exec chown cassandra '{}' +
    exec setpriv --reuid=cassandra --regid=cassandra --init-groups "$0" "$@"
fi
if [ "$1" = cassandra ]; then
    own="$(hostname -i | cut -d ' ' -f 1)"
    : "${CASSANDRA_RPC_ADDRESS=0.0.0.0}" "${CASSANDRA_LISTEN_ADDRESS=$own}"
    : "${CASSANDRA_BROADCAST_ADDRESS=$CASSANDRA_LISTEN_ADDRESS}"
    : "${CASSANDRA_BROADCAST_RPC_ADDRESS:=$CASSANDRA_BROADCAST_ADDRESS}" "${CASSANDRA_SEEDS:=$CASSANDRA_BROADCAST_ADDRESS}"
    yaml="$(sed -E "s/(- seeds:).*/\1 \"$CASSANDRA_SEEDS\"/" "$CASSANDRA_CONF/cassandra.yaml")"
    for name in broadcast_address broadcast_rpc_address cluster_name endpoint_snitch listen_address num_tokens rpc_address; do
        variable="CASSANDRA_${name^^}"
        if [ -n "${!variable}" ]; then
            yaml="$(sed -E "s/^(# )?($name:).*/\2 ${!variable}/" <<< "$yaml")"
        fi
    done
    cat <<< "$yaml" > "$CASSANDRA_CONF/cassandra.yaml"
    for name in dc rack; do
        variable="CASSANDRA_${name^^}"
        if [ -n "${!variable}" ]; then
            sed -i -E "s/^($name=).*/\1${!variable}/" "$CASSANDRA_CONF/cassandra-rackdc.properties"
        fi
    done
fi
exec "$@"
