// The Grafana dashboard and the alert rules in scripts: every metric, label, error code and kind
// that they name exists, and Prometheus's own checker accepts every expression and the metrics
// themselves.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, it } from "node:test";
import { ERRORS } from "../../../../src/core/openai/errors.ts";
import { FAMILIES, type Family } from "../../../../src/extensions/operations/metrics/families.ts";
import { FAULT_KINDS } from "../../../../src/extensions/operations/metrics/faults.ts";
import { reloadStatus, startRecord } from "../../../../src/reload.ts";
import { allExtensions } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { demo, startGateway, user } from "../../../support/gateway.ts";
import { chunk, startProvider, status as answerWith, stream } from "../../../support/provider.ts";

const { panels } = JSON.parse(readFileSync("scripts/grafana-dashboard.json", "utf8")) as {
  readonly panels: readonly any[];
};
const rules = readFileSync("scripts/prometheus-alerts.yml", "utf8");
const isThere = spawnSync("promtool", ["--version"]).status === 0;
const SKIP = { skip: !isThere && "there is no promtool here" };

/** Runs promtool, which must succeed. Returns its output. */
function assertChecked(args: readonly string[], input = ""): string {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8", input });
  assert.equal(status, 0, stdout + stderr);
  return stdout + stderr;
}

/** The series of a family, with the labels of each. */
function seriesOf([name, family]: readonly [string, Family]): [string, readonly string[]][] {
  const labels = [...(family.labels ?? []), "instance", "job"];
  if (family.type !== "histogram") return [[name, labels]];
  return [
    [`${name}_bucket`, [...labels, "le"]],
    [`${name}_sum`, labels],
    [`${name}_count`, labels],
  ];
}

const SERIES = new Map([
  ...Object.entries<Family>(FAMILIES).flatMap(seriesOf),
  ["up", ["instance", "job"]] as const,
]);
const METRIC = /\b(?:(?:chat_gateway|gen_ai_server|gen_ai_client)_\w+|up(?=\{))/g;

/** The values of labels whose values are known. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  code: Object.keys(ERRORS),
  kind: Object.keys(FAULT_KINDS),
  result: ["sent", "dropped"],
  quantile: ["0.5", "0.99", "1"],
  path: ["/v1/chat/completions", "/v1/messages", "/v1/responses"],
};

/** The labels that an expression keeps. */
const groupedIn = (expr: string): readonly string[] =>
  [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/, */));

function faultsOf(expr: string): string[] {
  const metrics = [...expr.matchAll(METRIC)].map(([name]) => name);
  const unknown = metrics.filter((name) => !SERIES.has(name)).map((name) => `no metric ${name}`);
  if (metrics.length === 0) unknown.push(`no metric in ${expr}`);
  const known = new Set(metrics.flatMap((name) => SERIES.get(name) ?? []));
  const selected = [...expr.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)];
  const labels = [...selected.map(([, label = ""]) => label), ...groupedIn(expr)];
  const values = selected.flatMap(([, label = "", value = ""]) =>
    value.split("|").filter((each) => VALUES[label] && !VALUES[label].includes(each)),
  );
  return [
    ...unknown,
    ...labels.filter((label) => !known.has(label)).map((label) => `no label ${label} in ${expr}`),
    ...values.map((value) => `no value ${value} in ${expr}`),
  ];
}

/** The expressions of the rules. An expression may span several lines. */
const ruleExpressions = [...rules.matchAll(/^ {8}expr: (?:>-\n)?([\s\S]*?)(?=^ {8}\w+:)/gm)].map(
  ([, expr = ""]) => expr.replace(/\s+/g, " ").trim(),
);
/** An expression of the dashboard with values in place of Grafana's variables. */
const filled = (expr: string): string =>
  expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*");
const targets: Record<"expr" | "legendFormat", string>[] = panels.flatMap(
  ({ targets: all = [] }) => all,
);

describe("the alert rules", () => {
  it("name only metrics, labels and values that exist", () => {
    assert.equal(ruleExpressions.length, rules.match(/- alert:/g)?.length);
    assert.deepEqual(ruleExpressions.flatMap(faultsOf), []);
  });

  it("use only labels that their expressions keep", () => {
    for (const rule of rules.split("- alert: ").slice(1)) {
      const shown = [...rule.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!);
      const kept = groupedIn(rule);
      const lost = shown.filter((label) => kept.length > 0 && !kept.includes(label));
      assert.deepEqual(lost, [], rule.split("\n")[0]);
    }
  });

  it("pass promtool", SKIP, () => {
    assertChecked(["check", "rules", "scripts/prometheus-alerts.yml"]);
  });
});

describe("the Grafana dashboard", () => {
  it("names only existing metrics, labels and values, also in its legends", () => {
    const faults = targets.flatMap(({ expr, legendFormat }) => {
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
      return [
        ...faultsOf(expr.replaceAll('instance=~"$instance"', 'instance="a"')),
        ...shown
          .filter((label) => !expr.includes(label))
          .map((label) => `no label ${label}: ${expr}`),
      ];
    });
    assert.deepEqual(faults, []);
  });

  it("shows every existing metric", () => {
    const all = targets.map(({ expr }) => expr).join();
    const hidden = Object.keys(FAMILIES).filter((name) => !all.includes(name));
    assert.deepEqual(hidden, []);
  });

  it("has panels with unique ids, which do not overlap", () => {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const places = panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
    assert.equal(new Set(places).size, panels.length);
    for (const { gridPos, title, targets: own, type } of panels) {
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      assert.ok(type === "row" || own.length > 0, title);
    }
  });

  it("has expressions that promtool accepts", SKIP, () => {
    const recorded = targets.map(({ expr }, at) => ({ record: `panel:${at}`, expr: filled(expr) }));
    // JSON is YAML too.
    const file = join(folder(), "panels.yml");
    writeFileSync(file, JSON.stringify({ groups: [{ name: "panels", rules: recorded }] }));
    assertChecked(["check", "rules", file]);
  });

  it("shows no errors, instead of no data, while there has not been one", SKIP, () => {
    const errors = panels.find(({ title }) => title === "Errors")!;
    const series = 'chat_gateway_requests_total{path="/v1/chat/completions",status="200"}';
    const evaluated = { expr: filled(errors.targets[0].expr), eval_time: "10m" };
    /** The expected samples of the panel if ten minutes of requests have these counts. */
    const expected = (values: string, samples: readonly object[]) => ({
      interval: "1m",
      input_series: [{ series, values }],
      promql_expr_test: [{ ...evaluated, exp_samples: samples }],
    });
    const tests = [expected("0+60x10", [{ labels: "{}", value: 0 }]), expected("0+0x10", [])];
    const file = join(folder(), "errors.yml");
    writeFileSync(file, JSON.stringify({ rule_files: [], tests }));
    assertChecked(["test", "rules", file]);
  });
});

it(
  "promtool check metrics reports nothing about any family, after traffic of every kind",
  SKIP,
  async (t) => {
    // A reader that never catches up: the diagnostics are dropped and counted.
    const behind = new Writable({ write: () => undefined });
    behind.write("x".repeat(9e6));
    const provider = await startProvider(t, answerWith(500));
    const cutting = await startProvider(t, stream([chunk({ content: "On" })], "cut"));
    const broken = {
      providers: {
        lab: { dialect: "openai", base_url: provider.url },
        cutting: { dialect: "openai", base_url: cutting.url },
      },
      models: {
        broken: { provider: "lab" },
        cut: { provider: "cutting", prefill: "plain", recovery: "continue" },
      },
      accounts: { demo: { budget: { amount: "1", period: "day" } } },
      telemetry: { otlp: { endpoint: provider.url } },
    };
    const extensions = [...allExtensions, reloadStatus(startRecord(undefined))];
    const gateway = await startGateway(t, demo(broken), { diagnostics: behind, extensions });
    gateway.gateway.diagnose({ event: "test" });
    const ask = async (body: object) =>
      (await gateway.chat(body, { authorization: "Bearer sk-demo" })).text();
    for (const stream of [true, false])
      await ask({ model: "auto/reasoning", stream, messages: user("hi") });
    await ask({ model: "nowhere", messages: user("hi") });
    await ask({ model: "broken", messages: user("hi") });
    await ask({ model: "cut", stream: true, messages: user("hi") });
    await (await fetch(`${gateway.url}/nowhere`)).text();
    const metrics = await (await fetch(`${gateway.gateway.adminAddress()}/metrics`)).text();
    for (const [, name] of metrics.matchAll(/^# TYPE (\S+) /gm))
      assert.match(metrics, new RegExp(`^${name}`, "m"));
    assert.equal(assertChecked(["check", "metrics"], metrics), "");
  },
);
