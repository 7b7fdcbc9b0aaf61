// What the client suites share: one gateway that serves the demo models and those of three fake
// providers, each in a format of its own; what their models say; and why a suite is skipped where a
// client library is not installed.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import demoConfig from "../../src/extensions/providers/demo/demo.json" with { type: "json" };
import type { GatewayDeps } from "../support/config.ts";
import { folder } from "../support/folder.ts";
import { startAnthropic } from "../support/fake-anthropic.ts";
import { startGemini } from "../support/fake-gemini.ts";
import { startOpenai } from "../support/fake-openai.ts";
import {
  PROVIDER_KEY,
  type Call,
  type FakeProvider,
  type Model,
} from "../support/fake-provider.ts";
import {
  configFor,
  demo,
  KEY,
  merge,
  startGateway,
  type RunningGateway,
} from "../support/gateway.ts";
import { skipWithout } from "../support/installed.ts";
import { launch } from "../support/program.ts";
import { startShell } from "../support/readme.ts";
import { waitFor, within } from "../support/wait.ts";

/**
 * False, or why a suite is skipped; where the clients are demanded (in CI) that is an error
 * instead.
 */
export const skipUnless = (present: boolean, otherwise: string): false | string =>
  skipWithout(present ? [] : [otherwise], "REQUIRE_CLIENTS");

export const notInstalled = () =>
  skipUnless(existsSync(new URL("node_modules", import.meta.url)), "run npm ci in test/clients");

export const PYTHON = process.env["CLIENTS_PYTHON"] ?? "python3";

/** Whether a Python has a module. Looking for it is quick; importing some takes seconds. */
export function hasModule(python: string, name: string): boolean {
  const look = `import importlib.util as u, sys; sys.exit(u.find_spec("${name}") is None)`;
  return spawnSync(python, ["-c", look]).status === 0;
}

/** Why a suite is skipped that needs a module of PYTHON. */
export const noModule = (name: string) =>
  skipUnless(
    hasModule(PYTHON, name),
    `${PYTHON} has no ${name}: pip install -r test/clients/requirements.txt, or set CLIENTS_PYTHON`,
  );

export const noPython = () => noModule("openai");

export const QUESTION = "What time is it in Oslo?";

export const TOOL = { name: "get_time", description: "The time in a city" };
export const PARAMETERS = {
  type: "object" as const,
  properties: { city: { type: "string" } },
  required: ["city"],
};

export const GENERATED_ID = /^req_[0-9a-f]{32}$/;

/** May use demo-chat and nothing else. */
export const RESTRICTED_KEY = "sk-test-restricted-key";
/** Its limit admits nothing. */
export const SPENT_KEY = "sk-test-spent-key";

/**
 * What a careless relay would change: white space, quotes, backslashes, markup, several scripts,
 * joined emoji.
 */
export const TEXT =
  'Grüße aus Oslo!\n\n  Two  spaces, "quotes", back\\slashes,\ttabs, <b>&amp;</b>: data: [DONE] 你好 👩‍👩‍👧 мир\u2028end.';
export const REASONING = "First the greeting,\nthen the city.";

/**
 * Two calls at once. The arguments are JSON, but not as JSON.stringify writes it: only a copy byte
 * for byte equals them.
 */
export const CALLS = [
  {
    id: "call_Oslo-1",
    name: "get_time",
    arguments: '{"city" : "Oslo",  "note":"a \\"quoted\\" na\\u00efve 👋"}',
  },
  { id: "call_Lima-2", name: "get_time", arguments: '{ "city":"Lima" }' },
] as const;

/** What the scripted model says when it has both results. */
export const AFTER_CALLS = "It is 14:05 in Oslo and 08:05 in Lima.";
export const clock = (city: string): string =>
  ({ Oslo: "14:05", Lima: "08:05" })[city] ?? `no clock in ${city}`;

/** The object that the model `shaped` answers with, as a text or by its one tool. */
export const OPENING = { city: "Oslo", hours: 7, open: true };

export const MODELS: Readonly<Record<string, Model>> = {
  exact: () => ({ reasoning: REASONING, text: TEXT }),
  parallel: ({ messages }) =>
    messages.at(-1)!["role"] === "tool"
      ? { text: AFTER_CALLS }
      : { reasoning: REASONING, calls: CALLS },
  shaped: ({ tools: [tool] }) => {
    const text = JSON.stringify(OPENING);
    return tool ? { calls: [{ id: "call_1", name: tool.name, arguments: text }] } : { text };
  },
  endless: () => ({ text: BEFORE_BAD_ENDING, ending: "open" }),
  silent: () => undefined,
  broken: () => ({ status: 500 }),
  "error-event": () => ({ text: BEFORE_BAD_ENDING, ending: "error" }),
  cut: () => ({ text: BEFORE_BAD_ENDING, ending: "cut" }),
  unfinished: () => ({ text: BEFORE_BAD_ENDING, ending: "eof" }),
};

/** The models whose streams begin well and end badly, each in its way. */
export const BAD_ENDINGS = ["error-event", "cut", "unfinished"] as const;
export const BEFORE_BAD_ENDING = "Half of";

/**
 * The formats of the fake providers: the name of each provider in the configuration, the beginning
 * of its own names of models, and the function that starts it.
 */
export const BEHIND = {
  openai: { provider: "lab", upstream: "", start: startOpenai },
  anthropic: { provider: "anthropic", upstream: "claude-5-", start: startAnthropic },
  gemini: { provider: "gemini", upstream: "gemini-3-", start: startGemini },
} as const;
export type Behind = keyof typeof BEHIND;

/** The formats that every test of replies runs with. */
export const DIALECTS = Object.keys(BEHIND) as readonly Behind[];

/** The name by which a client of the gateway asks for one of MODELS. */
export const modelName = (behind: Behind, name: string): string =>
  behind === "openai" ? name : `${behind}/${name}`;

/**
 * The calls as they reach a client: byte for byte where the provider sends arguments as text. In
 * Anthropic's whole replies and in all of Gemini's they are a value, which the gateway writes down.
 */
export function callsVia(behind: Behind, streamed: boolean): readonly Call[] {
  if (behind === "openai" || (streamed && behind === "anthropic")) return CALLS;
  return CALLS.map((call) => ({ ...call, arguments: JSON.stringify(JSON.parse(call.arguments)) }));
}

export type Lab = Awaited<ReturnType<typeof startLab>>;

export async function startLab(t: TestContext, over: object = {}, deps: GatewayDeps = {}) {
  const fakes = {
    lab: await startOpenai(t, MODELS),
    anthropic: await startAnthropic(t, MODELS),
    gemini: await startGemini(t, MODELS),
  };
  const native = (dialect: "anthropic" | "gemini") => ({
    dialect,
    base_url: fakes[dialect].url,
    api_key: PROVIDER_KEY,
  });
  const scripted = configFor(fakes.lab.url, [], {
    providers: { anthropic: native("anthropic"), gemini: native("gemini") },
    models: Object.fromEntries(DIALECTS.flatMap(modelsBehind)),
    aliases: demoConfig.aliases,
  });
  const base = merge(demo(), scripted) as { keys: object[] };
  const keys = [
    ...base.keys,
    { account: "acme", key: RESTRICTED_KEY, models: ["demo-chat"] },
    { account: "acme", key: SPENT_KEY, rpm: 0 },
  ];
  const gateway = await startGateway(t, merge({ ...base, keys }, over) as object, deps);
  // The last of the hooks: none is called after one that has failed.
  t.after(() => {
    const broken = Object.values(fakes).flatMap((fake) => fake.broken);
    for (const rule of broken) t.diagnostic(`the gateway broke a rule of its provider: ${rule}`);
    assert.deepEqual(broken, []);
  });
  return {
    ...gateway,
    baseURL: `${gateway.url}/v1`,
    provider: (behind: Behind) => fakes[BEHIND[behind].provider],
  };
}

/** A gateway with one API beside chat, and one model by this name: the provider's model `m`. */
export function startBefore(
  t: TestContext,
  { url }: Pick<FakeProvider, "url">,
  dialect: Behind,
  { api, name }: { readonly api: "messages" | "responses"; readonly name: string },
): Promise<RunningGateway> {
  const upstream_model = `${BEHIND[dialect].upstream}m`;
  const config = configFor(url, [], {
    apis: [api],
    models: { [name]: { provider: "lab", upstream_model, reasoning: true } },
  });
  // configFor() gives its provider OpenAI's format.
  const lab = { dialect, base_url: url, api_key: PROVIDER_KEY };
  return startGateway(t, { ...config, providers: { lab } });
}

/** The models of one provider, by name, as they stand in the configuration. */
function modelsBehind(behind: Behind): (readonly [string, object])[] {
  const { provider, upstream } = BEHIND[behind];
  return Object.keys(MODELS).map((name) => [
    modelName(behind, name),
    { provider, upstream_model: `${upstream}${name}`, reasoning: true },
  ]);
}

/** The access log's statuses, once as many as expected are there. */
export async function statuses(lab: Lab, count: number): Promise<unknown[]> {
  await waitFor(() => lab.access.length >= count, `${count} lines of the access log`);
  return lab.access.map(({ status }) => status);
}

/** The client of `endless` has left: the provider's connection is closed and the log says 499. */
export async function assertLeft({ provider, access }: Lab, behind: Behind): Promise<void> {
  const asked = () => provider(behind).heard.find(({ model }) => model === "endless");
  await waitFor(
    () => asked()?.closed(),
    "the provider's connection to be closed after the client left",
  );
  const line = await waitFor(
    () => access.find((record) => record["model"] === modelName(behind, "endless")),
    "the access log line of the request that the client left",
  );
  assert.equal(line["status"], 499);
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

export const scriptAt = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/**
 * Runs the Python with the client libraries to its end. Returns its exit code, and what it printed
 * on both streams. `what` names the run if it takes too long.
 */
export async function runPython(what: string, args: readonly string[]) {
  const env = { PYTHONIOENCODING: "utf-8", PYTHONDONTWRITEBYTECODE: "1" };
  const { child, ended } = launch({ args: [], cwd: ".", command: [PYTHON] }, args, { env });
  const { code, stdout, stderr } = await within(ended, what).finally(() => child.kill("SIGKILL"));
  return { code, output: stdout + stderr };
}

/**
 * Runs lines of bash that a reader copies, in a folder, with a new home and, of this environment,
 * PATH alone. Returns the exit code, and what they printed.
 */
export async function runLines(t: TestContext, lines: string, cwd: string, env: object) {
  const { PATH } = process.env;
  const shell = startShell(lines, { cwd, env: { PATH, HOME: folder(), ...env } });
  t.after(() => shell.child.kill("SIGKILL"));
  const code = await shell.ended();
  return { code, output: shell.output().trim() };
}

export { KEY };
