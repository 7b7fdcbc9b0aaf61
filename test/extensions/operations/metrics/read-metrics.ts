// Reads GET /metrics strictly: https://prometheus.io/docs/instrumenting/exposition_formats/

import assert from "node:assert/strict";
import type { RunningGateway } from "../../../support/gateway.ts";

type Sample = ReturnType<typeof parseSample>;
interface Family {
  readonly type: string;
  readonly samples: readonly Sample[];
}

const LABEL = String.raw`[a-zA-Z_]\w*="(?:[^"\\]|\\[\\"n])*"`;
const SAMPLE = new RegExp(
  String.raw`^([a-zA-Z_:][\w:]*)(?:\{(${LABEL}(?:,${LABEL})*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$`,
);

/**
 * Parses one sample. Only \\, \" and
 *  are escaped in a label.
 */
function parseSample(line: string) {
  const [, name = "", all = "", value] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`);
  const unescaped = (text: string) =>
    text.replace(/\\(.)/g, (_, it: string) => (it === "n" ? "\n" : it));
  const pairs = [...all.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label = "", text = ""]) => [label, unescaped(text)] as const,
  );
  const labels = new Map(pairs);
  assert.equal(labels.size, pairs.length, `a label is twice in ${line}`);
  return { name, labels, value: Number(value) };
}

export const identity = ({ name, labels }: Sample): string =>
  JSON.stringify([name, [...labels].sort()]);

/** All families by name. Each has HELP, then TYPE, then its samples, all in one place. */
function parse(text: string): Map<string, Family> {
  assert.ok(text.startsWith("# HELP ") && text.endsWith("\n"));
  const families = new Map<string, Family>();
  for (const part of text.split(/^# HELP /m).slice(1)) {
    const [help = "", head = "", ...lines] = part.slice(0, -1).split("\n");
    const [, name = "", type = ""] =
      /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(head) ?? assert.fail(head);
    const isHelp = help.startsWith(`${name} `) && help.length > name.length + 1;
    assert.ok(isHelp && !/\\(?![\\n])/.test(help), help);
    assert.ok(!families.has(name), `${name} is there twice`);
    assert.equal(type === "counter", name.endsWith("_total"), `${name}: counters end with _total`);
    const samples = lines.map(parseSample);
    const endings = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    const names = endings.map((ending) => name + ending);
    for (const { name: own, value } of samples)
      assert.ok(names.includes(own) && (type === "gauge" || value >= 0), `${own} ${value}`);
    assert.equal(new Set(samples.map(identity)).size, samples.length, `twice in ${name}`);
    if (type === "histogram") assertHistogram(name, samples);
    families.set(name, { type, samples });
  }
  return families;
}

/** For each set of labels: buckets ascend to +Inf, and counts never decrease up to the total. */
function assertHistogram(name: string, samples: readonly Sample[]): void {
  const rowOf = ({ labels }: Sample): string =>
    JSON.stringify([...labels].filter(([label]) => label !== "le").sort());
  for (const row of new Set(samples.map(rowOf))) {
    const valuesOf = (ending: string) =>
      samples
        .filter((sample) => rowOf(sample) === row && sample.name === name + ending)
        .map(({ labels, value }) => [Number(labels.get("le")?.replace("+Inf", "Infinity")), value]);
    const buckets = valuesOf("_bucket");
    for (const [at, [bound = NaN, count = NaN]] of buckets.entries()) {
      const [before = -1, below = 0] = buckets[at - 1] ?? [];
      assert.ok(bound > before && count >= below && Number.isInteger(count), `${name}${row}`);
    }
    const [bound, all] = buckets.at(-1)!;
    assert.equal(bound, Infinity);
    assert.deepEqual(valuesOf("_count"), [[NaN, all]]);
    assert.equal(valuesOf("_sum").length, 1);
  }
}

export async function scrape({ gateway }: RunningGateway) {
  const response = await fetch(`${gateway.adminAddress()}/metrics`);
  const head = [response.status, response.headers.get("content-type")];
  assert.deepEqual(head, [200, "text/plain; version=0.0.4; charset=utf-8"]);
  const text = await response.text();
  const families = parse(text);
  const all = [...families.values()].flatMap(({ samples }) => samples);
  return {
    text,
    families,
    samples: all,
    /** The values of a family's samples with this name, by the values of these labels. */
    read(name: string, ...of: readonly string[]): Record<string, number> {
      const samples = all.filter((sample) => sample.name === name);
      const keyOf = (labels: Sample["labels"]) => of.map((label) => labels.get(label)).join(" | ");
      return Object.fromEntries(samples.map(({ labels, value }) => [keyOf(labels), value]));
    },
  };
}
