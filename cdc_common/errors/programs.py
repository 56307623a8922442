"""Codes of every program, and of the servers that the project itself starts."""

from __future__ import annotations

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import COMPILED, MEMORY

EXPLANATIONS: dict[Code, Explanation] = {
    Code.CONFIG_UNKNOWN_KEY: Explanation(
        "Unknown setting",
        meaning="""cdc.toml, a `CDC_…__…` variable or `--set` names a table or a key that this version does not have.
        The program refuses it: a mistyped key would silently leave the default in force.""",
        cause="A typing error, or a setting that an upgrade has renamed.",
        fix="""Correct or remove it. The message names the place and the most similar setting.
        [configuration.md](configuration.md) lists all settings, the changelog lists renamed ones.""",
    ),
    Code.CONFIG_INVALID: Explanation(
        "Invalid value of a setting",
        meaning="""A setting's value has the wrong type, is out of bounds, or contradicts another setting; or a file
        that it names holds no certificate.""",
        cause="""cdc.toml is read strictly: `port = "9042"` is a string, not a number. Variables and flags are text, and
        are converted. A secret and its `_file` must not both be set. A CA file needs a connection with TLS.""",
        fix="""Correct the value; the message names the place and what the setting takes. `cassandra-publisher config
        show` prints where each value comes from, `cassandra-publisher config check` checks a configuration before a
        deployment. Every program has both commands.""",
    ),
    Code.CONFIG_FILE: Explanation(
        "Unreadable settings file",
        meaning="The file that `--config` or `CDC_CONFIG` names, or the file of a secret, cannot be read.",
        cause="""It does not exist, this user may not read it, or it is not TOML. The message then has the line and the
        column.""",
        fix="""Correct the path, the mode or the line. Only the program's user needs to read a secret's file (mode
        0600).""",
    ),
    Code.PORT_IN_USE: Explanation(
        "Port in use",
        meaning="Another process listens on the address that the program is set to listen on.",
        cause="Most often an earlier instance of the program still runs.",
        fix="""`ss -ltnp` shows the process. Stop it, or set another port. After a new `schematizer.port`, set
        `registry.url` of the other programs too. The local stack takes free ports, unless its settings name ports.""",
    ),
    Code.STACK_MISSING: Explanation(
        "Incomplete local stack",
        meaning="The local stack lacks something. The message names it, and the command that fixes it.",
        cause="""There is no Java of the right version, no jars of Cassandra or Kafka, or no running stack (`make
        follow` and `make cqlsh` join the one of `make stack`); or an environment variable has an unknown value. A jar
        whose SHA-256 is not in `dev/local_stack/java/locks` was changed on its way.""",
        fix="""Run that command. It installs into `.local`: remove a folder there to fetch it again. Jars come from
        Maven Central, or as the ivysettings.xml says that `CDC_IVY_SETTINGS` names. After a change of versions, `python
        -m dev.tools.jar_locks` and `python -m dev.tools.python_lock` write the lock files.""",
    ),
    Code.PROGRAM_UNREACHABLE: Explanation(
        "Program unreachable",
        meaning="""A command such as `cassandra-publisher status` asks the running program by HTTP, at its
        `operations_address` and `operations_port`. It got no usable answer.""",
        cause="""The program does not run, another program or another version listens there, the command reads another
        settings file, or the port is 0, which switches the address off.""",
        fix="""Look at `systemctl status` and the program's log. Run `cassandra-materializer status` and `retry` on the
        machine of the Spark driver. Without a driver, `cassandra-materializer state ls` shows offsets and lag.""",
    ),
    Code.NOT_COMPILED: Explanation(
        "Program not compiled",
        meaning=f"""A warning: the publisher or the materializer runs without the native core (metric `cdc_compiled`:
        0). The results are the same. The CPU use is several times higher ({COMPILED}).""",
        cause="""The core was not compiled at the installation (`pip install -v` and `make install` say why), or the
        program's environment has `CDC_NATIVE=0`, which switches the core off.""",
        fix="""Install a wheel or an archive of `make dist`. Or install Python's headers and a C compiler (Debian:
        `apt-get install python3-dev gcc libc6-dev`; on Linux pip brings a compiler, but no headers), then install from
        the source again. If you suspect the core, set `CDC_NATIVE=0` and report what differs.""",
    ),
    Code.MEMORY: Explanation(
        "High memory use of the publisher",
        meaning="""An alert: for 15 minutes the publisher has held more than 128 MiB of resident memory (a filler: 96
        MiB). Its unit and its pod end it at 512 MiB (128 MiB) and restart it. Nothing is lost; messages in flight are
        sent twice.""",
        cause=f"""Mutations of several MiB, or very many tables: one row of 20 MiB takes up to 189.4 MiB, one mutation
        of 60,000 rows 170.5 MiB. Messages that wait for Kafka are not the cause, because their number and size are
        limited ({MEMORY}).""",
        fix="""If the data explain it, raise the limit and the alert's threshold. Otherwise note `cassandra-publisher
        status` and the log before you restart it, and report both.""",
    ),
    Code.SERVER_FAILED: Explanation(
        "Local stack server failed",
        meaning="""A Cassandra node, a Kafka broker or one of this project's programs in the local stack ended, or was
        not ready in time. The message has the last error of its log, or the log's end; `.run` has all of it. It does
        not concern your own clusters.""",
        cause="""Too little memory (see the preflight of `make demo`), a full disk, or a process of an earlier run on
        the same port.""",
        fix="Remove the cause that the log shows, and start the stack again.",
    ),
}
