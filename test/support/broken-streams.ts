// A provider whose streams break at random places, and which then goes on in random ways: for the
// soak of recovery. What a request is answered with follows from its question, so that each client
// knows the whole text.

import http, { type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chunk, event } from "./provider.ts";
import { createRandom } from "./random.ts";
import type { Scope } from "./scope.ts";

const WORDS = [
  "the cat",
  "Café",
  "😀",
  "naïve",
  "a",
  "\n\n",
  "- ",
  "{ x: 1 }",
  "日本語のテキスト",
  "👩‍💻",
  "1,000",
  '"',
  "\\",
  "  ",
];

/** The whole answer to a question. It has no two parts that could be taken for each other. */
export function answerTo(question: string): string {
  const { between, pick } = createRandom(Number(question.replace(/\D/g, "")));
  const words = Array.from(
    { length: between(8, 60) },
    (_, at) => `${pick(WORDS)} w${at}${pick(["", ".", ","])}`,
  );
  return `Answer ${question}: ${words.join(" ")}`;
}

type Random = ReturnType<typeof createRandom>;

const BREAKS: Readonly<Record<string, (res: ServerResponse) => void>> = {
  reset: (res) => res.socket?.resetAndDestroy(),
  end: (res) => res.end(),
  "error event": (res) => res.end(event({ error: { message: "boom", code: 500 } })),
  garbage: (res) => res.end("data: {{{\n\ndata: <html>\n\n"),
  stall: () => undefined,
};

/** What a model says that was asked to go on after the beginning of its own answer. */
const JOINTS: readonly ((rest: string, whole: string, beginning: string) => string | number)[] = [
  ...Array.from({ length: 12 }, () => (rest: string) => rest),
  (_, whole) => whole,
  (_, whole) => whole,
  (rest, _, beginning) => (/\S*[\p{L}\p{N}]\S*$/u.exec(beginning)?.[0] ?? "") + rest,
  (_, whole) => `Answer otherwise. ${whole}`,
  () => "",
  () => 500,
];

export interface BrokenProvider {
  readonly url: string;
  /** How many streams broke, by kind. */
  readonly broken: Record<string, number>;
  /** Streams in all, and those that go on with another. */
  readonly streams: { all: number; continued: number };
}

/** `share`: of the streams, 0 to 1, that break. */
export async function startBroken(
  t: Scope,
  random: Random,
  share: number,
): Promise<BrokenProvider> {
  const broken: Record<string, number> = {};
  const streams = { all: 0, continued: 0 };

  function respond(res: ServerResponse, body: Record<string, any>): void {
    streams.all += 1;
    const { messages } = body;
    const whole = answerTo(messages[0].content);
    const last = messages.at(-1);
    let text: string | number = whole;
    if (last.role === "assistant") {
      streams.continued += 1;
      text = random.pick(JOINTS)(whole.slice(last.content.length), whole, last.content);
    }
    if (typeof text === "number") {
      res.writeHead(text, { "content-type": "application/json" }).end("{}");
      return;
    }
    const breaks = random.random() < share ? random.pick(Object.keys(BREAKS)) : undefined;
    if (breaks) broken[breaks] = (broken[breaks] ?? 0) + 1;
    const cut = breaks ? random.between(0, text.length) : text.length;
    send(res, text.slice(0, cut), breaks);
  }

  function send(res: ServerResponse, text: string, breaks: string | undefined): void {
    res.writeHead(200, { "content-type": "text/event-stream" });
    const hidden = random.random() < 0.2 ? [chunk({ reasoning_content: "Hm." })] : [];
    const events = [...hidden, ...piecesOf(text, random).map((content) => chunk({ content }))];
    const bytes = Buffer.from(events.map(event).join(""));
    const cut = random.between(0, bytes.length);
    // Two writes, the first of which ends anywhere: in an event, or in a character.
    res.write(bytes.subarray(0, cut));
    setTimeout(
      () => {
        if (res.destroyed) return;
        res.write(bytes.subarray(cut), () => {
          if (breaks) BREAKS[breaks]!(res);
          else res.end(event(chunk({}, "stop")) + event("[DONE]"));
        });
      },
      random.between(0, 20),
    );
  }

  const server = http.createServer((req, res) => {
    let body = "";
    req.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    req.on("end", () => respond(res, JSON.parse(body)));
    res.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, broken, streams };
}

/** The text in pieces that begin anywhere, be it between the halves of a character. */
function piecesOf(text: string, { between }: Random): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const size = between(1, 12);
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces;
}
