// What a check is, and how checks are run. There are two kinds. Most send requests of their own and
// look at what these are about. The others, made by `every`, run when those are done and look at
// all that was received meanwhile: each rule about the shape of an answer is so applied to every
// answer of the run, and a gateway that breaks one rule fails one check.

import { createClient, parseJson, type Client, type Opened, type Request } from "./client.ts";
import { exchangeOf, type Exchange, type Sent } from "./exchange.ts";
import type { Provider } from "./provider.ts";
import { Expectation, expect, isObject, type Json } from "./shapes.ts";

/** What a check needs that a gateway, or a run, may lack. */
export const NEEDS = [
  ...(["model", "alias", "plain", "reasoning", "tools", "json", "logprobs"] as const),
  ...(["limited", "provider", "messages", "responses"] as const),
];
export type Need = (typeof NEEDS)[number];
export const LEVELS = ["spec", "compatible", "robust", "messages", "responses"] as const;
export type Level = (typeof LEVELS)[number];

export interface Check {
  /** Its level, a dot, and what it is about: `spec.request-id.echo`. */
  readonly id: string;
  /** The document and the section that state the rule. */
  readonly source: string;
  /** The rule. */
  readonly title: string;
  readonly needs: readonly Need[];
  /** Absent: beside others. "alone": one at a time, after these. "last": after all others. */
  readonly when?: "alone" | "last" | undefined;
  /** Throws an Expectation if the gateway does not keep the rule, or another error if it is dumb. */
  run(t: Tester): unknown;
}

export const levelOf = ({ id }: Pick<Check, "id">): string => id.slice(0, id.indexOf("."));

/** Thrown where a rule cannot be looked at; why is the fault of another rule. */
export class Skipped extends Error {}

export interface Options {
  readonly baseUrl: string;
  readonly key: string;
  /** They go with every request but those that are sent raw. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** One that cannot think. Absent: the alias answers, and rules about names are skipped. */
  readonly model?: string | undefined;
  /** Absent: auto/chat, which contract.md "Routing aliases" defines. */
  readonly alias?: string | undefined;
  /** A model that thinks, or an alias of such. Absent: auto/reasoning. */
  readonly reasoningModel?: string | undefined;
  /** A second key with a small limit, for the rules about that. */
  readonly limited?: { readonly key: string; readonly rpm: number } | undefined;
  /** The suite's own provider, which the gateway has as its upstream (robust.ts). */
  readonly provider?: Provider | undefined;
  /** What the gateway, or its models, cannot do. */
  readonly without?: readonly Need[] | undefined;
  /** For each wait. Absent: 30 s. */
  readonly deadlineMs?: number | undefined;
  /** Checks at a time. Absent: 4. */
  readonly concurrency?: number | undefined;
  /** The header that names the check of each request that is not raw. Absent: there is none. */
  readonly mark?: string | undefined;
  /** Waits before a request that the key's own limit refused is repeated. Absent: it is not. */
  readonly pause?: ((seconds: number) => Promise<unknown>) | undefined;
}

/** A chat request: fields to set, or to leave out (undefined); or a body as it is. */
export type Ask = Json | string | Buffer;
/** Headers of a request; one that is undefined is left out. */
export type Headers = Readonly<Record<string, string | undefined>>;
/** What differs from the usual request. */
export interface Over {
  readonly headers?: Headers | undefined;
  /** Absent: chat completions. */
  readonly path?: string;
  /** Aborted: the client leaves. */
  readonly signal?: AbortSignal | undefined;
}
interface Call extends Omit<Request, "headers"> {
  readonly asked?: Json;
  readonly headers?: Headers | undefined;
}

/**
 * What a check works with. Its requests have the check's id as X-Request-Id, but for those of the
 * level spec: their answers show what ids the gateway makes itself.
 */
export interface Tester {
  readonly client: Client;
  readonly options: Options;
  /** The model of a usual request. */
  readonly model: string;
  readonly alias: string;
  readonly reasoningModel: string;
  /** All exchanges of the run so far that rules about every answer look at. */
  readonly seen: readonly Exchange[];
  /** What came instead of an answer to requests of the sample. */
  readonly unanswered: readonly string[];
  /** POST /v1/chat/completions: a short question to the model, with the given fields. */
  ask(fields?: Ask, over?: Over): Promise<Exchange>;
  /** The same, resolved when the head of the answer has come. */
  open(fields?: Ask, over?: Over): Promise<Opened>;
  /** The same, which must be answered with 200. */
  answered(fields?: Ask, over?: Over): Promise<Exchange>;
  /** Any other request. */
  call(request: Call): Promise<Exchange>;
  get(path: string, headers?: Headers): Promise<Exchange>;
  /** One request more than the limited key may make in a minute, in order; made once in a run. */
  overLimit(): Promise<readonly Exchange[]>;
}

export interface Outcome {
  readonly result: "pass" | "fail" | "skip";
  readonly expected?: string;
  readonly got?: string;
  /** Why it was skipped. */
  readonly why?: string;
}
export type Result = Outcome & Pick<Check, "id" | "source" | "title">;

export const CHAT = "/v1/chat/completions";
/** The word that a usual request asks for, so that a reply can be told from another. */
export const WORD = "pineapple";
export const question = (content: string) => [{ role: "user", content }];
/** What all that is sampled asks. */
const GREETING = question("Say hello.");
const MAX_WAITS = 10;
/** Stands for a check where requests are those of the sample. */
export const SAMPLE = "the sample";

/** Runs the checks and gives their results in the same order. */
export async function runChecks(checks: readonly Check[], options: Options): Promise<Result[]> {
  const client = createClient(options.baseUrl, options.deadlineMs ?? 30_000, options.headers);
  const seen: Exchange[] = [];
  const unanswered: string[] = [];
  const lacks = missing(options);
  let exceeded: Promise<readonly Exchange[]> | undefined;
  const results = new Map<Check, Result>();

  function testerOf(check: string, id?: string): Tester {
    const model = options.model ?? options.alias ?? "auto/chat";
    // What the rules about every answer are not about: errors of another form, provoked failures.
    const isSeen = !/^(robust|messages)\./.test(check);
    // A robust gateway has no reason to refuse: its 429 is a failure, not a limit to wait for.
    const mayRepeat = !check.startsWith("robust.");
    const marks = options.mark === undefined ? {} : { [options.mark]: check };
    const requestOf = ({ headers, asked = {}, ...request }: Call): Sent => {
      const given = Object.entries({ "x-request-id": id, ...marks, ...headers });
      const kept = given.filter((header): header is [string, string] => header[1] !== undefined);
      return { ...request, asked, headers: Object.fromEntries(kept) };
    };
    const chatOf = (fields: Ask = {}, { headers, path = CHAT, signal }: Over = {}) => {
      const usual = { model, messages: question(`Say the word ${WORD} and nothing else.`) };
      const asIs = typeof fields === "string" || fields instanceof Buffer;
      const given = asIs ? parseJson(String(fields)) : { ...usual, ...fields };
      const authorization = `Bearer ${options.key}`;
      return requestOf({
        method: "POST",
        path,
        signal,
        headers: { "content-type": "application/json", authorization, ...headers },
        body: asIs ? fields : JSON.stringify(given),
        asked: isObject(given) ? given : {},
      });
    };
    const send = async (request: Sent): Promise<Exchange> => {
      const exchange = exchangeOf(check, request, await client.send(request));
      expect(exchange.answer.whole, "an answer that comes to its end", exchange.shown);
      if (isSeen) seen.push(exchange);
      return exchange;
    };
    const ask: Tester["ask"] = async (fields, over) => {
      const request = chatOf(fields, over);
      const { authorization, "x-api-key": key = authorization } = request.headers ?? {};
      for (let waits = 0; ; waits += 1) {
        const exchange = await send(request);
        const seconds = Number(exchange.headers["retry-after"]);
        const mayWait = mayRepeat && exchange.status === 429 && seconds >= 1 && seconds <= 60;
        const isOwn = key === options.key || key === `Bearer ${options.key}`;
        if (!mayWait || !isOwn || !options.pause || waits === MAX_WAITS) return exchange;
        await options.pause(seconds);
      }
    };
    return {
      client,
      options,
      model,
      seen,
      unanswered,
      ask,
      open: (fields, over) => client.open(chatOf(fields, over)),
      call: (request) => send(requestOf(request)),
      get: (path, headers) => send(requestOf({ method: "GET", path, headers })),
      overLimit: () => (exceeded ??= exceed(testerOf("the limited key"))),
      alias: options.alias ?? "auto/chat",
      reasoningModel: options.reasoningModel ?? "auto/reasoning",
      async answered(fields, over) {
        const exchange = await ask(fields, over);
        expect(exchange.status === 200, "status 200", `${exchange.status} ${exchange.answer.text}`);
        return exchange;
      },
    };
  }

  async function outcomeOf({ id, needs, run }: Check): Promise<Outcome> {
    const lacking = needs.find((need) => lacks.has(need));
    if (lacking) return { result: "skip", why: lacks.get(lacking)! };
    try {
      await run(testerOf(id, levelOf({ id }) === "spec" ? undefined : id));
      return { result: "pass" };
    } catch (error) {
      if (error instanceof Skipped) return { result: "skip", why: error.message };
      if (!(error instanceof Expectation))
        return { result: "fail", expected: "an answer", got: (error as Error).message };
      return { result: "fail", expected: error.expected, got: error.got };
    }
  }
  async function perform(check: Check): Promise<void> {
    const { id, source, title } = check;
    results.set(check, { id, source, title, ...(await outcomeOf(check)) });
  }

  try {
    const t = testerOf(SAMPLE);
    await t.get("/healthz"); // a gateway that does not answer this cannot be checked
    const parallel = options.concurrency ?? 4;
    if (checks.some(({ when }) => when === "last")) {
      await each(sample(t, lacks), parallel, (request) =>
        request().catch((error: Error) => unanswered.push(error.message)),
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

/** In their order, some at a time. */
async function each<T>(
  items: readonly T[],
  parallel: number,
  act: (item: T) => Promise<unknown>,
): Promise<void> {
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

/** Requests for an answer of every kind: rules about every answer always have something to look at. */
function sample(t: Tester, lacks: ReadonlyMap<Need, string>): (() => Promise<unknown>)[] {
  const ways = [{}, { stream: true }];
  const usage = { stream: true, stream_options: { include_usage: true } };
  const without = (need: Need) => lacks.has(need);
  const inBothWays = (fields: object) => ways.map((way) => ({ ...fields, ...way }));
  const { reasoningModel } = t;
  const models = [t.model, t.alias, ...(without("reasoning") ? [] : [reasoningModel])];
  const asks: Json[] = [
    { messages: "none" },
    ...models.flatMap((model) => [...ways, usage].map((way) => ({ model, ...way }))),
  ];
  if (!without("reasoning"))
    asks.push(...inBothWays({ model: reasoningModel, thinking: { type: "enabled" } }));
  if (!without("tools"))
    asks.push(...inBothWays({ ...TOOLS, tool_choice: chooseTool("send_mail") }));
  if (!without("logprobs")) asks.push(...inBothWays({ logprobs: true, top_logprobs: 2 }));
  return [
    () => t.get("/v1/no-such-path"),
    () => t.call({ method: "DELETE", path: CHAT }),
    () => t.ask({ messages: GREETING }, { headers: { authorization: undefined } }),
    ...asks.map((fields) => () => t.ask({ messages: GREETING, ...fields })),
  ];
}

const tool = (name: string, property: string) => ({
  type: "function",
  function: {
    name,
    parameters: {
      type: "object",
      properties: { [property]: { type: "string" } },
      required: [property],
    },
  },
});
/** Two tools, as a request carries them. */
export const TOOLS = { tools: [tool("get_time", "city"), tool("send_mail", "to")] };
export const chooseTool = (name: string) => ({ type: "function", function: { name } });

/** In turn, so that it is known which one is the first too many. */
async function exceed(t: Tester): Promise<readonly Exchange[]> {
  const { key, rpm } = t.options.limited!;
  const exchanges: Exchange[] = [];
  for (let i = 0; i <= rpm; i += 1)
    exchanges.push(await t.ask({}, { headers: { authorization: `Bearer ${key}` } }));
  return exchanges;
}

const KINDS = {
  response: () => true,
  reply: ({ request, status, streamed }: Exchange) =>
    request.path === CHAT && status === 200 && !streamed,
  stream: ({ request, streamed }: Exchange) => request.path === CHAT && streamed,
  error: ({ status }: Exchange) => status !== 200,
};
export type Kind = keyof typeof KINDS;

/** A check of every answer of a kind: `look` throws at the first that breaks the rule. */
export const every =
  (kind: Kind, look: (exchange: Exchange) => void): Check["run"] =>
  ({ seen }) => {
    const looked = seen.filter(KINDS[kind]);
    if (looked.length === 0) throw new Skipped(`there was no ${kind} to look at`);
    const failed: { exchange: Exchange; error: Expectation }[] = [];
    for (const exchange of looked) {
      try {
        look(exchange);
      } catch (error) {
        if (!(error instanceof Expectation)) throw error;
        failed.push({ exchange, error });
      }
    }
    if (!failed[0]) return;
    const { exchange, error } = failed[0];
    const { check, request, status } = exchange;
    const where = `in ${failed.length} of ${looked.length}, first in ${request.method} ${request.path}, ${status}, of ${check}`;
    throw new Expectation(error.expected, `${error.got} (${where})`);
  };
