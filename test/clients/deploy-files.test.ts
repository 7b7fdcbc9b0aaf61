// The files of scripts/deploy that other programs read, against the schemas and by the tools of
// these programs: the compose file, the Kubernetes manifests, Prometheus' configuration. There is
// no container runtime here, so nothing of this is started.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { folder } from "../support/folder.ts";
import { PYTHON, skipUnless } from "./lab.ts";

const COMPOSE = "scripts/deploy/compose";
const KUBERNETES = "scripts/deploy/kubernetes";
/** The oldest release that the manifests are for, and a late one. */
const RELEASES = ["1.25", "1.37"];

type Json = any;

const has = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: "ignore" }).status === 0;

const noModules = () =>
  skipUnless(
    has(PYTHON, "-c", "import kubernetes_validate, check_jsonschema, yaml"),
    `${PYTHON} lacks packages: pip install -r test/clients/requirements.txt, or set CLIENTS_PYTHON`,
  );

/** The exit code and output of a module of Python. */
function python(module: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(PYTHON, ["-m", module, ...args], {
    encoding: "utf8",
  });
  return { status, output: stdout + stderr };
}

/** The documents of a YAML file, as Python's reader has them. */
function documents(file: string): Json[] {
  const script =
    "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
  return JSON.parse(execFileSync(PYTHON, ["-c", script, file], { encoding: "utf8" }));
}

/** A copy of a file with another text in it. */
function changed(file: string, from: string, to: string): string {
  const text = readFileSync(file, "utf8");
  assert.ok(text.includes(from), `${file} has ${from}`);
  const copy = join(folder(), "changed.yaml");
  writeFileSync(copy, text.replace(from, to));
  return copy;
}

const config = (file: string): Json => JSON.parse(readFileSync(file, "utf8"));
const seconds = (text: string): number => Number(/^(\d+)s$/.exec(text)?.[1]);

describe("the compose file", { skip: noModules() }, () => {
  const file = join(COMPOSE, "compose.yaml");
  const isValid = (path: string) =>
    python("check_jsonschema", "--builtin-schema", "vendor.compose-spec", path);

  it("is valid by the schema of the Compose Specification, which would find a mistake", () => {
    const { status, output } = isValid(file);
    assert.equal(status, 0, output);
    assert.notEqual(isValid(changed(file, "read_only: true", "read_only: [1]")).status, 0);
    assert.notEqual(isValid(changed(file, "cap_drop:", "cap_drops:")).status, 0);
  });

  it("fits the gateway's configuration and the image", () => {
    const [{ services, networks, volumes, secrets }] = documents(file);
    const { gateway, redis, postgres, prometheus, grafana } = services;
    const settings = config(join(COMPOSE, "gateway/gateway.json"));
    const drainMs = settings.server.drain_ms ?? 30_000;
    assert.ok(seconds(gateway.stop_grace_period) * 1_000 > drainMs);
    assert.equal(settings.limits.store, "redis://redis:6379");
    for (const name of ["redis", "pg"]) assert.match(gateway.build.args.PACKAGES, new RegExp(name));
    const { admin, server } = settings;
    assert.deepEqual(
      gateway.ports,
      [server.port, admin.port].map((port) => `127.0.0.1:${port}:${port}`),
    );
    const [scraped] = documents(join(COMPOSE, "prometheus.yml"));
    const [target] = scraped.scrape_configs[0].static_configs[0].targets;
    assert.equal(target, `gateway:${admin.metrics.port}`);

    for (const service of Object.values<Json>(services)) {
      for (const network of service.networks) assert.ok(network in networks, network);
      for (const secret of service.secrets ?? []) assert.ok(secret in secrets, secret);
    }
    assert.deepEqual([networks.stores.internal, networks.monitoring.internal], [true, true]);
    const reach = ({ networks: names }: Json) => names.join();
    assert.deepEqual([redis, postgres, prometheus].map(reach), ["stores", "stores", "monitoring"]);
    const published = [gateway, grafana].flatMap(({ ports }) => ports as string[]);
    assert.ok(published.every((port) => port.startsWith("127.0.0.1:")));
    for (const source of Object.values<Json>(services).flatMap(sourcesOf))
      assert.ok(isPath(source) || source in volumes, source);
  });

  it("mounts files that are there, or that the operator makes before the start", () => {
    const [{ services }] = documents(file);
    const mounted = Object.values<Json>(services).flatMap(sourcesOf).filter(isPath);
    assert.ok(mounted.length >= 7);
    const made = /^\.\/secrets\/(gateway|postgres|grafana)$/;
    for (const source of mounted)
      assert.ok(made.test(source) || existsSync(join(COMPOSE, source)), source);
    assert.ok(existsSync(join(COMPOSE, services.gateway.build.context, "package.json")));
  });

  const noPromtool = () => skipUnless(has("promtool", "--version"), "there is no promtool");
  it("has a configuration for Prometheus that promtool takes", {
    skip: noPromtool(),
  }, () => {
    const written = changed(join(COMPOSE, "prometheus.yml"), "/etc/prometheus/", "");
    copyFileSync("scripts/prometheus-alerts.yml", join(dirname(written), "alerts.yml"));
    execFileSync("promtool", ["check", "config", written], { stdio: "pipe" });
  });
});

/** What a service mounts: paths, and names of volumes. */
function sourcesOf({ volumes = [] }: Json): string[] {
  return (volumes as string[]).map((volume) => volume.split(":")[0]!);
}
function isPath(source: string): boolean {
  return /^[./]/.test(source);
}

describe("the Kubernetes manifests", { skip: noModules() }, () => {
  const [kustomization] = documents(join(KUBERNETES, "kustomization.yaml"));
  const files = (kustomization.resources as string[]).map((name) => join(KUBERNETES, name));
  const validate = (file: string, release: string) =>
    python("kubernetes_validate", "--strict", "--kubernetes-version", release, file);
  const deployment = join(KUBERNETES, "deployment.yaml");

  it("are all named in the kustomization, with the configuration", () => {
    const written = readdirSync(KUBERNETES).filter((name) => name.endsWith(".yaml"));
    assert.deepEqual([...kustomization.resources, "kustomization.yaml"].sort(), written.sort());
    assert.deepEqual(kustomization.configMapGenerator[0].files, ["gateway.json"]);
  });

  for (const release of RELEASES) {
    it(`are valid by the schemas of Kubernetes ${release}, which would find a mistake`, () => {
      for (const file of files) {
        const { status, output } = validate(file, release);
        assert.equal(status, 0, output);
        assert.match(output, /passed for resource/);
      }
      for (const [from, to] of [
        ["runAsNonRoot: true", "runAsNonroot: true"],
        ["terminationGracePeriodSeconds: 45", "terminationGracePeriodSeconds: soon"],
      ] as const)
        assert.notEqual(validate(changed(deployment, from, to), release).status, 0);
    });
  }

  it("fit the gateway's configuration", () => {
    const settings = config(`${KUBERNETES}/gateway.json`);
    const [{ spec }] = documents(deployment);
    const pod = spec.template.spec;
    const [container] = pod.containers;
    const ports = Object.fromEntries(
      container.ports.map(({ name, containerPort }: Json) => [name, containerPort]),
    );
    assert.deepEqual(ports, { http: settings.server.port, metrics: settings.admin.metrics.port });
    const preStop = Number(container.lifecycle.preStop.exec.command[1]);
    const drain = settings.server.drain_ms / 1_000;
    assert.ok(pod.terminationGracePeriodSeconds > preStop + drain);
    const probe = ({ httpGet }: Json) => `${httpGet.port}${httpGet.path}`;
    assert.deepEqual(
      [container.startupProbe, container.livenessProbe, container.readinessProbe].map(probe),
      ["http/healthz", "http/healthz", "http/readyz"],
    );
    const mounts = container.volumeMounts as Json[];
    assert.ok(mounts.every((mount) => mount.subPath === undefined));
    const mountOf = (name: string) => mounts.find((mount) => mount.name === name).mountPath;
    assert.deepEqual(container.args, ["serve", "--config", `${mountOf("config")}/gateway.json`]);
    assert.equal(settings.data_dir, mountOf("data"));
    const named = [...JSON.stringify(settings).matchAll(/\$file:([^"]+)"/g)];
    assert.ok(named.length >= 2);
    for (const [, path] of named) assert.equal(dirname(path!), mountOf("secrets"));
  });

  it("give the pod no more than it needs", () => {
    const [{ spec }] = documents(deployment);
    const { securityContext, automountServiceAccountToken, containers } = spec.template.spec;
    const { runAsNonRoot, runAsUser } = securityContext;
    assert.deepEqual([runAsNonRoot, runAsUser, automountServiceAccountToken], [true, 1000, false]);
    const [container] = containers;
    const { capabilities, ...rest } = container.securityContext;
    assert.deepEqual([rest.allowPrivilegeEscalation, rest.readOnlyRootFilesystem], [false, true]);
    assert.deepEqual(capabilities.drop, ["ALL"]);
    const writable = container.volumeMounts.filter((mount: Json) => mount.readOnly !== true);
    assert.equal(writable.map(({ name }: Json) => name).join(), "data");
    assert.match(readFileSync("scripts/Dockerfile", "utf8"), /^USER 1000:1000$/m);
  });
});
