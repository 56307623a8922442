"""The manifests: the API takes them, the programs take their settings, what they name is there. No cluster ran them."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from archive.cli import main as archive
from cdc_common.clients.kafka import client_config
from cdc_common.program.operations import Operations
from cdc_common.settings.describe import all_settings, setting
from cdc_common.settings.load import load_settings
from dev.local_stack.install.commands import REQUIREMENTS
from dev.local_stack.process.network import free_ports
from dev.local_stack.process.paths import project_root
from dev.tools.kubernetes_schemas import MANIFESTS
from joinery.cli import main as joinery
from joinery.definition_file import load_joins
from materializer.cli import main as materializer
from schematizer.confluent import routes
from tests.support.deploy.alert_rules import RULES
from tests.support.deploy.kubernetes import (
    KUSTOMIZATION,
    RESOURCES,
    SETTINGS,
    Container,
    containers,
    errors,
    named,
    pods,
)
from tests.support.e2e.certificates import Authority
from tests.support.http_get import get
from transformer.cli import main as transformer
from transformer.definition_file import load_transformers
from warehouse.cli import main as warehouse

if TYPE_CHECKING:
    from tests.support.deploy.kubernetes import Pod

ROOT = project_root()
CONTAINERS = containers()
PODS = {pod.name: pod for pod in pods()}
PROGRAMS = {
    "publisher": "cassandra-cdc/publisher",
    "filler": "cassandra-cdc/filler",
    "schematizer": "cassandra-schematizer/schematizer",
    "materializer": "cassandra-materializer-driver/spark-kubernetes-driver",
    "transformer": "cassandra-transformer-driver/spark-kubernetes-driver",
    "archive": "cassandra-archive-driver/spark-kubernetes-driver",
    "warehouse": "cassandra-warehouse-driver/spark-kubernetes-driver",
    "joinery": "cassandra-joinery-driver/spark-kubernetes-driver",
}
"""Each program's container, by the name of its settings' table, which is the name of its operations port, too."""
JOBS = {
    "materializer": materializer,
    "transformer": transformer,
    "archive": archive,
    "warehouse": warehouse,
    "joinery": joinery,
}
"""The programs that are Spark jobs."""
EXECUTORS = {job: f"cassandra-{job}-executor/spark-kubernetes-executor" for job in JOBS}
OURS = [*PROGRAMS.values(), *EXECUTORS.values()]
SIDECARS = ("publisher", "filler")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
each_program = pytest.mark.parametrize("program", PROGRAMS)
each_job = pytest.mark.parametrize("job", JOBS)


def container_of(program: str) -> Container:
    return CONTAINERS[PROGRAMS[program]]


@pytest.mark.parametrize(
    "resource", RESOURCES, ids=lambda resource: f"{resource['kind']}-{resource['metadata']['name']}"
)
def test_the_api_takes_it(resource: dict[str, Any]) -> None:
    assert errors(resource) == []


def test_what_is_wrong_would_be_noticed() -> None:
    """Misspelt, misplaced, of another type, missing; in pod templates, too."""
    wrong = copy.deepcopy(named("StatefulSet", "cassandra-schematizer"))
    container = wrong["spec"]["template"]["spec"]["containers"][0]
    container["livenesProbe"] = container.pop("livenessProbe")
    container["ports"][0]["containerPort"] = "8081"
    wrong["spec"]["tolerations"] = []
    del wrong["spec"]["selector"]
    assert len(errors(wrong)) == 4
    application = copy.deepcopy(named("SparkApplication", "cassandra-materializer"))
    application["spec"]["mode"] = "clustered"
    application["spec"]["driver"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    application["spec"]["executor"]["cores"] = 0
    application["spec"]["deps"] = {"jars": []}
    assert len(errors(application)) == 4
    unused = copy.deepcopy(named("StatefulSet", "cassandra-schematizer"))
    unused["spec"]["minReadySeconds"] = 1
    [found] = errors(unused)
    assert "run dev.tools.kubernetes_schemas" in found


def test_all_files_are_applied() -> None:
    files = {file.name for file in MANIFESTS.iterdir()}
    made = [file for generator in KUSTOMIZATION["configMapGenerator"] for file in generator["files"]]
    assert {"kustomization.yaml", *KUSTOMIZATION["configurations"], *KUSTOMIZATION["resources"], *made} == files
    assert KUSTOMIZATION["namespace"] == named("Namespace", KUSTOMIZATION["namespace"])["metadata"]["name"]


@each_job
def test_a_driver_has_an_account_that_makes_executors(job: str) -> None:
    account = named("ServiceAccount", f"cassandra-{job}")["metadata"]["name"]
    binding = named("RoleBinding", f"cassandra-{job}")
    [subject] = binding["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": account, "namespace": KUSTOMIZATION["namespace"]}
    assert named("SparkApplication", f"cassandra-{job}")["spec"]["driver"]["serviceAccount"] == account
    [rule] = named("Role", binding["roleRef"]["name"])["rules"]
    assert {"create", "delete", "watch"} <= set(rule["verbs"])
    assert "pods" in rule["resources"]


def test_no_password_is_in_a_manifest() -> None:
    """Each comes from a Secret, as a file or as a variable."""
    assert not [resource for resource in RESOURCES if resource["kind"] == "Secret"]
    secret = {known.name for known in all_settings() if known.secret}
    written = tomllib.loads(SETTINGS.read_text())
    assert not secret & {f"{table}.{key}" for table, keys in written.items() for key in keys}
    for container in CONTAINERS.values():
        for name, value in container.environment.items():
            is_secret = "SECRET" in name or "ACCESS_KEY" in name or name.endswith(("PASSWORD", "_URL"))
            assert not is_secret or set(value) == {"secretKeyRef"}, name


@each_program
def test_a_program_takes_its_settings(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cdc.toml under the container's variables; the files of its passwords are those of the mounted Secret."""
    container = container_of(program)
    mounted = mounted_files(container)
    assert mounted["/etc/cdc.toml"] == "cdc-settings"
    for variable, value in container.environment.items():
        if variable.endswith("_PASSWORD_FILE"):
            assert mounted[value] == f"cdc-{program}"
            (tmp_path / variable).write_text("from the Secret")
            monkeypatch.setenv(variable, str(tmp_path / variable))
        elif variable.startswith("CDC_"):
            monkeypatch.setenv(variable, value)
    settings = load_settings(SETTINGS, {}).settings
    own = getattr(settings, program)
    assert own.operations_address == "0.0.0.0"  # noqa: S104 - a pod's own
    assert own.operations_port == container.ports[program] == setting(f"{program}.operations_port").default
    password = settings.cassandra.password if program == "filler" else settings.kafka.sasl_password
    assert password.get_secret_value() == "from the Secret"
    if program != "filler":  # the others make clients of Kafka when they start
        assert mounted[str(settings.kafka.ssl_ca_file)] == "kafka-ca"
        client_config(settings.kafka.model_copy(update={"ssl_ca_file": Authority(tmp_path).file}))
    if program in JOBS:  # the settings travel with the tasks, and the files that they name do not
        assert mounted_files(CONTAINERS[EXECUTORS[program]]) == {str(settings.kafka.ssl_ca_file): "kafka-ca"}


def test_the_transformers_find_their_file_and_their_salt(tmp_path: Path) -> None:
    settings = load_settings(SETTINGS, {}).settings
    mounted = mounted_files(container_of("transformer"))
    generated = {generator["name"]: generator["files"] for generator in KUSTOMIZATION["configMapGenerator"]}
    file = settings.transformer.file
    assert generated[mounted[str(file)]] == [file.name]
    text = (MANIFESTS / file.name).read_text()
    [salt] = re.findall(r'^salt_file = "(.*)"$', text, re.MULTILINE)
    assert mounted[salt] == "cdc-transformer"
    assert "salt =" not in text, "it comes from a Secret"
    (tmp_path / "salt").write_text("from the Secret")
    copy = tmp_path / file.name
    copy.write_text(text.replace(salt, "salt"))
    assert load_transformers(copy)


def test_the_joinery_finds_its_file() -> None:
    file = load_settings(SETTINGS, {}).settings.joinery.file
    generated = {generator["name"]: generator["files"] for generator in KUSTOMIZATION["configMapGenerator"]}
    assert generated[mounted_files(container_of("joinery"))[str(file)]] == [file.name]
    assert load_joins(MANIFESTS / file.name)


def mounted_files(container: Container) -> dict[str, str]:
    """Path → the Secret or ConfigMap that it comes from."""
    volumes = {volume["name"]: volume for volume in container.pod.spec["volumes"]}
    found = {}
    for mount in container.spec["volumeMounts"]:
        volume = volumes.get(mount["name"], {})
        source = volume.get("secret") or volume.get("configMap")
        if source is None:
            continue
        name = source.get("secretName") or source["name"]
        if "subPath" in mount:
            found[mount["mountPath"]] = name
        for item in source.get("items", []):
            found[f"{mount['mountPath']}/{item['path']}"] = name
    return found


def test_each_writes_only_where_a_volume_is() -> None:
    settings = load_settings(SETTINGS, {}).settings
    writes = {
        "publisher": [settings.publisher.state_directory, settings.node.cdc_raw_directory],
        "schematizer": [Path(settings.schematizer.database_url.removeprefix("sqlite:///")).parent],
    }
    for program, paths in writes.items():
        for path in paths:
            assert is_writable(container_of(program), path)
    assert not is_writable(container_of("filler"), settings.node.cdc_raw_directory)
    for job in ("materializer", "joinery"):
        assert is_writable(CONTAINERS[EXECUTORS[job]], getattr(settings, job).state_directory)
    for name in OURS:
        assert CONTAINERS[name].spec["securityContext"]["readOnlyRootFilesystem"]
        assert is_writable(CONTAINERS[name], Path("/tmp/x"))  # noqa: S108 - of a container


def is_writable(container: Container, path: Path) -> bool:
    mounts = [mount for mount in container.spec["volumeMounts"] if path.is_relative_to(mount["mountPath"])]
    return any(not mount.get("readOnly") for mount in mounts)


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_a_pod_holds_together(pod: Pod) -> None:
    volumes = [volume["name"] for volume in pod.spec["volumes"]]
    assert len(set(volumes)) == len(volumes)
    assert not pod.claims & set(volumes)
    used = {mount["name"] for container in pod.containers for mount in container["volumeMounts"]}
    assert used == {*volumes, *pod.claims}
    for container in pod.containers:
        ports = Container(pod, container).ports
        for probe in PROBES:
            asked = container.get(probe, {})
            assert asked.get("httpGet", asked.get("tcpSocket", {})).get("port") in {None, *ports}
    if port := pod.metadata.get("annotations", {}).get("prometheus.io/port"):
        assert int(port) in Container(pod, pod.spec["containers"][0]).ports.values()


@pytest.mark.parametrize("pod", PODS.values(), ids=PODS)
def test_a_pod_is_what_the_restricted_standard_allows(pod: Pod) -> None:
    own = pod.spec["securityContext"]
    assert own["runAsNonRoot"]
    assert own["seccompProfile"] == {"type": "RuntimeDefault"}
    dockerfile = (ROOT / "deploy" / "images" / "Dockerfile").read_text()
    [(user, group)] = re.findall(r"useradd --uid (\d+) --gid (\d+)", dockerfile)
    assert (own["runAsUser"], own["runAsGroup"], own["fsGroup"]) == (int(user), int(group), int(group))
    for container in pod.containers:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    kinds = {kind for volume in pod.spec["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {"configMap", "secret", "emptyDir", "ephemeral"}


@each_program
def test_a_probe_asks_for_what_is_served(program: str) -> None:
    """Operations serves the same paths for every program; the registry's own port serves the routes of its API."""
    container = container_of(program)
    api = {getattr(route, "path", "") for router in routes.ROUTERS for route in router.routes}
    with Operations("127.0.0.1", free_ports(1)[0], dict) as served:
        for probe in PROBES:
            if probe not in container.spec:
                continue
            asked = container.spec[probe]["httpGet"]
            if asked["port"] == program:
                assert get(served.port, asked["path"])[0] == 200
            else:
                assert container.ports[asked["port"]] == setting("schematizer.port").default
                assert asked["path"] in api
    assert "livenessProbe" in container.spec
    assert ("startupProbe" in container.spec) == (program not in SIDECARS)
    assert container.spec["livenessProbe"]["httpGet"]["path"] == "/health", "nothing that a restart would not fix"


def test_the_nodes_have_cdc() -> None:
    """Without it their sidecars would end at once. Compose's node has the same options."""
    spec = PODS["cassandra-cdc"].spec
    container = CONTAINERS["cassandra-cdc/cassandra"]
    options = container.environment["JVM_EXTRA_OPTS"].split()
    compose = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yaml").read_text())["services"]["cassandra"]
    known = {option.partition("=")[0] for option in compose["environment"]["JVM_EXTRA_OPTS"].split()}
    assert "-Dcassandra.settings.cdc_enabled=true" in options
    assert {option.partition("=")[0] for option in options} <= known
    assert (
        container.environment["CASSANDRA_SEEDS"].partition(".")[2]
        == named("Service", "cassandra-cdc")["metadata"]["name"]
    )
    assert container.spec["lifecycle"]["preStop"]["exec"]["command"] == ["nodetool", "drain"]
    [spread] = spec["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"].items() <= PODS["cassandra-cdc"].metadata["labels"].items()


def test_sidecars_take_their_node_out_of_service_for_nothing() -> None:
    for program in SIDECARS:
        assert "readinessProbe" not in container_of(program).spec
    assert named("Service", "cassandra-cdc")["spec"]["publishNotReadyAddresses"]


def test_sidecars_outlive_cassandra_and_do_not_hold_it_up() -> None:
    """A native sidecar ends after the containers; Kubernetes waits for its startup probe before it starts them."""
    spec = PODS["cassandra-cdc"].spec
    assert [container["name"] for container in spec["containers"]] == ["cassandra"]
    assert [container["name"] for container in spec["initContainers"]] == list(SIDECARS)
    for sidecar in spec["initContainers"]:
        assert sidecar["restartPolicy"] == "Always", "or it is awaited as any other init container"
        assert "startupProbe" not in sidecar


def test_a_node_has_as_much_memory_under_systemd() -> None:
    for program in SIDECARS:
        limit = container_of(program).spec["resources"]["limits"]["memory"]
        unit = (ROOT / "deploy" / "systemd" / f"cassandra-{program}.service").read_text()
        assert f"MemoryMax={limit.removesuffix('i')}" in unit.splitlines()
        says = RULES[f"Cdc{program.capitalize()}Grows"]["annotations"]["description"]
        assert says.endswith(f"restarts it at {limit.removesuffix('Mi')} MiB.")


@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget", "NetworkPolicy"])
def test_it_finds_its_pods(kind: str) -> None:
    for resource in (manifest for manifest in RESOURCES if manifest["kind"] == kind):
        spec = resource["spec"]
        selector = spec.get("podSelector", spec.get("selector"))
        labels = selector.get("matchLabels", selector)
        [pod] = [pod for pod in PODS.values() if labels.items() <= pod.metadata["labels"].items()]
        ports = {name for container in pod.containers for name in Container(pod, container).ports}
        wanted = [port["targetPort"] for port in spec.get("ports", [])]
        wanted += [port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]]
        assert set(wanted) <= ports


def test_every_pod_has_a_budget_but_the_drivers() -> None:
    """An executor's pods have no scale: the API wants a number that stays, and no share."""
    budgets = [resource["spec"] for resource in RESOURCES if resource["kind"] == "PodDisruptionBudget"]
    covered = {
        pod.name
        for pod in PODS.values()
        for budget in budgets
        if budget["selector"]["matchLabels"].items() <= pod.metadata["labels"].items()
    }
    assert covered == PODS.keys() - {f"cassandra-{job}-driver" for job in JOBS}
    for job in JOBS:
        executors = named("PodDisruptionBudget", f"cassandra-{job}-executors")["spec"]
        instances = named("SparkApplication", f"cassandra-{job}")["spec"]["executor"]["instances"]
        assert executors.keys() == {"selector", "minAvailable"}
        assert isinstance(executors["minAvailable"], int)
        assert executors["minAvailable"] < instances, "or no machine with an executor can be drained"


def test_selectors_are_the_labels_of_their_own_pods() -> None:
    for resource in (manifest for manifest in RESOURCES if manifest["kind"] == "StatefulSet"):
        spec = resource["spec"]
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
        assert spec["serviceName"] in {
            service["metadata"]["name"] for service in RESOURCES if service["kind"] == "Service"
        }
    url = load_settings(SETTINGS, {}).settings.registry.url
    service = named("Service", "cassandra-schematizer")
    [port] = service["spec"]["ports"]
    assert url == f"http://cassandra-schematizer.{KUSTOMIZATION['namespace']}.svc:{port['port']}"


def test_images_are_of_this_version() -> None:
    for program in ("publisher", "filler", "schematizer"):
        assert container_of(program).spec["image"] == f"cassandra-{program}:{VERSION}"
    dockerfile = (ROOT / "deploy" / "images" / "Dockerfile").read_text()
    assert f"ARG VERSION={VERSION}\n" in dockerfile
    for job in JOBS:
        spec = named("SparkApplication", f"cassandra-{job}")["spec"]
        assert spec["image"] == f"cassandra-cdc-spark:{VERSION}"
        assert f"pyspark=={spec['sparkVersion']}" in REQUIREMENTS.read_text()
        assert f"ARG SPARK_VERSION={spec['sparkVersion']}\n" in dockerfile


def test_each_image_can_be_pinned_by_its_digest(tmp_path: Path) -> None:
    """As deploy/README.md says, with kustomize's `images`; a SparkApplication's image, too."""
    if (kubectl := shutil.which("kubectl")) is None:
        pytest.skip("kubectl, which has kustomize, is not on the PATH")
    copied = shutil.copytree(MANIFESTS, tmp_path / "kubernetes")
    digest = f"sha256:{'0' * 64}"
    names = {"cassandra", "cassandra-cdc-spark", "cassandra-publisher", "cassandra-filler", "cassandra-schematizer"}
    images = [{"name": name, "newName": f"registry.example.com/{name}", "digest": digest} for name in sorted(names)]
    (copied / "kustomization.yaml").write_text(yaml.safe_dump({**KUSTOMIZATION, "images": images}))
    done = subprocess.run([kubectl, "kustomize", str(copied)], capture_output=True, text=True, check=True)
    found = re.findall(r"\bimage: (\S+)$", done.stdout, re.MULTILINE)
    assert set(found) == {f"registry.example.com/{name}@{digest}" for name in names}
    assert found.count(f"registry.example.com/cassandra-cdc-spark@{digest}") == len(JOBS)


@each_job
def test_an_application_runs_the_command(job: str) -> None:
    spec = named("SparkApplication", f"cassandra-{job}")["spec"]
    command, *rest = spec["arguments"]
    assert command in JOBS[job].commands
    assert rest == ["--config", "/etc/cdc.toml"]
    dockerfile = (ROOT / "deploy" / "images" / "Dockerfile").read_text()
    sources, folder = re.findall(r"^COPY (deploy/spark/\S+) (\S+)$", dockerfile, re.MULTILINE)[0]
    [source] = [
        source for source in ROOT.glob(sources) if spec["mainApplicationFile"] == f"local://{folder}{source.name}"
    ]
    assert f"from {job}.cli import main\n\nmain()\n" in source.read_text()


def test_images_are_built_of_all_that_the_wheel_has() -> None:
    """.dockerignore keeps away what none of its patterns names."""
    patterns = [
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    needed = {package.removesuffix("*") for package in found} | {
        "pyproject.toml",
        "setup.py",
        "README.md",
        "deploy/spark",
    }
    assert {path for path in needed if not any(fnmatch(path, pattern) for pattern in patterns)} == set()


WITHOUT_ALERTS = {"cassandra-joinery"}  # docs/guides/joins.md says so
SCRAPE = ROOT / "deploy" / "prometheus" / "scrape.yml"


def test_prometheus_finds_each_program_under_its_job() -> None:
    [job] = yaml.safe_load(SCRAPE.read_text())["scrape_configs"]
    keep, rename, _ = job["relabel_configs"]
    assert rename["replacement"] == "cassandra-$1"
    jobs = set()
    for container in CONTAINERS.values():
        metadata = container.pod.metadata
        scraped = metadata.get("annotations", {}).get("prometheus.io/scrape", "")
        for port in container.ports:
            joined = ";".join((scraped, metadata["labels"]["app.kubernetes.io/part-of"], port))
            if found := re.fullmatch(keep["regex"], joined):
                jobs.add(rename["replacement"].replace("$1", found[1]))
    assert jobs == {f"cassandra-{program}" for program in PROGRAMS}
    asked = set(re.findall(r'job="([\w-]+)"', " ".join(rule["expr"] for rule in RULES.values())))
    assert asked | WITHOUT_ALERTS == jobs


def test_a_pod_monitor_finds_each_program_under_its_job() -> None:
    """For the Prometheus operator, as scrape.yml for a Prometheus of one's own."""
    monitor = yaml.safe_load((SCRAPE.parent / "podmonitor.yaml").read_text())
    assert monitor["metadata"]["namespace"] == KUSTOMIZATION["namespace"]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert all(wanted <= container_of(program).pod.metadata["labels"].items() for program in PROGRAMS)
    jobs = {}
    for endpoint in monitor["spec"]["podMetricsEndpoints"]:
        job, instance = endpoint["relabelings"]
        jobs[endpoint["port"]] = job["replacement"]
        assert (job["targetLabel"], instance["targetLabel"]) == ("job", "instance")
    assert jobs == {program: f"cassandra-{program}" for program in PROGRAMS}
    assert all(program in container_of(program).ports for program in PROGRAMS)


def test_prometheus_itself_takes_the_scraping(tmp_path: Path) -> None:
    """All but the discovery, which Debian leaves out of its Prometheus."""
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool, of Prometheus, is not on the PATH")
    config = yaml.safe_load(SCRAPE.read_text())
    assert config["scrape_configs"][0].pop("kubernetes_sd_configs") == [{"role": "pod"}]
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    done = subprocess.run([promtool, "check", "config", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@each_job
def test_the_status_command_reads_what_a_driver_serves(job: str) -> None:
    """The comment in the manifest says how: by a forwarded port."""
    [port] = named("Service", f"cassandra-{job}")["spec"]["ports"]
    assert json.dumps(port["port"]) == setting(f"{job}.operations_port").default_text
    assert f"service/cassandra-{job} {port['port']}`" in (MANIFESTS / f"{job}.yaml").read_text()
