// The provider of the run: it speaks OpenAI's format and Anthropic's, answers, fails and breaks off
// at random, and keeps a ledger of its own. What stands in the ledger is what it stated on the
// wire, whatever the gateway makes of it.

import http from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { createRandom } from "../../test/support/random.ts";
import type { Trouble } from "./house.ts";
import type { Counts } from "./money.ts";
import type { ModelName } from "./plan.ts";
import { anthropicWire, openaiWire, type Wire } from "./wire.ts";

export type Random = ReturnType<typeof createRandom>;

/** What becomes of one call. */
const BEHAVIOURS = {
  well: 120,
  slow: 10,
  /** No figures at all; Anthropic's format always states some. */
  "no usage": 8,
  "status 500": 8,
  "status 429": 6,
  "status 400": 4,
  /** 200, and no reply. */
  garbage: 3,
  /** Breaks off before the first text. */
  "cut early": 5,
  /** Breaks off in the text: the connection ends, or is reset. */
  "cut in text": 10,
  "reset in text": 6,
  /** States its figures with the last text, and ends without a finish. */
  "cut after figures": 5,
  /** Ends between the finish and the figures. */
  "cut after finish": 4,
  /** Ends between the figures and the end of the stream. */
  "cut after all": 4,
} as const;
type Behaviour = keyof typeof BEHAVIOURS;
const DRAWN = Object.entries(BEHAVIOURS).flatMap(([name, weight]) =>
  Array.from({ length: weight }, () => name as Behaviour),
);

/** One call in the ledger. */
export interface Call {
  readonly serial: number;
  readonly model: ModelName;
  readonly streamed: boolean;
  readonly behaviour: Behaviour;
  /** Milliseconds of the wall clock. */
  readonly at: number;
  /** Bytes of the beginning of the reply with which it was asked to go on. 0: from the start. */
  readonly begunBytes: number;
  /** The most tokens that the gateway asked for. A continuation is asked for what is left. */
  readonly maxTokens: number;
  /** Figures of the whole reply that have been written. Absent: none. */
  stated?: Counts;
  /** Figures that came before the text: they are exact for the prompt, and a lower bound else. */
  early?: Counts;
  /** The text that has been written. */
  text: string;
  /** The finish of the reply has been written. */
  finished: boolean;
  /** The answer was a failure that no text came before. */
  refused: boolean;
  /** All that was written has left by an orderly end, so that a gateway that reads has it all. */
  orderly: boolean;
  /** In a simulation: when its connection was reset or stood still until it ended. */
  troubles: readonly Trouble[];
}

/** A connection that was reset is noticed by the request that comes next. */
const NOTICED_MS = 1_000;

/** The troubles that a socket of a simulation has had, but for those that were long over. */
export const troublesOf = (socket: unknown, since: number): readonly Trouble[] =>
  ((socket as { readonly troubles?: readonly Trouble[] } | null)?.troubles ?? []).filter(
    ({ until }) => until > since - NOTICED_MS,
  );

export interface Provider {
  readonly url: string;
  /** The calls of each request, by its serial number, in their order. */
  readonly ledger: ReadonlyMap<number, readonly Call[]>;
  close(): void;
}

/** One call while it is being answered. */
interface Work {
  readonly call: Call;
  readonly wire: Wire;
  readonly res: http.ServerResponse;
  readonly counts: Counts;
  readonly random: Random;
  /** The words that it answers with. */
  readonly words: readonly string[];
  /** Stands before the first word. Empty: it goes on with a text that has it. */
  readonly mark: string;
}

const WORDS = ["one ", "two ", "drei ", "vier, ", "Größe ", "李 ", "\n", "zehntausend "];

/** Every reply begins with it, so that nobody gets the reply of another. */
export const markOf = (serial: number): string => `<${serial}>`;

/** Figures that no honest tokenizer exceeds: a token is at least a byte, and max_tokens holds. */
function figures({ between, random }: Random, bytes: number, maxTokens: number) {
  const prompt = between(1, bytes);
  const completion = between(1, maxTokens);
  const hit = random() < 0.5 ? between(0, prompt) : 0;
  const write = random() < 0.4 ? between(0, prompt - hit) : 0;
  const write1h = random() < 0.5 ? between(0, write) : 0;
  const counts = { prompt, hit, write, write1h, completion, reasoning: between(0, completion) };
  return { all: counts, reference: { ...counts, write1h: 0 } };
}

/** Ends the connection in the middle of the answer: what was written arrives, and then nothing. */
function breakOff({ res, call }: Work, last: string | Buffer): void {
  res.write(last, () => {
    call.orderly = !res.destroyed && res.socket?.writable === true;
    res.socket?.end();
  });
}

function refuse({ res, call, random, wire }: Work): boolean {
  const { behaviour } = call;
  const status = { "status 500": random.pick([500, 503]), "status 429": 429, "status 400": 400 }[
    behaviour as string
  ];
  if (status === undefined) return false;
  call.refused = true;
  const headers = { "content-type": "application/json", "retry-after": "0" };
  res.writeHead(status, headers).end(wire.error(status));
  return true;
}

async function answerWhole(work: Work): Promise<void> {
  const { call, wire, res, counts, random } = work;
  const { behaviour } = call;
  const drawn = Array.from({ length: random.between(1, 5) }, () => random.pick(work.words));
  const words = [work.mark, ...drawn].join("");
  const hasFigures = behaviour !== "no usage" || wire.alwaysCounts;
  const text = wire.whole(words, hasFigures ? counts : undefined);
  const length = Buffer.byteLength(text);
  res.writeHead(200, { "content-type": "application/json", "content-length": length });
  if (behaviour === "garbage") {
    call.refused = true;
    res.end("?".repeat(length));
    return;
  }
  if (/^(cut|reset)/.test(behaviour)) {
    call.refused = true;
    breakOff(work, Buffer.from(text).subarray(0, random.between(1, length - 1)));
    return;
  }
  if (behaviour === "slow") await pause(random.between(20, 400));
  call.text = words;
  call.finished = true;
  if (hasFigures) call.stated = counts;
  res.end(text, () => (call.orderly = true));
}

async function answerStream(work: Work): Promise<void> {
  const { call, wire, res, counts, random } = work;
  const { behaviour } = call;
  res.writeHead(200, { "content-type": "text/event-stream" });
  if (behaviour === "garbage") {
    call.refused = true;
    res.end("data: ?\n\n");
    return;
  }
  if (wire.alwaysCounts) call.early = { ...counts, completion: 1, reasoning: 0 };
  if (behaviour === "cut early") {
    call.refused = true;
    breakOff(work, wire.start(counts));
    return;
  }
  res.write(wire.start(counts));
  for (let word = random.between(1, 6); word > 0 && !res.destroyed; word -= 1) {
    const text = call.text === "" ? work.mark + random.pick(work.words) : random.pick(work.words);
    res.write(wire.text(text));
    call.text += text;
    await pause(behaviour === "slow" ? random.between(10, 90) : random.between(0, 3));
  }
  if (res.destroyed) return;
  endStream(work);
}

function endStream(work: Work): void {
  const { call, wire, res, counts } = work;
  const figures = wire.figures(counts);
  /** What is written before a stream breaks off, and whether its figures and its finish are. */
  const breaks: Partial<Record<Behaviour, readonly [text: string, stated: boolean, end: boolean]>> =
    {
      "cut in text": [": nothing more\n\n", false, false],
      "cut after figures": [wire.bareFigures(counts), true, false],
      // In Anthropic's format the finish and the figures are one event.
      "cut after finish": [wire.finish(counts), figures === "", true],
      "cut after all": [wire.finish(counts) + figures, true, true],
    };
  if (call.behaviour === "reset in text") {
    res.socket?.resetAndDestroy();
    return;
  }
  const isStated = call.behaviour !== "no usage" || wire.alwaysCounts;
  const whole = wire.finish(counts) + (isStated ? figures : "") + wire.end;
  const broken = breaks[call.behaviour];
  const [text, stated, finished] = broken ?? [whole, isStated, true];
  if (stated) call.stated = counts;
  call.finished = finished;
  if (broken) breakOff(work, text);
  else res.end(text, () => (call.orderly = true));
}

/** What of a request's body matters here. */
interface Body {
  readonly model: ModelName;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly stream?: boolean;
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
}

/** `isReference`: no figures are stated that the reference edition does not read. */
export async function startProvider(random: Random, isReference = false): Promise<Provider> {
  const ledger = new Map<number, Call[]>();
  const read = isReference ? "reference" : "all";

  /** A call that begins goes into the ledger. `begun`: the text that it goes on with. */
  function enter(serial: number, body: Body, begun: string): Call {
    const call: Call = {
      serial,
      model: body.model,
      streamed: body.stream === true,
      behaviour: random.pick(DRAWN),
      at: Date.now(),
      begunBytes: Buffer.byteLength(begun),
      // Anthropic demands a bound, so the gateway sends one where the client has none.
      maxTokens: Math.min(400, body.max_tokens ?? body.max_completion_tokens ?? 400),
      text: "",
      finished: false,
      refused: false,
      orderly: false,
      troubles: [],
    };
    ledger.set(serial, [...(ledger.get(serial) ?? []), call]);
    return call;
  }

  async function take(path: string, text: string, res: http.ServerResponse): Promise<void> {
    const body = JSON.parse(text) as Body;
    const found = /#(\d+)\/(\d+)#/.exec(JSON.stringify(body.messages));
    if (!found) throw new Error(`a call without a mark: ${text.slice(0, 500)}`);
    const last = body.messages.at(-1)!;
    const begun = last.role === "assistant" ? String(last.content) : "";
    const isAnthropic = path.endsWith("/messages");
    const call = enter(Number(found[1]), body, begun);
    const { socket } = res;
    res.on("close", () => (call.troubles = troublesOf(socket, call.at)));
    const counts = figures(random, Number(found[2]), call.maxTokens)[read];
    const wire = isAnthropic ? anthropicWire : openaiWire;
    // A continuation begins with the blank that was left out, and with no word that was there.
    const other = () => ` ${random.between(100_000, 999_999)} `;
    const mark = begun === "" ? `${markOf(call.serial)} ` : "";
    const words = begun === "" ? WORDS : Array.from(WORDS, other);
    const work = { call, wire, res, counts, random, words, mark };
    await pause(random.between(0, 4));
    if (res.destroyed || refuse(work)) return;
    await (call.streamed ? answerStream(work) : answerWhole(work));
  }

  const server = http.createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
    let body = "";
    res.on("error", () => undefined);
    req.on("error", () => undefined);
    req.setEncoding("utf8").on("data", (text: string) => (body += text));
    req.on("end", () => take(req.url ?? "", body, res));
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
