// What a check is, and how checks are run. There are two kinds. Most send requests of their own and
// look at what these are about. The others, made by `every`, run when those are done and look at
// all that was received meanwhile: each rule about the shape of an answer is so applied to every
// answer of the run, and a gateway that breaks one rule fails one check.

import {
  createClient,
  parseEvents,
  parseJson,
  type Answer,
  type Client,
  type Request,
  type StreamEvent,
} from "./client.ts";
import type { Provider } from "./provider.ts";
import { isObject } from "./shapes.ts";

/** What a check needs that a gateway, or a run, may lack. */
export const NEEDS = [
  "model",
  "alias",
  "plain",
  "reasoning",
  "tools",
  "json",
  "logprobs",
  "limited",
  "provider",
  "messages",
  "responses",
] as const;
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
  readonly needs?: readonly Need[];
  /**
   * Absent: beside others. "alone": one at a time, after these. "last": when all others are done,
   * on what they have seen.
   */
  readonly when?: "alone" | "last";
  /**
   * Throws an Expectation if the gateway does not keep the rule, or what prevents it from being
   * looked at.
   */
  run(t: Tester): Promise<void> | void;
}

export const levelOf = ({ id }: Pick<Check, "id">): string => id.slice(0, id.indexOf("."));

/** A rule that was not kept. */
export class Expectation extends Error {
  readonly expected: string;
  readonly got: string;
  constructor(expected: string, got: unknown) {
    const text = typeof got === "string" ? got : (JSON.stringify(got) ?? "nothing");
    super(`expected ${expected}, got ${text}`);
    this.expected = expected;
    this.got = text.length > 300 ? `${text.slice(0, 300)}...` : text;
  }
}

/** Thrown where a rule cannot be looked at; why is the fault of another rule. */
export class Skipped extends Error {}

export function expect(holds: boolean, expected: string, got: unknown): asserts holds {
  if (!holds) throw new Expectation(expected, got);
}

/** A request to the gateway and its answer. */
export interface Exchange {
  /** The check that made it. */
  readonly check: string;
  readonly request: Request;
  /** The request's body if it is a JSON object, else {}. */
  readonly asked: Readonly<Record<string, unknown>>;
  readonly answer: Answer;
  /** The answer's body, parsed; undefined if it is not JSON. */
  readonly json: unknown;
  /** The blocks of the event stream that was asked for; none if something else was. */
  readonly events: readonly StreamEvent[];
  /** What follows the last blank line of an event stream. */
  readonly rest: string;
}

export interface Options {
  readonly baseUrl: string;
  readonly key: string;
  /** They go with every request but those that are sent raw. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * A model by its canonical name, one that cannot think. Absent: the alias answers instead, and
   * rules about names are skipped.
   */
  readonly model?: string | undefined;
  /** Absent: auto/chat, which contract.md "Routing aliases" defines. */
  readonly alias?: string | undefined;
  /**
   * A model that thinks, by its canonical name or by an alias. Absent: auto/reasoning, which
   * contract.md "Routing aliases" defines.
   */
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
  /**
   * Waits for so long when the key has reached its own limit, and then the request is made again.
   * Absent: it is not.
   */
  readonly pause?: ((seconds: number) => Promise<unknown>) | undefined;
}

/** A chat request: fields to set, or to leave out (undefined); or a body as it is. */
export type Ask = Readonly<Record<string, unknown>> | string;
/** What differs from the usual request. */
export interface Over {
  /** One that is undefined is left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** Absent: chat completions. */
  readonly path?: string;
}

/** What a check works with. */
export interface Tester {
  readonly client: Client;
  readonly options: Options;
  /** The model of a usual request. */
  readonly model: string;
  readonly alias: string;
  readonly reasoningModel: string;
  /** All exchanges of the run so far. */
  readonly seen: readonly Exchange[];
  /**
   * What came instead of an answer to requests of the sample, which is for the checks that come
   * last.
   */
  readonly unanswered: readonly string[];
  /** POST /v1/chat/completions: a short question to the model, with the given fields. */
  ask(fields?: Ask, over?: Over): Promise<Exchange>;
  /** The same, which must be answered with 200. */
  answered(fields?: Ask, over?: Over): Promise<Exchange>;
  /** The same, which must be refused as the client's fault. */
  refused(fields?: Ask, over?: Over): Promise<Exchange>;
  /** Any other request. */
  call(request: Request): Promise<Exchange>;
  /**
   * One request more than the limited key may make in a minute, in their order; made once in a run.
   */
  overLimit(): Promise<readonly Exchange[]>;
}

export interface Result {
  readonly id: string;
  readonly source: string;
  readonly title: string;
  readonly result: "pass" | "fail" | "skip";
  readonly expected?: string;
  readonly got?: string;
  /** Why it was skipped. */
  readonly why?: string;
}

export const CHAT = "/v1/chat/completions";
/** The word that a usual request asks for, so that a reply can be told from another. */
export const WORD = "pineapple";
export const question = (content: string) => [{ role: "user", content }];
/** What all that is sampled asks. */
export const GREETING = question("Say hello.");

/** Runs the checks and gives their results in the same order. */
export async function runChecks(checks: readonly Check[], options: Options): Promise<Result[]> {
  const client = createClient(options.baseUrl, options.deadlineMs ?? 30_000, options.headers);
  const seen: Exchange[] = [];
  const unanswered: string[] = [];
  const lacks = missing(options);
  const overLimit = once(() => exceed(testerOf("the limited key")));
  const results = new Map<Check, Result>();

  function testerOf(check: string): Tester {
    const model = options.model ?? options.alias ?? "auto/chat";
    const call = async (request: Request): Promise<Exchange> => {
      const answer = await client.send(request);
      const parsed = parseJson(typeof request.body === "string" ? request.body : undefined);
      const asked = isObject(parsed) ? parsed : {};
      const isStream = answer.status === 200 && asked["stream"] === true;
      const { events, rest } = isStream ? parseEvents(answer.text ?? "") : { events: [], rest: "" };
      const exchange = {
        check,
        request,
        asked,
        answer,
        json: parseJson(answer.text),
        events,
        rest,
      };
      seen.push(exchange);
      return exchange;
    };
    const ask = async (
      fields: Ask = {},
      { headers, path = CHAT }: Over = {},
    ): Promise<Exchange> => {
      const body =
        typeof fields === "string"
          ? fields
          : JSON.stringify({
              model,
              messages: question(`Say the word ${WORD} and nothing else.`),
              ...fields,
            });
      const given = {
        "content-type": "application/json",
        authorization: `Bearer ${options.key}`,
        ...headers,
      };
      const kept = Object.fromEntries(
        Object.entries(given).filter(
          (header): header is [string, string] => header[1] !== undefined,
        ),
      );
      const request = { method: "POST", path, headers: kept, body };
      for (let waits = 0; ; waits += 1) {
        const exchange = await call(request);
        const seconds = Number(exchange.answer.headers["retry-after"]);
        const limited =
          exchange.answer.status === 429 && given.authorization === `Bearer ${options.key}`;
        if (!limited || !options.pause || !(seconds >= 1 && seconds <= 60) || waits === 10)
          return exchange;
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
      call,
      overLimit,
      alias: options.alias ?? "auto/chat",
      reasoningModel: options.reasoningModel ?? "auto/reasoning",
      async answered(fields, over) {
        const exchange = await ask(fields, over);
        const { status, text } = exchange.answer;
        expect(status === 200, "status 200", `${status} ${text}`);
        return exchange;
      },
      async refused(fields, over) {
        const exchange = await ask(fields, over);
        const { status } = exchange.answer;
        expect(status >= 400 && status < 500, "a refusal, status 400 to 499", status);
        return exchange;
      },
    };
  }

  async function perform(check: Check): Promise<void> {
    const { id, source, title, needs = [] } = check;
    const lacking = needs.find((need) => lacks.has(need));
    const about = { id, source, title };
    if (lacking) {
      results.set(check, { ...about, result: "skip", why: lacks.get(lacking)! });
      return;
    }
    try {
      await check.run(testerOf(id));
      results.set(check, { ...about, result: "pass" });
    } catch (error) {
      if (error instanceof Skipped) {
        results.set(check, { ...about, result: "skip", why: error.message });
        return;
      }
      const failed =
        error instanceof Expectation
          ? error
          : new Expectation("an answer", (error as Error).message);
      results.set(check, { ...about, result: "fail", expected: failed.expected, got: failed.got });
    }
  }

  try {
    const t = testerOf("the sample");
    await t.call({ method: "GET", path: "/healthz" }); // a gateway that does not answer this cannot be checked
    const parallel = options.concurrency ?? 4;
    if (checks.some(({ when }) => when === "last")) {
      await each(sample(t, lacks), parallel, (request) =>
        request().catch((error: Error) => unanswered.push(error.message)),
      );
    }
    await each(
      checks.filter(({ when }) => when === undefined),
      parallel,
      perform,
    );
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

/**
 * Requests for an answer of every kind, so that the rules about every answer have something to look
 * at whatever else is run.
 */
function sample(t: Tester, lacks: ReadonlyMap<Need, string>): (() => Promise<unknown>)[] {
  const has = (need: Need) => !lacks.has(need);
  const [ways, usage] = [
    [{}, { stream: true }],
    { stream: true, stream_options: { include_usage: true } },
  ];
  const asks: Record<string, unknown>[] = [
    { messages: "none" },
    ...[t.model, t.alias, ...(has("reasoning") ? [t.reasoningModel] : [])].flatMap((model) =>
      [...ways, usage].map((way) => ({ model, ...way })),
    ),
    ...(has("reasoning")
      ? ways.map((way) => ({ model: t.reasoningModel, thinking: { type: "enabled" }, ...way }))
      : []),
    ...(has("tools")
      ? ways.map((way) => ({ ...TOOLS, tool_choice: chooseTool("send_mail"), ...way }))
      : []),
    ...(has("logprobs") ? ways.map((way) => ({ logprobs: true, top_logprobs: 2, ...way })) : []),
  ];
  return [
    () => t.call({ method: "GET", path: "/v1/no-such-path" }),
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

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const KINDS = {
  response: () => true,
  reply: ({ request, asked, answer }: Exchange) =>
    request.path === CHAT && answer.status === 200 && asked["stream"] !== true,
  stream: ({ request, asked, answer }: Exchange) =>
    request.path === CHAT && answer.status === 200 && asked["stream"] === true,
  error: ({ answer }: Exchange) => answer.status !== 200,
};

/** A rule about all exchanges of a kind. */
export interface Rule extends Pick<Check, "id" | "source" | "title"> {
  readonly kind: keyof typeof KINDS;
  /** Throws an Expectation if this exchange breaks the rule. */
  readonly look: (exchange: Exchange) => void;
}

/**
 * A check of every response, whole reply, stream or error of the run; `look` throws at the first
 * that breaks the rule.
 */
export function every({ kind, id, source, title, look }: Rule): Check {
  return {
    id,
    source,
    title,
    when: "last",
    run({ seen }) {
      const looked = seen.filter(KINDS[kind]);
      if (looked.length === 0) throw new Skipped(`there was no ${kind} to look at`);
      const failed = looked.flatMap((exchange) => {
        const error = thrown(() => look(exchange));
        return error ? [{ exchange, error }] : [];
      });
      const first = failed[0];
      if (!first) return;
      const { check, request, answer } = first.exchange;
      const where = `in ${failed.length} of ${looked.length}, first in ${request.method} ${request.path}, ${answer.status}, of ${check}`;
      throw new Expectation(first.error.expected, `${first.error.got} (${where})`);
    },
  };
}

function thrown(act: () => void): Expectation | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    if (error instanceof Expectation) return error;
    throw error;
  }
}
