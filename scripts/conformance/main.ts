// A conformance suite for chat-completions gateways. It needs Node, an address and a key, and
// relies only on what is visible from outside. `npm run conformance -- --base-url
// http://127.0.0.1:8080 --key sk-demo --model demo-chat`; --help lists the options. Exit code 0:
// all checks that ran passed; 1: a check failed; 2: the suite could not run.

import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { CHECKS } from "./checks/all.ts";
import { SETUPS } from "./checks/setup.ts";
import { createClient } from "./client.ts";
import { LIMITED, modelsOf, READY, readyConfig, startProvider, type Provider } from "./provider.ts";
import {
  LEVELS,
  levelOf,
  NEEDS,
  runChecks,
  type Check,
  type Options,
  type Result,
} from "./suite.ts";
import { CHAT, question } from "./tester.ts";

const HELP = `conformance --base-url URL --key KEY [options]

  --base-url URL         the gateway's base address, to which /v1/chat/completions is appended
  --key KEY              a key that it accepts; waits where its limit makes it (some 400 requests)
  --model NAME           a model by its canonical name, one that cannot think; without it rules
                         about such names are skipped
  --alias NAME           auto/chat
  --reasoning-model NAME a model that thinks, or an alias of such: auto/reasoning
  --limited-key KEY      a key with a small limit of requests per minute, which the suite exceeds
  --limited-rpm N        that limit
  --with-provider        starts the suite's own provider, which the level robust needs, says how the
                         gateway is to be configured for it (with models for the other levels too),
                         and begins when the gateway answers so, within two minutes
  --provider-port N      where that provider listens on 127.0.0.1, there and at the next port
  --provider-config FILE that configuration goes into this file; else to stderr
  --header NAME=VALUE    goes with every request but those that are sent raw; may be repeated
  --without a,b          what it cannot do: model alias plain reasoning tools json logprobs messages
                         responses (plain: --model thinks)
  --level a,b            ${LEVELS.join(",")}
  --only a,b             checks by the beginning of their id
  --timeout-ms N         for each wait: 30000
  --concurrency N        checks at a time: 4
  --list                 prints the rules and runs nothing
  --json                 one JSON document
`;

const text = { type: "string" } as const;
const flag = { type: "boolean", default: false } as const;
const OPTIONS = {
  "base-url": text,
  key: text,
  model: text,
  alias: text,
  "reasoning-model": text,
  "limited-key": text,
  "limited-rpm": text,
  header: { type: "string", multiple: true },
  without: text,
  level: text,
  only: text,
  "timeout-ms": text,
  concurrency: text,
  "with-provider": flag,
  "provider-port": text,
  "provider-config": text,
  list: flag,
  json: flag,
  help: flag,
} as const;
const read = (args: readonly string[]) => parseArgs({ args: [...args], options: OPTIONS }).values;
type Values = ReturnType<typeof read>;

/** Splits a comma-separated list, whose names must be among these. */
function named<T extends string>(option: string, given: string, among: readonly T[]): T[] {
  return given.split(",").map((name) => {
    const found = among.find((each) => each === name);
    if (!found) throw new Error(`there is no ${option} ${name}: ${among.join(", ")}`);
    return found;
  });
}

function chosen({ level = LEVELS.join(), only = "" }: Values): Check[] {
  const levels: readonly string[] = named("level", level, LEVELS);
  const beginnings = only.split(",");
  const checks = CHECKS.filter(({ id }) => beginnings.some((text) => id.startsWith(text))).filter(
    (check) => levels.includes(levelOf(check)),
  );
  if (checks.length === 0) throw new Error("there is no such check");
  return checks;
}

function count(name: string, given: string | undefined): number | undefined {
  if (given !== undefined && !/^[1-9]\d{0,8}$/.test(given))
    throw new Error(`--${name} is a positive integer, not ${given}`);
  return given === undefined ? undefined : Number(given);
}

function header(given: string): [name: string, value: string] {
  const [, name, value] = /^([\w-]+)=(.*)$/s.exec(given) ?? [];
  if (name === undefined || value === undefined)
    throw new Error(`--header is NAME=VALUE, not ${given}`);
  return [name, value];
}

function optionsOf(values: Values): Options {
  const { "base-url": baseUrl, key, "limited-key": limitedKey, without = "" } = values;
  if (baseUrl === undefined || key === undefined)
    throw new Error("--base-url and --key are required (--help)");
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl))
    throw new Error(`--base-url is an http or https address, not ${baseUrl}`);
  const rpm = count("limited-rpm", values["limited-rpm"]);
  if ((limitedKey === undefined) !== (rpm === undefined))
    throw new Error("--limited-key and --limited-rpm go together");
  return {
    baseUrl,
    key,
    model: values.model,
    alias: values.alias,
    reasoningModel: values["reasoning-model"],
    headers: Object.fromEntries((values.header ?? []).map(header)),
    limited: limitedKey === undefined || rpm === undefined ? undefined : { key: limitedKey, rpm },
    without: without === "" ? [] : named("--without", without, NEEDS),
    deadlineMs: count("timeout-ms", values["timeout-ms"]),
    concurrency: count("concurrency", values.concurrency),
    pause(seconds) {
      console.error(`conformance: the key's own limit is reached; waiting ${seconds} s`);
      return pause(seconds * 1000);
    },
  };
}

const READY_MS = 120_000;

/** Prints how to configure the gateway, and waits until it has that configuration. */
async function ready(provider: Provider, options: Options, file: string | undefined) {
  const { baseUrl, key, deadlineMs = 30_000 } = options;
  const config = JSON.stringify(readyConfig(provider, SETUPS, key), null, 2);
  const [model] = modelsOf(READY);
  if (file !== undefined) writeFileSync(file, `${config}\n`);
  console.error(
    `conformance: the gateway's provider is to be ${provider.url}; waiting until ${baseUrl} has this configuration: ${file ?? `\n${config}`}`,
  );
  const client = createClient(baseUrl, deadlineMs);
  const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
  const body = JSON.stringify({ model, messages: question("Ready?") });
  let came = "";
  for (const end = performance.now() + READY_MS; performance.now() < end; await pause(200)) {
    came = await client.send({ method: "POST", path: CHAT, headers, body }).then(
      (answer) => (answer.status === 200 ? "" : `${answer.status} ${answer.text}`),
      (error: Error) => error.message,
    );
    if (came === "") return client.close();
  }
  client.close();
  throw new Error(`waited ${READY_MS} ms for ${baseUrl} to answer for ${model}, and got: ${came}`);
}

/** A report for people: a line per check, the violations below it, and the totals. */
function scorecard(results: readonly Result[]): string {
  const widthOf = (name: "id" | "source") => Math.max(...results.map((each) => each[name].length));
  const [ids, sources] = [widthOf("id"), widthOf("source")];
  const lines = results.map(({ id, source, title, result, expected, got, why }) => {
    const row = `${result.padEnd(4)}  ${id.padEnd(ids)}  ${source.padEnd(sources)}  ${title}`;
    if (result === "fail") return `${row}\n        expected  ${expected}\n        got       ${got}`;
    return result === "skip" ? `${row}\n        skipped   ${why}` : row;
  });
  const sums = LEVELS.flatMap((level) => {
    const of = results.filter((each) => levelOf(each) === level);
    const number = (result: Result["result"]) => of.filter((each) => each.result === result).length;
    const sum = `${of.length} checks: ${number("pass")} passed, ${number("fail")} failed, ${number("skip")} skipped`;
    return of.length > 0 ? [`${level.padEnd(10)}  ${sum}`] : [];
  });
  return [...lines, "", ...sums].join("\n");
}

function listed(checks: readonly Check[], json: boolean): string {
  const rules = checks.map(({ id, source, title }) => ({ id, source, title }));
  if (json) return JSON.stringify(rules);
  return rules.map(({ id, source, title }) => `${id}  (${source})  ${title}`).join("\n");
}

async function resultsOf(checks: readonly Check[], values: Values): Promise<Result[]> {
  const options = optionsOf(values);
  if (!values["with-provider"]) return runChecks(checks, options);
  const provider = await startProvider(count("provider-port", values["provider-port"]));
  try {
    await ready(provider, options, values["provider-config"]);
    const { model = "demo-chat", limited = LIMITED } = options;
    return await runChecks(checks, { ...options, model, limited, provider });
  } finally {
    await provider.close();
  }
}

async function main(argv: readonly string[]): Promise<number> {
  const values = read(argv);
  if (values.help || values.list) {
    console.log(values.help ? HELP : listed(chosen(values), values.json));
    return 0;
  }
  const checks = chosen(values);
  const startedAt = performance.now();
  const results = await resultsOf(checks, values);
  const failed = results.some(({ result }) => result === "fail");
  const seconds = Math.round(performance.now() - startedAt) / 1000;
  const document = { base_url: values["base-url"], seconds, passed: !failed, checks: results };
  console.log(values.json ? JSON.stringify(document) : scorecard(results));
  return failed ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(`conformance: ${error.message}`);
  return 2;
});
