// The provider of a run. It speaks the formats of OpenAI and Anthropic, and replies, fails and
// breaks off at random. Its ledger records what it wrote to each connection, independently of the
// gateway.

import http from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { createRandom } from "../../test/support/random.ts";
import type { Period } from "./evidence.ts";
import type { Counts } from "./money.ts";

/** A source of seeded random choices. */
export type Random = ReturnType<typeof createRandom>;

/** How a reply is written in one of the formats. Each format counts its figures in its own way. */
type WireFormat = typeof openaiWire;

const data = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;

const openaiUsage = ({ prompt, hit, write, write1h, completion, reasoning }: Counts): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: {
    cached_tokens: hit,
    cache_write_tokens: write,
    cache_creation: { ephemeral_1h_input_tokens: write1h },
  },
  completion_tokens_details: { reasoning_tokens: reasoning },
});
const choice = (more: object): object => ({ choices: [{ index: 0, ...more }] });

const openaiWire = {
  /** Whether every reply in this format has figures. */
  alwaysCounts: false,
  whole: (text: string, counts: Counts | undefined): string =>
    JSON.stringify({
      ...choice({ message: { role: "assistant", content: text }, finish_reason: "stop" }),
      ...(counts && { usage: openaiUsage(counts) }),
    }),
  start: (_counts: Counts): string => openaiWire.text(""),
  text: (content: string): string => data(choice({ delta: { content }, finish_reason: null })),
  /** The events that finish the reply, with the figures if the format always has them. */
  finish: (_counts: Counts): string => data(choice({ delta: {}, finish_reason: "stop" })),
  /** An event that has only the figures. */
  figures: (counts: Counts): string => data({ choices: [], usage: openaiUsage(counts) }),
  end: "data: [DONE]\n\n",
};

const inputUsage = ({ prompt, hit, write, write1h }: Counts): object => ({
  input_tokens: prompt - hit - write,
  cache_read_input_tokens: hit,
  cache_creation_input_tokens: write,
  cache_creation: {
    ephemeral_5m_input_tokens: write - write1h,
    ephemeral_1h_input_tokens: write1h,
  },
});
const outputUsage = ({ completion, reasoning }: Counts): object => ({
  output_tokens: completion,
  output_tokens_details: { thinking_tokens: reasoning },
});
const event = (type: string, more: object): string => `event: ${type}\n${data({ type, ...more })}`;

const anthropicWire: WireFormat = {
  alwaysCounts: true,
  whole: (text, counts) =>
    JSON.stringify({
      type: "message",
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      usage: counts && { ...inputUsage(counts), ...outputUsage(counts) },
    }),
  start: (counts) =>
    event("message_start", {
      message: { content: [], usage: { ...inputUsage(counts), output_tokens: 1 } },
    }) + event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  text: (text) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  finish: (counts) =>
    event("content_block_stop", { index: 0 }) +
    event("message_delta", { delta: { stop_reason: "end_turn" }, usage: outputUsage(counts) }),
  figures: (counts) => event("message_delta", { delta: {}, usage: outputUsage(counts) }),
  end: event("message_stop", {}),
};

/** What the provider does with a call, and how often. */
const BEHAVIOURS = {
  well: 120,
  slow: 10,
  /** A reply without figures, in OpenAI's format. */
  "no usage": 8,
  /** An HTTP error. */
  refused: 18,
  /** Status 200 with a body that is no reply. */
  garbage: 3,
  /** The connection ends anywhere before the end of the reply. */
  cut: 28,
  /** The connection is reset before the finish of the reply. */
  reset: 6,
} as const;
type Behaviour = keyof typeof BEHAVIOURS;
const DRAWN = Object.entries(BEHAVIOURS).flatMap(([name, weight]) =>
  Array.from({ length: weight }, () => name as Behaviour),
);
/** The behaviours that are failures. */
export const FAILING: readonly Behaviour[] = ["refused", "garbage", "cut", "reset"];

/** A call in the ledger. */
export interface Call {
  readonly serial: number;
  readonly model: string;
  readonly behaviour: Behaviour;
  /** Milliseconds of the wall clock. */
  readonly at: number;
  /** Bytes of the partial reply that it was asked to continue. 0: a reply from its start. */
  readonly prefillBytes: number;
  /** The bound of the completion that the gateway sent. A continuation has what is left of it. */
  readonly maxTokens: number;
  /** The figures of the complete reply, once written. Absent: none were written. */
  stated?: Counts;
  /** The figures before the text: exact for the prompt, a lower bound for the completion. */
  early?: Counts;
  /** The text that was written so far. */
  text: string;
  /** Whether the end of the reply was written. */
  finished: boolean;
  /** Whether the connection was ended after everything written had been sent. */
  orderly: boolean;
  /** In a simulation: when its connection was reset or stalled. */
  interruptions: readonly Period[];
}

/** A piece of a response, and what the ledger records once the piece is written. */
type Piece = readonly [text: string | Buffer, written: Partial<Call>];

/** A reset may only be noticed at the next request, so it counts for this long (ms). */
const NOTICED_MS = 1_000;

/** The interruptions of a simulated socket, except those that ended long before. */
export const interruptionsOf = (socket: unknown, since: number): readonly Period[] =>
  ((socket as { readonly interruptions?: readonly Period[] } | null)?.interruptions ?? []).filter(
    ({ until }) => until > since - NOTICED_MS,
  );

/** A call while the provider answers it. */
interface CallInProgress {
  readonly call: Call;
  readonly streamed: boolean;
  readonly wire: WireFormat;
  readonly res: http.ServerResponse;
  readonly counts: Counts;
  readonly random: Random;
}

const WORDS = ["one ", "two ", "drei ", "vier, ", "Größe ", "李 ", "\n", "zehntausend "];

/** The mark at the start of each reply, by which a client recognizes replies of other requests. */
export const markOf = (serial: number): string => `<${serial}>`;

/** Random figures as a tokenizer gives them: a token is at least a byte, and max_tokens holds. */
function figures({ between, random }: Random, bytes: number, maxTokens: number): Counts {
  const prompt = between(1, bytes);
  const completion = between(1, maxTokens);
  const hit = random() < 0.5 ? between(0, prompt) : 0;
  const write = random() < 0.4 ? between(0, prompt - hit) : 0;
  const write1h = random() < 0.5 ? between(0, write) : 0;
  return { prompt, hit, write, write1h, completion, reasoning: between(0, completion) };
}

/**
 * The words of a reply. A continuation starts with a blank, because the gateway cuts the blank off
 * the end of the partial reply that it sends.
 */
function wordsOf({ call, random }: CallInProgress): string[] {
  const isContinuation = call.prefillBytes > 0;
  const word = (): string =>
    isContinuation ? ` ${random.between(100_000, 999_999)} ` : random.pick(WORDS);
  const first = isContinuation ? word() : `${markOf(call.serial)} ${word()}`;
  return [first, ...Array.from({ length: random.between(0, 5) }, word)];
}

/** The pieces of a stream, up to where it breaks off. */
function streamOf(work: CallInProgress, stated: Partial<Call>): readonly Piece[] {
  const { wire, counts, call, random } = work;
  const { behaviour } = call;
  let text = "";
  const words = wordsOf(work).map((word): Piece => {
    text += word;
    return [wire.text(word), { text }];
  });
  const early = wire.alwaysCounts ? { early: { ...counts, completion: 1, reasoning: 0 } } : {};
  const begun: readonly Piece[] = [[wire.start(counts), early], ...words];
  if (behaviour === "reset") return begun.slice(0, random.between(1, begun.length));
  const finish: Piece = [wire.finish(counts), { finished: true, ...(wire.alwaysCounts && stated) }];
  const figures: Piece = [wire.figures(counts), stated];
  const last = wire.alwaysCounts || !stated.stated ? [finish] : [finish, figures];
  const whole: readonly Piece[] = [...begun, ...last, [wire.end, {}]];
  if (behaviour !== "cut") return whole;
  // Some providers send their figures before the finish.
  const cut = random.random() < 0.3 ? [...begun, figures, finish] : whole;
  return cut.slice(0, random.between(1, cut.length - 1));
}

/** A reply that is no stream, or its beginning. */
function replyOf(work: CallInProgress, stated: Partial<Call>, isBroken: boolean): readonly Piece[] {
  const { wire, random, res } = work;
  const text = wordsOf(work).join("");
  const bytes = Buffer.from(wire.whole(text, stated.stated));
  res.setHeader("content-length", bytes.length);
  if (isBroken) return [[bytes.subarray(0, random.between(1, bytes.length - 1)), {}]];
  return [[bytes, { text, finished: true, ...stated }]];
}

async function answer(work: CallInProgress): Promise<unknown> {
  const { call, streamed, wire, res, counts, random } = work;
  const { behaviour } = call;
  res.setHeader("content-type", streamed ? "text/event-stream" : "application/json");
  const status = random.pick([500, 503, 429, 429, 400]);
  if (behaviour === "refused")
    return res.writeHead(status, { "retry-after": "0" }).end('{"error":{"message":"refused"}}');
  if (behaviour === "garbage") return res.end("data: ?\n\n");
  const isBroken = behaviour === "cut" || behaviour === "reset";
  const stated = behaviour === "no usage" && !wire.alwaysCounts ? {} : { stated: counts };
  const pieces = streamed ? streamOf(work, stated) : replyOf(work, stated, isBroken);
  for (const [text, written] of pieces) {
    await pause(random.between(0, behaviour === "slow" ? 150 : 3));
    if (res.destroyed) return undefined;
    Object.assign(call, written);
    await new Promise<unknown>((resolve) => res.write(text, resolve));
  }
  call.orderly = behaviour !== "reset" && !res.destroyed && res.socket?.writable === true;
  if (behaviour === "reset") return res.socket?.resetAndDestroy();
  return isBroken ? res.socket?.end() : res.end();
}

/** Starts the provider. The reference edition does not read tokens that are cached for an hour. */
export async function startProvider(random: Random, isReference = false) {
  /** The calls of each request in their order, by the serial number of the request. */
  const ledger = new Map<number, readonly Call[]>();

  async function handle(path: string, text: string, res: http.ServerResponse): Promise<void> {
    const body = JSON.parse(text) as Record<string, any>;
    const found = /#(\d+)#[^"]*/.exec(JSON.stringify(body["messages"]));
    if (!found) throw new Error(`a call without a mark: ${text.slice(0, 500)}`);
    const serial = Number(found[1]);
    const last = body["messages"].at(-1);
    const call: Call = {
      serial,
      model: body["model"],
      behaviour: random.pick(DRAWN),
      at: Date.now(),
      prefillBytes: last.role === "assistant" ? Buffer.byteLength(String(last.content)) : 0,
      // Anthropic's format requires a bound, so the gateway sends one if the client has none.
      maxTokens: Math.min(400, body["max_tokens"] ?? body["max_completion_tokens"] ?? 400),
      text: "",
      finished: false,
      orderly: false,
      interruptions: [],
    };
    ledger.set(serial, [...(ledger.get(serial) ?? []), call]);
    const { socket } = res;
    res.on("close", () => (call.interruptions = interruptionsOf(socket, call.at)));
    const all = figures(random, Buffer.byteLength(found[0]), call.maxTokens);
    const counts = isReference ? { ...all, write1h: 0 } : all;
    const wire = path.endsWith("/messages") ? anthropicWire : openaiWire;
    await pause(random.between(0, 4));
    if (res.destroyed) return;
    await answer({ call, streamed: body["stream"] === true, wire, res, counts, random });
  }

  const server = http.createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
    let body = "";
    res.on("error", () => undefined);
    req.on("error", () => undefined);
    req.setEncoding("utf8").on("data", (text: string) => (body += text));
    req.on("end", () => handle(req.url ?? "", body, res));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ledger,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
