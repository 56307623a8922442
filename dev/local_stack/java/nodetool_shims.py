"""Two small Java classes for nodetool, compiled once.

RmiNames: JMX looks its server up by a JNDI name, `rmi://host:port/jmxrmi`, for which PyPI's trimmed JRE lacks the
module jdk.naming.rmi; this asks the RMI registry itself. ClientTool: the NodeTool of 3.11 asks a DatabaseDescriptor
that is not initialised for its disk failure policy when it runs on Java 11.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.process.locks import locked
from dev.local_stack.process.paths import local_folder

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = {
    "RmiNames": """
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.rmi.registry.LocateRegistry;
import java.util.Hashtable;
import javax.naming.Context;
import javax.naming.spi.InitialContextFactory;

public final class RmiNames implements InitialContextFactory {
    public Context getInitialContext(Hashtable<?, ?> environment) {
        InvocationHandler names = (context, method, arguments) -> {
            if (!method.getName().equals("lookup")) return null;
            URI name = URI.create(arguments[0].toString());
            return LocateRegistry.getRegistry(name.getHost(), name.getPort()).lookup(name.getPath().substring(1));
        };
        return (Context) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Context.class}, names);
    }
}
""",
    "ClientTool": """
public final class ClientTool {
    public static void main(String[] arguments) throws Exception {
        Class.forName("org.apache.cassandra.config.DatabaseDescriptor").getMethod("clientInitialization").invoke(null);
        Class<?> tool = Class.forName("org.apache.cassandra.tools.NodeTool");
        tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
    }
}
""",
}


def shims_folder(report: Callable[[str], None] = print) -> Path:
    """A folder for the class path with the compiled classes. Raises CdcError(STACK_MISSING)."""
    digest = hashlib.sha256("".join(SOURCES.values()).encode()).hexdigest()[:8]
    folder = local_folder() / "jre" / f"shims-{digest}"
    with locked(folder):
        if not folder.exists():
            _compile(folder, report)
    return folder


def _compile(folder: Path, report: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        classes = Path(temporary) / "classes"
        sources = [Path(temporary) / f"{name}.java" for name in SOURCES]
        for source in sources:
            source.write_text(SOURCES[source.stem])
        compile_java(sources, classes, report=report)
        classes.rename(folder)
