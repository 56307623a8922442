"""The tests that run the commands of the docs. Add a line here for a command that is new there.

OWN: the commands of our programs. test_commands_in_docs runs each of them as shown, up to the function that does the
work; the test named here runs that function on the servers or files that it needs. MAKE: make's targets. OTHERS: the
commands of others, by what begins them; RUN ones with the test, OPERATORS with the reason why no test can.
"""

from __future__ import annotations

from typing import NamedTuple


class Work(NamedTuple):
    """`function`: module:name that a command calls. `test`: the file that runs it, which contains each of `texts`."""

    function: str
    test: str
    texts: tuple[str, ...]


class Run(NamedTuple):
    """`test`: the file that runs the command, which contains each of `texts`."""

    test: str
    texts: tuple[str, ...]


_STATE = "tests/servers/materializer/commands/test_state.py"
_RESHARD = "tests/servers/materializer/commands/test_reshard.py"
_DEAD_LETTERS = "tests/servers/materializer/output/test_dead_letters.py"
_QUARANTINE = "tests/servers/publisher/test_quarantine.py"
_REGISTRY = "tests/unit/schematizer/commands/test_commands.py"
_TOPIC_FILES = "tests/unit/schematizer/topic_files/test_files.py"
_TOPIC_SERVERS = "tests/servers/schematizer/test_topics_on_kafka.py"
_KEYS = "tests/unit/schematizer/security/test_secured_process.py"
_ARCHIVE = "tests/servers/archive/test_program.py"
_JOINERY = "tests/unit/joinery/commands/test_commands.py"
_WAREHOUSE = "tests/servers/warehouse/test_commands.py"
_JOB_STATUS = "tests/unit/materializer/job/test_status.py"

OWN: dict[str, Work] = {
    "cassandra-publisher run": Work(
        "publisher.app:run_publisher", "tests/support/publisher/publisher_process.py", ("ProgramProcess", '"publisher"')
    ),
    "cassandra-publisher check": Work(
        "publisher.losses.loss_watch:print_findings",
        "tests/servers/publisher/test_loss_rules.py",
        ('"publisher"', '"check"'),
    ),
    "cassandra-publisher status": Work(
        "cdc_common.program.status_client:fetch_status",
        "tests/servers/publisher/test_operations.py",
        ('command("status"',),
    ),
    "cassandra-publisher snapshot": Work(
        "publisher.commands.snapshot:request_snapshot",
        "tests/servers/publisher/test_snapshot.py",
        ('command("snapshot", table',),
    ),
    "cassandra-publisher quarantine ls": Work(
        "publisher.commands.quarantine:list_mutations", _QUARANTINE, ('command("quarantine", "ls")',)
    ),
    "cassandra-publisher quarantine replay": Work(
        "publisher.commands.quarantine:replay_mutations", _QUARANTINE, ('command("quarantine", "replay")',)
    ),
    "cassandra-publisher quarantine discard": Work(
        "publisher.commands.quarantine:discard_mutation", _QUARANTINE, ('"discard"',)
    ),
    "cassandra-publisher observe": Work(
        "publisher.commands.observe:observe_log",
        "tests/servers/publisher/test_operations.py",
        ('command("observe", "--seconds"',),
    ),
    "cassandra-filler run": Work(
        "filler.app:run_filler", "tests/support/filler/process.py", ("ProgramProcess", '"filler"')
    ),
    "cassandra-filler status": Work(
        "cdc_common.program.status_client:fetch_status", "tests/servers/filler/test_filler.py", ('command("status"',)
    ),
    "cassandra-materializer run": Work(
        "materializer.job.run:run_job", "tests/support/materializer/spark_run.py", ("run_job",)
    ),
    "cassandra-materializer status": Work(
        "stream_runtime.commands.job_status:print_status", _JOB_STATUS, ('ask(port, "status"',)
    ),
    "cassandra-materializer retry": Work(
        "stream_runtime.commands.job_status:retry", _JOB_STATUS, ('ask(port, "retry"',)
    ),
    "cassandra-materializer check": Work(
        "materializer.commands.consumer_check:check_consumer",
        "tests/unit/materializer/commands/test_consumer_check.py",
        ('"check"', '"--for"', '"jdbc"'),
    ),
    "cassandra-materializer rebuild": Work(
        "materializer.commands.rebuild.command:rebuild_table",
        "tests/e2e/test_rebuild.py",
        ("materializer(stack", '"rebuild"', '"--yes"'),
    ),
    "cassandra-materializer resend": Work(
        "materializer.commands.resend:resend_table",
        "tests/servers/materializer/commands/test_resend.py",
        ("resend_table(", "is_confirmed=True"),
    ),
    "cassandra-materializer pack": Work(
        "stream_runtime.query.spark_archive:write_archive", "tests/e2e/test_spark_submit.py", ("write_archive(",)
    ),
    "cassandra-materializer audit": Work(
        "materializer.commands.audit.command:audit_table", "tests/e2e/test_audit.py", ("audit(", '"--repair"')
    ),
    "cassandra-materializer dead-letters ls": Work(
        "materializer.commands.dead_letters:list_dead_letters", _DEAD_LETTERS, ('"ls"',)
    ),
    "cassandra-materializer dead-letters replay": Work(
        "materializer.commands.dead_letters:replay_dead_letters", _DEAD_LETTERS, ('"replay"',)
    ),
    "cassandra-materializer dead-letters discard": Work(
        "materializer.commands.dead_letters:discard_dead_letter", _DEAD_LETTERS, ('"discard"',)
    ),
    "cassandra-materializer state ls": Work(
        "materializer.commands.state_list:list_states", _STATE, ('["state", "ls"',)
    ),
    "cassandra-materializer state verify": Work(
        "materializer.commands.state_verify:verify_states", _STATE, ('["state", "verify"',)
    ),
    "cassandra-materializer state show": Work(
        "materializer.commands.state_show:show_cassandra_partition", "tests/e2e/test_rebuild.py", ('"state", "show"',)
    ),
    "cassandra-materializer state reshard": Work(
        "materializer.commands.reshard.command:reshard_state", _RESHARD, ("reshard_state(", "dry_run=True")
    ),
    "cassandra-transformer run": Work(
        "transformer.job.run:run_transformers",
        "tests/servers/transformer/test_transformers.py",
        ('"transformer", "run"',),
    ),
    "cassandra-transformer check": Work(
        "transformer.job.run:check_transformers", "tests/servers/transformer/test_transformers.py", ('"check"',)
    ),
    "cassandra-transformer pack": Work(
        "stream_runtime.query.spark_archive:write_archive",
        "tests/unit/stream_runtime/query/test_spark_archive.py",
        ("write_archive(",),
    ),
    "cassandra-transformer status": Work(
        "stream_runtime.commands.job_status:print_status", _JOB_STATUS, ('ask(port, "status"',)
    ),
    "cassandra-transformer retry": Work(
        "stream_runtime.commands.job_status:retry", _JOB_STATUS, ('ask(port, "retry"',)
    ),
    "cassandra-joinery run": Work(
        "joinery.job.run:run_joins", "tests/servers/joinery/test_joins.py", ('"joinery", "run"',)
    ),
    "cassandra-joinery pack": Work(
        "stream_runtime.query.spark_archive:write_archive",
        "tests/unit/stream_runtime/query/test_spark_archive.py",
        ("write_archive(",),
    ),
    "cassandra-joinery status": Work(
        "stream_runtime.commands.job_status:print_status", _JOB_STATUS, ('ask(port, "status"',)
    ),
    "cassandra-joinery retry": Work("stream_runtime.commands.job_status:retry", _JOB_STATUS, ('ask(port, "retry"',)),
    "cassandra-joinery check": Work("joinery.commands.planned:print_check", _JOINERY, ('"check"',)),
    "cassandra-joinery try": Work(
        "joinery.commands.tried:print_trial", "tests/unit/joinery/commands/test_tried.py", ('"try"',)
    ),
    "cassandra-joinery audit": Work(
        "joinery.commands.audited:audit_joins", "tests/servers/joinery/test_audit.py", ("audited(",)
    ),
    "cassandra-joinery rebuild": Work(
        "joinery.commands.rebuilt:rebuild_joins", "tests/servers/joinery/test_rebuild.py", ("rebuild_joins(",)
    ),
    "cassandra-joinery plan": Work("joinery.commands.planned:print_plan", _JOINERY, ('"plan"',)),
    "cassandra-archive run": Work(
        "archive.job.run:run_archive", "tests/support/archive/archive_program.py", ('"run"',)
    ),
    "cassandra-archive check": Work("archive.commands.check:print_check", _ARCHIVE, ('"check"',)),
    "cassandra-archive plan": Work("archive.commands.plan:print_plan", _ARCHIVE, ('"plan"',)),
    "cassandra-archive verify": Work("archive.commands.verify:verify_ledger", _ARCHIVE, ('"verify"',)),
    "cassandra-archive pack": Work(
        "stream_runtime.query.spark_archive:write_archive",
        "tests/unit/stream_runtime/query/test_spark_archive.py",
        ("write_archive(",),
    ),
    "cassandra-archive status": Work(
        "stream_runtime.commands.job_status:print_status", _JOB_STATUS, ('ask(port, "status"',)
    ),
    "cassandra-archive retry": Work("stream_runtime.commands.job_status:retry", _JOB_STATUS, ('ask(port, "retry"',)),
    "cassandra-warehouse run": Work(
        "warehouse.job.run:run_warehouse", "tests/servers/warehouse/test_program.py", ('"run"',)
    ),
    "cassandra-warehouse write": Work(
        "warehouse.job.run:run_warehouse", "tests/servers/warehouse/test_objects_kill.py", ('"write"',)
    ),
    "cassandra-warehouse check": Work("warehouse.commands.check:print_check", _WAREHOUSE, ('"check"',)),
    "cassandra-warehouse plan": Work("warehouse.commands.plan:print_plan", _WAREHOUSE, ('"plan"',)),
    "cassandra-warehouse audit": Work("warehouse.commands.audit:audit_tables", _WAREHOUSE, ('"audit"',)),
    "cassandra-warehouse pause": Work("warehouse.commands.pause:pause_tables", _WAREHOUSE, ('"pause"',)),
    "cassandra-warehouse resume": Work("warehouse.commands.pause:pause_tables", _WAREHOUSE, ('"resume"',)),
    "cassandra-warehouse reload": Work("warehouse.commands.reload:reload_tables", _WAREHOUSE, ('"reload"',)),
    "cassandra-warehouse pack": Work(
        "stream_runtime.query.spark_archive:write_archive",
        "tests/unit/stream_runtime/query/test_spark_archive.py",
        ("write_archive(",),
    ),
    "cassandra-warehouse status": Work(
        "stream_runtime.commands.job_status:print_status", _JOB_STATUS, ('ask(port, "status"',)
    ),
    "cassandra-warehouse retry": Work("stream_runtime.commands.job_status:retry", _JOB_STATUS, ('ask(port, "retry"',)),
    "cassandra-schematizer serve": Work(
        "schematizer.server:serve_registry",
        "tests/support/schematizer/registry_process.py",
        ('"schematizer"', '"serve"'),
    ),
    "cassandra-schematizer backup": Work("schematizer.model.backup:write_backup", _REGISTRY, ('"backup"',)),
    "cassandra-schematizer restore": Work("schematizer.model.backup:restore_backup", _REGISTRY, ('"restore"',)),
    "cassandra-schematizer import": Work(
        "schematizer.commands.imports:import_registry",
        "tests/unit/schematizer/importing/test_import.py",
        ('"import"', '"--dry-run"'),
    ),
    "cassandra-schematizer docs check": Work(
        "schematizer.commands.documentation:check", _REGISTRY, ('"docs", "check"',)
    ),
    "cassandra-schematizer docs apply": Work(
        "schematizer.commands.documentation:apply", _REGISTRY, ('"docs", "apply"',)
    ),
    "cassandra-schematizer docs comments": Work(
        "schematizer.commands.documentation:comments",
        "tests/servers/schematizer/test_cassandra_tables.py",
        ('"docs", "comments"',),
    ),
    "cassandra-schematizer models check": Work("schematizer.commands.models:check", _REGISTRY, ('"models", "check"',)),
    "cassandra-schematizer models register": Work(
        "schematizer.commands.models:register", _REGISTRY, ('"models"', '"register"')
    ),
    "cassandra-schematizer topics init": Work("schematizer.commands.topics:init", _TOPIC_FILES, ('"init"',)),
    "cassandra-schematizer topics new": Work("schematizer.commands.topics:new", _TOPIC_FILES, ('"new"',)),
    "cassandra-schematizer topics json-schemas": Work(
        "schematizer.commands.topics:json_schemas", _TOPIC_FILES, ('"json-schemas"',)
    ),
    "cassandra-schematizer topics plan": Work("schematizer.commands.topic_plans:plan", _TOPIC_SERVERS, ('"plan"',)),
    "cassandra-schematizer topics apply": Work("schematizer.commands.topic_plans:apply", _TOPIC_SERVERS, ('"apply"',)),
    "cassandra-schematizer topics import": Work(
        "schematizer.commands.topic_imports:import_topics", _TOPIC_SERVERS, ('"import"',)
    ),
    "cassandra-schematizer topics drift": Work("schematizer.commands.topic_plans:drift", _TOPIC_SERVERS, ('"drift"',)),
    "cassandra-schematizer topics check": Work(
        "schematizer.commands.topics:check",
        "tests/unit/schematizer/topic_files/test_check.py",
        ('"topics", "check"',),
    ),
    "cassandra-schematizer unused": Work("schematizer.commands.unused:unused", _REGISTRY, ('"unused"',)),
    "cassandra-schematizer keys create": Work(
        "schematizer.security.commands:create_key", _KEYS, ('"keys", "create"', '"--grant"')
    ),
    "cassandra-schematizer keys list": Work("schematizer.security.commands:list_keys", _KEYS, ('"keys", "list"',)),
    "cassandra-schematizer keys revoke": Work("schematizer.security.commands:revoke_key", _KEYS, ('"keys", "revoke"',)),
    "cassandra-schematizer audit": Work("schematizer.security.commands:print_audit", _KEYS, ('"audit"',)),
}

INSPECTORS: dict[str, Run] = {
    "cassandra-commitlog info": Run(
        "tests/unit/cassandra_storage/commands/commitlog/test_verify.py", ('commitlog("info"',)
    ),
    "cassandra-commitlog dump": Run(
        "tests/unit/cassandra_storage/commands/commitlog/test_coded.py", ('commitlog("dump", "--values"',)
    ),
    "cassandra-commitlog verify": Run("tests/unit/cassandra_storage/commands/commitlog/test_verify.py", ('"verify"',)),
    "cassandra-sstable info": Run("tests/unit/cassandra_storage/commands/sstable/test_command.py", ('sstable("info"',)),
    "cassandra-sstable dump": Run(
        "tests/unit/cassandra_storage/commands/sstable/test_command.py", ('sstable("dump", "--values"',)
    ),
    "cassandra-sstable merge": Run(
        "tests/unit/cassandra_storage/commands/sstable/test_command.py", ('sstable("merge", "--values", "--key"',)
    ),
    "cassandra-sstable verify": Run(
        "tests/unit/cassandra_storage/commands/sstable/test_command.py", ('sstable("verify"',)
    ),
}
"""Where the docs show them on files that are not in docs/example-segment."""

MAKE: dict[str, Run | str] = {
    "demo": Run("tests/e2e/test_interrupt.py", ('"dev.local_stack.demo.demo"',)),
    "stack": Run("tests/e2e/test_stack_command.py", ('"dev.local_stack.demo.stack_command"',)),
    "follow": Run("tests/e2e/test_clients.py", ("follow",)),
    "cqlsh": Run("tests/e2e/test_clients.py", ("clients.cqlsh",)),
    "preflight": Run("tests/unit/dev/local_stack/test_programs.py", ("test_the_preflight_finds_what_it_needs",)),
    "install": "what each job of .ci does first",
    "unit": "a part of make test, which a job of .ci runs",
    "test": "a job of .ci",
    "lint": "a job of .ci",
    "exhaustive": "a job of .ci",
    "verify": Run("tests/unit/dev/tools/test_menu.py", ("verify",)),
    "bench": Run("tests/unit/dev/tools/test_menu.py", ("bench",)),
    "dist": Run("tests/servers/publisher/test_distribution.py", ("from tools import distribution",)),
    "clean": "rm of what running leaves",
    "distclean": "rm of what was installed",
    "docs-reference": Run("tests/unit/dev/tools/test_reference.py", ("PAGES",)),
}

OTHERS: dict[str, Run] = {
    "kafka-acls.sh": Run("tests/e2e/test_guides.py", ("kafka-acls.sh",)),
    "docker compose": Run("dev/verify/containers/compose.py", ('"up", "-d"', '"exec"', "cqlsh")),
    "docker build": Run("dev/verify/containers/images.py", ('"build"', "--target")),
    "python docs/examples/consumer.py": Run("tests/e2e/test_clients.py", ("consumer.py",)),
    "spark-submit": Run("tests/e2e/test_spark_submit.py", ("submitted",)),
    "curl": Run("tests/unit/schematizer/confluent/test_api.py", ("/subjects",)),
    "pip install": Run("tests/unit/dev/tools/test_wheel.py", ("wheel",)),
    "pip wheel": Run("tests/unit/dev/tools/test_wheel.py", ("wheel",)),
    "/opt/cassandra-cdc/bin/pip install": Run("tests/unit/dev/tools/test_wheel.py", ("wheel",)),
}

OPERATORS: dict[str, str] = {
    "systemctl": "needs systemd; make verify WHAT=guides has one, and WHAT=units starts each unit",
    "-u cassandra env": "sudo's arguments, before a command of the tables above",
    "cp -a": "make verify WHAT=guides types it on a host",
    "tar": "make verify WHAT=guides types it on a host",
    "sed -e": "tests/unit/deploy/test_deploy.py runs it up to kubectl",
    "kubectl": "needs a cluster; the manifests are checked by tests/unit/deploy",
    "nodetool": "Cassandra's own, on an operator's node",
    "cqlsh": "Cassandra's own, on an operator's node",
    "kafka-topics.sh": "Kafka's own, on an operator's brokers",
    "kafka-configs.sh": "Kafka's own, on an operator's brokers",
    "kafka-consumer-groups.sh": "Kafka's own, on an operator's brokers",
    "export": "sets a variable for the command after it",
    "python3 -m venv": "Python's own, on the machine of a program",
    "cd": "goes to a folder for the command after it",
    "git clone": "the address is that of the reader's copy",
}
