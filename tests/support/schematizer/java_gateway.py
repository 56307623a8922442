"""A JVM of the test's own whose classes Python calls, by py4j, which comes with PySpark."""

from __future__ import annotations

from pathlib import Path

import py4j.java_gateway
import py4j.protocol
import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from dev.local_stack.java.runtime import find_java

JARS = Path(pyspark.__file__).parent / "jars"


def java_gateway(class_path: str, *options: str) -> JavaGateway:
    """options: more of the JVM's options.

    `shutdown` ends its JVM. Exceptions are py4j's: PySpark, once it has had a session in this process, would ask the
    session's JVM about them.
    """
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
    (py4j_jar,) = JARS.glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j_jar),
        classpath=class_path,
        java_path=str(find_java(17).executable),
        javaopts=[
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
            *options,
        ],
        die_on_exit=True,
        enable_auth=True,
    )
    return JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
