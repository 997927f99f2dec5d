#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kubernetes_test: the manifests of config/kubernetes, without a cluster.

  tests/packages/kubernetes_test.py BIN

Their fields are those of the API (kubernetes.schema.json beside this file), what they name is there, their
configuration is one that the server takes, and as root a server and a mount are started with just the
capabilities that the manifests give them.
"""
import copy
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest

import jsonschema
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "config", "kubernetes")
BIN = ""


def load(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return [d for d in yaml.safe_load_all(file) if d is not None]


def manifests():
    names = sorted(n for n in os.listdir(FOLDER) if n.endswith(".yaml"))
    return [(n, d) for n in names for d in load(n)]


def pod_spec(document):
    spec = document.get("spec", {})
    return spec if document["kind"] == "Pod" else spec.get("template", {}).get("spec")


def of_kind(name, kind):
    return next(d for d in load(name) if d["kind"] == kind)


def checker():
    with open(os.path.join(ROOT, "tests", "packages", "kubernetes.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def unit_capabilities():
    with open(os.path.join(ROOT, "config", "files", "nfs-rdma.service.in"), encoding="utf-8") as file:
        line = re.search(r"^CapabilityBoundingSet=(.*)$", file.read(), re.M)
    return {c.removeprefix("CAP_") for c in line[1].split()}


class Manifests(unittest.TestCase):
    def test_fields(self):
        validator = checker()
        found = manifests()
        self.assertGreaterEqual(len(found), 6)
        for name, document in found:
            problems = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(document)]
            self.assertEqual(problems, [], f"{name}: {document['kind']}")

    # What the schema is worth: mistakes that people make.
    def test_mistakes_are_seen(self):
        server, mount = of_kind("server.yaml", "StatefulSet"), of_kind("client-daemonset.yaml", "DaemonSet")

        def container(document):
            return document["spec"]["template"]["spec"]["containers"][0]
        mistakes = [
            (server, lambda d: d.update(apiVersion="apps/v1beta1")),
            (server, lambda d: d["spec"].pop("selector")),
            (server, lambda d: d["spec"].update(replicas="1")),
            (server, lambda d: container(d).update(imagePullPolice="Always")),
            (server, lambda d: container(d)["ports"][0].update(containerPort=204900)),
            (server, lambda d: container(d)["securityContext"]["capabilities"]["add"].append("CAP_CHOWN")),
            (server, lambda d: container(d)["securityContext"]["capabilities"]["add"].append("SYS_ADMIN")),
            (server, lambda d: container(d)["resources"]["limits"].update(memory="1GB")),
            (server, lambda d: container(d)["volumeMounts"][0].update(mountPath="etc")),
            (server, lambda d: d["spec"]["template"]["spec"]["volumes"][0].update(emptyDir={})),
            (server, lambda d: d["metadata"].update(name="NFS_RDMA")),
            (mount, lambda d: container(d)["securityContext"].update(privileged=False)),
            (mount, lambda d: container(d).update(command="mount.nfs-rdma")),
            (mount, lambda d: d["spec"].update(replicas=1)),
        ]
        validator = checker()
        for number, (document, mistake) in enumerate(mistakes):
            wrong = copy.deepcopy(document)
            mistake(wrong)
            self.assertFalse(validator.is_valid(wrong), f"mistake {number} was not seen")

    def test_what_they_name_is_there(self):
        documents = [d for _, d in manifests()]
        maps = {d["metadata"]["name"]: d["data"] for d in documents if d["kind"] == "ConfigMap"}
        services = {d["metadata"]["name"]: d["spec"] for d in documents if d["kind"] == "Service"}
        for document in documents:
            spec = pod_spec(document)
            if spec is None:
                continue
            volumes = {v["name"]: v for v in spec.get("volumes", [])}
            claims = {c["metadata"]["name"] for c in document["spec"].get("volumeClaimTemplates", [])}
            for mount in (m for c in spec["containers"] for m in c.get("volumeMounts", [])):
                self.assertIn(mount["name"], volumes.keys() | claims)
                source = volumes.get(mount["name"], {}).get("configMap")
                if source:
                    self.assertIn(mount["subPath"], maps[source["name"]])
            if "selector" in document["spec"]:
                labels = document["spec"]["template"]["metadata"]["labels"]
                self.assertLessEqual(document["spec"]["selector"]["matchLabels"].items(), labels.items())
        server = of_kind("server.yaml", "StatefulSet")
        service = services[server["spec"]["serviceName"]]
        self.assertLessEqual(service["selector"].items(), server["spec"]["template"]["metadata"]["labels"].items())
        ports = {p["name"]: p["containerPort"] for p in pod_spec(server)["containers"][0]["ports"]}
        for port in service["ports"]:
            self.assertEqual(ports[port["targetPort"]], port["port"])
        # The clients ask that service.
        for name in ("client-daemonset.yaml", "client-pod.yaml"):
            command = " ".join(pod_spec(load(name)[0])["containers"][0]["command"])
            host = re.search(r"mount\.nfs-rdma .*?([\w-]+):/export ", command)[1]
            self.assertIn(host, services)

    def test_version(self):
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"^project\(nfs-rdma VERSION (\S+)", file.read(), re.M)[1]
        for name in os.listdir(FOLDER):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                for tag in re.findall(r"example\.org/nfs-rdma:([\w.]+)", file.read()):
                    self.assertEqual(tag, version, name)

    def test_rights(self):
        security = pod_spec(of_kind("server.yaml", "StatefulSet"))["containers"][0]["securityContext"]
        self.assertIs(security["privileged"], False)
        self.assertIs(security["allowPrivilegeEscalation"], False)
        self.assertEqual(security["capabilities"]["drop"], ["ALL"])
        # Ports of 1024 and above need no right.
        self.assertEqual(set(security["capabilities"]["add"]), unit_capabilities() - {"NET_BIND_SERVICE"})
        for name, document in manifests():
            spec = pod_spec(document) or {"containers": []}
            self.assertFalse(spec.get("hostNetwork", False))
            for container in spec["containers"]:
                privileged = container.get("securityContext", {}).get("privileged", False)
                self.assertEqual(privileged, document["kind"] == "DaemonSet", name)

    def test_the_server_takes_the_configuration(self):
        data = of_kind("server.yaml", "ConfigMap")["data"]
        with tempfile.TemporaryDirectory() as folder:
            # /export is the volume, which is not here.
            export = os.path.join(folder, "export")
            os.mkdir(export)
            for name, text in data.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(re.sub(r"^/export ", export + " ", text, flags=re.M))
            done = subprocess.run([f"{BIN}/nfs-rdmad", "--check-config", "--config", f"{folder}/rdma.conf",
                                   "--exports", f"{folder}/nfs-rdma.exports"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(export, done.stdout)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def with_rights_of(container):
    """The container's user 0, with what it may have and can never get more of."""
    security = container["securityContext"]
    rights = ",".join(f"+{c.lower()}" for c in security["capabilities"]["add"])
    words = ["setpriv", "--inh-caps=-all", f"--bounding-set=-all,{rights}"]
    return words + ([] if security.get("allowPrivilegeEscalation", True) else ["--no-new-privs"])


@unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/fuse"), "needs root and /dev/fuse")
class Rights(unittest.TestCase):
    def test_serve_and_mount(self):
        server = pod_spec(of_kind("server.yaml", "StatefulSet"))["containers"][0]
        client = pod_spec(of_kind("client-pod.yaml", "Pod"))["containers"][0]
        port, tcp_port = free_port(), free_port()
        with tempfile.TemporaryDirectory() as folder:
            for each in ("export", "state", "mnt"):
                os.mkdir(f"{folder}/{each}")
            os.chmod(folder, 0o755)
            os.chmod(f"{folder}/export", 0o1777)
            control = f"{folder}/control.sock"
            daemon = subprocess.Popen(
                [*with_rights_of(server), f"{BIN}/nfs-rdmad", "--foreground", "-e", f"{folder}/export:rw,insecure",
                 "--listen", "127.0.0.1", "--port", str(port), "--tcp-port", str(tcp_port), "--fabric", "iwarp",
                 "--state-dir", f"{folder}/state", "--control", control],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            try:
                self.assertTrue(daemon.stdout.readline().startswith("ready "))
                # Its probe.
                probe = server["readinessProbe"]["exec"]["command"]
                subprocess.run([f"{BIN}/{os.path.basename(probe[0])}", *probe[1:], "--server", control],
                               check=True, stdout=subprocess.DEVNULL)
                mount = subprocess.run(
                    [*with_rights_of(client), f"{BIN}/mount.nfs-rdma", f"127.0.0.1:{folder}/export", f"{folder}/mnt",
                     "-o", f"fabric=iwarp,port={port},tcpport={tcp_port},retry=0"], capture_output=True, text=True)
                self.assertEqual(mount.returncode, 0, mount.stderr)
                try:
                    with open(f"{folder}/mnt/file", "w", encoding="utf-8") as file:
                        file.write("written")
                    with open(f"{folder}/export/file", encoding="utf-8") as file:
                        self.assertEqual(file.read(), "written")
                    # Files of users belong to them.
                    subprocess.run(["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "touch",
                                    f"{folder}/mnt/of-user"], check=True)
                    self.assertEqual(os.stat(f"{folder}/export/of-user").st_uid, 1000)
                    subprocess.run([f"{BIN}/nfs-rdma", "status", "--mount", f"{folder}/mnt"], check=True,
                                   stdout=subprocess.DEVNULL)
                finally:
                    subprocess.run(["umount", f"{folder}/mnt"], check=True)
            finally:
                daemon.terminate()
                self.assertEqual(daemon.wait(60), 0)
                daemon.stdout.close()


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.path.join(ROOT, "build/release/bin")
    unittest.main()
