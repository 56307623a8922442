"""Two small Java classes for nodetool, compiled once by Eclipse's compiler.

RmiNames: JMX looks its server up by a JNDI name, `rmi://host:port/jmxrmi`, for which PyPI's trimmed JRE lacks the
module jdk.naming.rmi; this asks the RMI registry itself. ClientTool: the NodeTool of 3.11 asks a DatabaseDescriptor
that nobody has initialised for its disk failure policy when it runs on Java 11.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_program.errors import CdcError, Code
from local_stack.jars import ECJ, class_path, install
from local_stack.java import find_java
from local_stack.locks import locked
from local_stack.paths import local_folder

if TYPE_CHECKING:
    from collections.abc import Callable

COMPILER_JAVA = 17
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
    install(ECJ, report)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        classes = Path(temporary) / "classes"
        command = [str(find_java(COMPILER_JAVA, report).executable), "-cp", class_path(ECJ)]
        command += ["org.eclipse.jdt.internal.compiler.batch.Main", "-8", "-nowarn", "-d", str(classes)]
        for name, text in SOURCES.items():
            source = Path(temporary) / f"{name}.java"
            source.write_text(text)
            command.append(str(source))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CdcError(Code.STACK_MISSING, f"nodetool's shims do not compile: {done.stderr}", "Install a JDK 17.")
        classes.rename(folder)
