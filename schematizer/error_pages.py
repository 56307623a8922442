"""The registry's error codes: the explanations of those that no other program has, and how much each stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import Explanation
from cdc_common.errors.links import BACKUP, LOGINS, WATSON
from cdc_common.errors.scopes import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLANATIONS: dict[Code, Explanation] = {
    Code.REGISTRY_DATABASE: Explanation(
        "Registry database unusable",
        meaning="""`cassandra-schematizer` cannot open `schematizer.database_url`. Every message that was ever written
        with its ids needs the schemas in it.""",
        cause="""The folder does not exist or its user may not write it, the URL is not SQLAlchemy's, the driver of that
        database is not installed, the server refuses the login, or the file is not an SQLite database.""",
        fix=f"""Correct that. **Do not start it with an empty database in place of a lost one**: it would give the same
        ids to other schemas. Restore a {BACKUP}.""",
    ),
    Code.BACKUP: Explanation(
        "Backup of the registry unusable",
        meaning="""`cassandra-schematizer restore` refuses the file, or `backup` could not write it. Nothing was
        changed.""",
        cause="""The file ends too early, was changed, or was written by a program whose tables have another version; or
        the database already holds schemas.""",
        fix="""Restore into a new database, name it in `schematizer.database_url`, and start the registry on it. Restore
        a backup of another version with the version that wrote it. A newer registry can then migrate the database.""",
    ),
    Code.IMPORT: Explanation(
        "Import of another registry refused or incomplete",
        meaning="""`cassandra-schematizer import` cannot copy the other registry as it is, or both differ afterwards. If
        it is refused, nothing was written.""",
        cause="""An id or a version has another schema in this registry; or the other registry has schemas that are not
        Avro, references, metadata, rules, contexts or settings that this one does not keep; or it has changed while it
        was copied. Each is named on its own line.""",
        fix="""Import into a new database. Copy all but what cannot be kept with `--skip-unsupported`. Set the other
        registry's mode to READONLY, and run the command again: it copies only what is missing.""",
    ),
    Code.DOCUMENTATION: Explanation(
        "Documentation missing",
        meaning="""`cassandra-schematizer docs check` or `models check` found something undocumented. Exit status 1, for
        continuous integration.""",
        cause="""A table or a field lacks a doc or an owner, a documentation file cannot be read, or the table's newest
        schema does not have a field that is documented. Each is named on its own line.""",
        fix="Add what the lines name, or remove the field from the file.",
    ),
    Code.CLIENTS_LATE: Explanation(
        "Producers or consumers are late",
        meaning="""An alert: services that registered as producers or consumers of a topic of the namespace have not
        registered again for twice as long as the frequency that they gave.""",
        cause="The service was stopped, cannot reach the registry, or registers less often than it said.",
        fix=f"""{WATSON} names them and their teams on its page `/clients`: ask the team. A service that was stopped
        stays late.""",
    ),
    Code.REGISTRY_KEY: Explanation(
        "Command on API keys refused",
        meaning="`cassandra-schematizer keys` or `audit` refused an argument. The message names it.",
        cause="A name, a grant or a key id is not valid.",
        fix="""Write a grant as `ROLE:NAMESPACE`: `writer:cdc.shop`, `reader:cdc.*` or `admin:*`. `cassandra-schematizer
        keys list` shows the ids.""",
    ),
    Code.REGISTRY_OPEN: Explanation(
        "No client could write to the registry",
        meaning="The registry does not start, because no client could write to it.",
        cause="""`schematizer.host` is not a loopback address, or `schematizer.open_writes` is false; and there is
        neither an API key nor an OIDC issuer.""",
        fix=f"""Make a key (`cassandra-schematizer keys create ops --grant 'admin:*'`), or set `schematizer.oidc_issuer`
        and `schematizer.oidc_audience`, or set `schematizer.open_writes = true` if everyone who reaches the registry
        may write. See {LOGINS}.""",
    ),
    Code.REGISTRY_CERTIFICATE: Explanation(
        "Certificate of the registry not usable",
        meaning="""A starting registry exits. A running registry logs this and keeps the old certificate. A renewal that
        writes two files one after the other causes it once.""",
        cause="""A file of `schematizer.tls_certificate_file`, `tls_key_file` or `tls_client_ca_file` is missing,
        unreadable, encrypted or not PEM, or the key belongs to another certificate.""",
        fix="""If it lasts, compare `openssl x509 -pubkey -noout -in CERT` with `openssl pkey -pubout -in KEY`, and
        correct the file.""",
    ),
    Code.REGISTRY_ISSUER: Explanation(
        "OIDC issuer cannot be asked",
        meaning="""The registry cannot use its OIDC issuer. API keys still work. Tokens are verified with the known keys
        for a day; if there are none, they are answered with 503.""",
        cause="""The issuer does not answer, its discovery document or keys are not usable, its `issuer` is not exactly
        `schematizer.oidc_issuer`, or its authority is not in `schematizer.oidc_ca_file`.""",
        fix="""On the registry's machine run `curl $ISSUER/.well-known/openid-configuration`, compare its `issuer` with
        the setting, and correct the network or the settings.""",
    ),
    Code.TOPIC_FILES: Explanation(
        "Topic files refused",
        meaning="""`cassandra-schematizer topics` found files that cannot be read or that break a rule. Exit status 1,
        for continuous integration. Nothing was changed.""",
        cause="""Each finding is on its own line, with the file, the code of the rule and the fix.""",
        fix="""Correct the files. A topic can be an exception from most rules for a time: a `[[waivers]]` entry of its
        file names the rule, a reason and the last day.""",
    ),
    Code.TOPICS_REFUSED: Explanation(
        "Changes of topics refused",
        meaning="""`cassandra-schematizer topics apply` would lose messages, their order or a schema. Exit status 1.
        Nothing was applied, also none of the other changes.""",
        cause="""The files ask for fewer partitions, a shorter retention, no compaction, no topic, or something else
        that [loses something](../guides/topic-files.md#dangerous-changes). Or a topic or schema is not applied yet to
        the environment that comes before. The plan says for each change what would be lost.""",
        fix="""Change the files back. If the loss is wanted, name each change: `--allow NAME=TOPIC`, as the plan prints
        it. The number of copies of a topic is changed by `kafka-reassign-partitions.sh` alone.""",
    ),
    Code.TOPICS_LEASED: Explanation(
        "Another apply of topics runs",
        meaning="""`cassandra-schematizer topics apply` has no lease of the environment, or has lost it: only one apply
        runs at a time. Exit status 3. The registry has a note of all that it had done until then.""",
        cause="""Another apply runs. Or one was killed: its lease ends 60 s after it last renewed it. Or this one was
        stopped for longer than that.""",
        fix="""Run it again once the other one has ended, or with `--wait SECONDS`. It continues with what is left.""",
    ),
}

SCOPES: Mapping[Code, tuple[Scope, ...]] = {
    Code.KAFKA_UNREACHABLE: (Scope.COMMAND,),
    Code.KAFKA_REFUSED: (Scope.COMMAND,),
    Code.REGISTRY_UNREACHABLE: (Scope.COMMAND,),
    Code.REGISTRY_REFUSED: (Scope.COMMAND,),
    Code.REGISTRY_DATABASE: (Scope.COMMAND, Scope.REQUEST, Scope.START),
    Code.BACKUP: (Scope.COMMAND,),
    Code.IMPORT: (Scope.COMMAND,),
    Code.DOCUMENTATION: (Scope.COMMAND,),
    Code.CLIENTS_LATE: (Scope.NOTHING,),
    Code.REGISTRY_KEY: (Scope.COMMAND, Scope.START),
    Code.REGISTRY_OPEN: (Scope.START,),
    Code.REGISTRY_CERTIFICATE: (Scope.NOTHING, Scope.START),
    Code.REGISTRY_ISSUER: (Scope.REQUEST, Scope.START),
    Code.TOPIC_FILES: (Scope.COMMAND,),
    Code.TOPICS_REFUSED: (Scope.COMMAND,),
    Code.TOPICS_LEASED: (Scope.COMMAND,),
}
"""How much of the program each code stops."""
