// How the checks call a gateway: the functions that each check gets, and the sample of requests for
// the rules about every answer.

import { exchangeOf, type Client, type Exchange, type Headers, type Request } from "./client.ts";
import * as expect from "./expect.ts";
import type { Json } from "./shapes.ts";
import type { Need, Options } from "./suite.ts";

/** The path of chat completions. */
export const CHAT = "/v1/chat/completions";
/** The word that a usual request asks for, which distinguishes its reply from others. */
export const WORD = "pineapple";
/** Messages with a single question of the user. */
export const question = (content: string) => [{ role: "user", content }];
/** The question of all requests in the sample. */
const GREETING = question("Say hello.");
const MAX_WAITS = 10;
/** What stands for the check's id in requests of the sample. */
export const SAMPLE = "the sample";

/** A chat request: fields to set or (undefined) to omit, or a raw body. */
export type Ask = Json | string | Buffer;
/** What differs from the usual request, which is to chat completions. */
export type Over = Partial<Pick<Request, "headers" | "path" | "signal">>;

/**
 * What a check works with. Its requests have the check's id as X-Request-Id, except at level
 * `spec`, where the answers must show the ids that the gateway generates.
 */
export type Tester = ReturnType<typeof testerOf>;

/** What the testers of a run share. */
export interface Run {
  readonly client: Client;
  readonly options: Options;
  readonly seen: Exchange[];
  readonly unanswered: string[];
  exceeded: Promise<readonly Exchange[]> | undefined;
}

/** The tester of a check. `check`: its id, or SAMPLE. */
export function testerOf(run: Run, check: string) {
  const { client, options, seen, unanswered } = run;
  const { alias = "auto/chat", model = alias, reasoningModel = "auto/reasoning" } = options;
  // The rules about every answer skip errors of another format, and provoked failures.
  const isSeen = !/^(robust|messages)\./.test(check);
  // A robust gateway has no reason to reject: its 429 is a failure, not a limit to wait for.
  const mayRepeat = options.pause !== undefined && !check.startsWith("robust.");
  // Requests of the sample, which is not a check, and those of level `spec` have no id.
  const hasId = check.includes(".") && !check.startsWith("spec.");
  const own = {
    ...(hasId && { "x-request-id": check }),
    ...(options.mark !== undefined && { [options.mark]: check }),
  };

  function chatOf(fields: Ask = {}, { headers, path = CHAT, signal }: Over = {}): Request {
    const isBody = typeof fields === "string" || fields instanceof Buffer;
    const usual = { model, messages: question(`Say the word ${WORD} and nothing else.`) };
    const authorization = `Bearer ${options.key}`;
    return {
      method: "POST",
      path,
      signal,
      headers: { ...own, "content-type": "application/json", authorization, ...headers },
      body: isBody ? fields : JSON.stringify({ ...usual, ...fields }),
    };
  }
  async function send(request: Request): Promise<Exchange> {
    const exchange = exchangeOf(check, request, await client.send(request));
    expect.that(exchange.whole, "an answer that comes to its end", exchange.shown);
    if (isSeen) seen.push(exchange);
    return exchange;
  }
  /** Seconds to wait before the request is repeated. Undefined: it is not repeated. */
  function waitAfter({ request, status, headers }: Exchange): number | undefined {
    const { authorization, "x-api-key": key = authorization } = request.headers ?? {};
    const isOwn = key?.replace(/^bearer /i, "") === options.key;
    const seconds = Number(headers["retry-after"]);
    const isWait = seconds >= 1 && seconds <= 60;
    return mayRepeat && isOwn && status === 429 && isWait ? seconds : undefined;
  }
  /** POST /v1/chat/completions: a short question to the model, with the given fields. */
  async function ask(fields?: Ask, over?: Over): Promise<Exchange> {
    const request = chatOf(fields, over);
    for (let waits = 0; ; waits += 1) {
      const exchange = await send(request);
      const seconds = waitAfter(exchange);
      if (seconds === undefined || waits === MAX_WAITS) return exchange;
      await options.pause?.(seconds);
    }
  }
  /** Any other request, without a body. */
  const call = (method: string, path: string, headers?: Headers) =>
    send({ method, path, headers: { ...own, ...headers } });
  return {
    client,
    options,
    /** The model of a usual request. */
    model,
    alias,
    reasoningModel,
    /** All exchanges of the run so far that the rules about every answer examine. */
    seen: seen as readonly Exchange[],
    /** The errors of sample requests that got no answer. */
    unanswered: unanswered as readonly string[],
    ask,
    call,
    /** The same as `ask`, resolved when the head of the answer has come. */
    open: (fields?: Ask, over?: Over) => client.open(chatOf(fields, over)),
    get: (path: string, headers?: Headers) => call("GET", path, headers),
    /** Sends one request more than the limited key may make in a minute, in order, once per run. */
    overLimit: (): Promise<readonly Exchange[]> =>
      (run.exceeded ??= exceed(testerOf(run, "the limited key"))),
    /** The same as `ask`, which must be answered with 200. */
    async answered(fields?: Ask, over?: Over): Promise<Exchange> {
      const exchange = await ask(fields, over);
      const { status, text } = exchange;
      expect.that(status === 200, "status 200", `${status} ${text}`);
      return exchange;
    },
  };
}

/** Requests that get answers of every kind, so that the rules about every answer have examples. */
export function sample(t: Tester, lacks: ReadonlyMap<Need, string>): (() => Promise<unknown>)[] {
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
    () => t.call("DELETE", CHAT),
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
/** A schema of an object whose only member is a city. */
export const PLACE = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
/** Two tools, as in a request. */
export const TOOLS = { tools: [tool("get_time", "city"), tool("send_mail", "to")] };
/** A tool_choice that names a tool. */
export const chooseTool = (name: string) => ({ type: "function", function: { name } });

/** Sends them one after another, so that the first one beyond the limit is known. */
async function exceed(t: Tester): Promise<readonly Exchange[]> {
  const { key, rpm } = t.options.limited!;
  const exchanges: Exchange[] = [];
  for (let i = 0; i <= rpm; i += 1)
    exchanges.push(await t.ask({}, { headers: { authorization: `Bearer ${key}` } }));
  return exchanges;
}
