// What a check is, and how checks run. There are two kinds. Most send their own requests and
// examine the answers. The others, made by `every`, run when those are done and examine everything
// received meanwhile: each rule about the shape of an answer applies to every answer of the run,
// and a gateway that breaks one rule fails one check.

import { createClient, type Exchange, type Headers } from "./client.ts";
import * as expect from "./expect.ts";
import type { Provider } from "./provider.ts";
import { CHAT, SAMPLE, sample, testerOf, type Run, type Tester } from "./tester.ts";

/** What a check needs and a gateway, or a run, may lack. */
export const NEEDS = [
  ...(["model", "alias", "plain", "reasoning", "tools", "json", "logprobs"] as const),
  ...(["limited", "provider", "messages", "responses"] as const),
];
export type Need = (typeof NEEDS)[number];
/** The levels of checks, in the order of their results. */
export const LEVELS = ["spec", "compatible", "robust", "messages", "responses"] as const;
export type Level = (typeof LEVELS)[number];

/** A check of the suite. */
export interface Check {
  /** Its level, a dot, and its subject: `spec.request-id.echo`. */
  readonly id: string;
  /** The document and the section that state the rule. */
  readonly source: string;
  /** The rule. */
  readonly title: string;
  readonly needs: readonly Need[];
  /** Absent: beside others. "alone": one at a time, after those. "last": after all others. */
  readonly when?: "alone" | "last" | undefined;
  /**
   * Throws an Expectation if the gateway breaks the rule, or another error if it does not answer.
   */
  run(t: Tester): unknown;
}

/** The level of a check, with which its id begins. */
export const levelOf = ({ id }: Pick<Check, "id">): string => id.slice(0, id.indexOf("."));

/** Thrown if a rule cannot be checked, for a reason that another rule reports. */
export class Skipped extends Error {}

/** How to run checks against a gateway. */
export interface Options {
  readonly baseUrl: string;
  readonly key: string;
  /** Headers of every request that is not sent raw. */
  readonly headers?: Headers | undefined;
  /** A model without reasoning. Absent: the alias is asked, and rules about names are skipped. */
  readonly model?: string | undefined;
  /** Absent: auto/chat, which contract.md "Routing aliases" defines. */
  readonly alias?: string | undefined;
  /** A model with reasoning, or an alias of such models. Absent: auto/reasoning. */
  readonly reasoningModel?: string | undefined;
  /** A second key with a small limit, for the rules about limits. */
  readonly limited?: { readonly key: string; readonly rpm: number } | undefined;
  /** The suite's own provider, which the gateway must be configured with (checks/setup.ts). */
  readonly provider?: Provider | undefined;
  /** What the gateway, or its models, cannot do. */
  readonly without?: readonly Need[] | undefined;
  /** Milliseconds for each wait. Absent: 30,000. */
  readonly deadlineMs?: number | undefined;
  /** The number of checks that run at once. Absent: 4. */
  readonly concurrency?: number | undefined;
  /** A header that names the check in each request that is not raw. Absent: no header. */
  readonly mark?: string | undefined;
  /**
   * Waits before a request is repeated that the key's own limit rejected. Absent: none is repeated.
   */
  readonly pause?: ((seconds: number) => Promise<unknown>) | undefined;
}

/** What a check found. */
export interface Outcome {
  readonly result: "pass" | "fail" | "skip";
  readonly expected?: string;
  readonly got?: string;
  /** Why the check was skipped. */
  readonly why?: string;
}
/** The outcome of a check, and which check it is. */
export type Result = Outcome & Pick<Check, "id" | "source" | "title">;

/** Runs the checks. Returns their results in the same order. */
export async function runChecks(checks: readonly Check[], options: Options): Promise<Result[]> {
  const client = createClient(options.baseUrl, options.deadlineMs ?? 30_000, options.headers);
  const run: Run = { client, options, seen: [], unanswered: [], exceeded: undefined };
  const lacks = missing(options);
  const results = new Map<Check, Result>();

  async function outcomeOf(check: Check): Promise<Outcome> {
    const lacking = check.needs.find((need) => lacks.has(need));
    if (lacking) return { result: "skip", why: lacks.get(lacking)! };
    try {
      await check.run(testerOf(run, check.id));
      return { result: "pass" };
    } catch (error) {
      if (error instanceof Skipped) return { result: "skip", why: error.message };
      const { expected = "an answer", got } = error as Partial<expect.Expectation>;
      return { result: "fail", expected, got: got ?? (error as Error).message };
    }
  }
  async function perform(check: Check): Promise<void> {
    const { id, source, title } = check;
    results.set(check, { id, source, title, ...(await outcomeOf(check)) });
  }

  try {
    const t = testerOf(run, SAMPLE);
    await t.get("/healthz"); // a gateway that does not answer this cannot be checked
    const parallel = options.concurrency ?? 4;
    if (checks.some(({ when }) => when === "last")) {
      await each(sample(t, lacks), parallel, (request) =>
        request().catch((error: Error) => run.unanswered.push(error.message)),
      );
    }
    const beside = checks.filter(({ when }) => when === undefined);
    await each(beside, parallel, perform);
    for (const when of ["alone", "last"])
      for (const check of checks) if (check.when === when) await perform(check);
  } finally {
    client.close();
  }
  return checks.map((check) => results.get(check)!);
}

/** Calls `act` for each item in order, `parallel` at a time. */
async function each<T>(items: readonly T[], parallel: number, act: (item: T) => Promise<unknown>) {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await act(item);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}

/** What this run lacks, and why. */
function missing({ model, limited, provider, without = [] }: Options): Map<Need, string> {
  const lacks = new Map<Need, string>(without.map((need) => [need, `--without ${need}`]));
  if (model === undefined)
    for (const need of ["model", "plain"] as const) lacks.set(need, "needs --model");
  if (limited === undefined) lacks.set("limited", "needs --limited-key and --limited-rpm");
  if (provider === undefined) lacks.set("provider", "needs --with-provider");
  return lacks;
}

/** The kinds of answers that a rule may be about. */
export const KINDS = {
  response: () => true,
  reply: ({ request, status, streamed }: Exchange) =>
    request.path === CHAT && status === 200 && !streamed,
  stream: ({ request, streamed }: Exchange) => request.path === CHAT && streamed,
  error: ({ status }: Exchange) => status !== 200,
};
export type Kind = keyof typeof KINDS;

/** A check of every answer of a kind. `look` throws if an answer breaks the rule. */
export const every =
  (kind: Kind, look: (exchange: Exchange) => void): Check["run"] =>
  ({ seen }) => {
    const looked = seen.filter(KINDS[kind]);
    if (looked.length === 0) throw new Skipped(`there was no ${kind} to look at`);
    let failures = 0;
    let first: { readonly exchange: Exchange; readonly error: expect.Expectation } | undefined;
    for (const exchange of looked) {
      try {
        look(exchange);
      } catch (error) {
        if (!(error instanceof expect.Expectation)) throw error;
        failures += 1;
        first ??= { exchange, error };
      }
    }
    if (!first) return;
    const { exchange, error } = first;
    const { check, request, status } = exchange;
    const where = `in ${failures} of ${looked.length}, first in ${request.method} ${request.path}, ${status}, of ${check}`;
    throw new expect.Expectation(error.expected, `${error.got} (${where})`);
  };
