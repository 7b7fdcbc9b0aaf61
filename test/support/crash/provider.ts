// The provider of the gateways that are killed: fast, but for some replies that take their time; some
// fail, some break off, and some requests it never answers.

import { EventEmitter, once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type Counts, NO_COUNTS } from "../../../scripts/reconcile/money.ts";
import { openaiWire } from "../../../scripts/reconcile/wire.ts";
import { within } from "../wait.ts";
import { LATE_MS, type Random } from "./setup.ts";

/** What a request says that the provider is to leave without an answer. */
export const UNANSWERED = "unanswered ";

export interface CrashProvider {
  readonly url: string;
  /**
   * The serial numbers of the requests that reached it, each once however often they were tried.
   */
  readonly seen: ReadonlySet<string>;
  /** Resolves when this request is there. */
  reached(serial: string): Promise<void>;
  close(): void;
}

export async function startCrashProvider({
  random,
  between,
  pick,
}: Random): Promise<CrashProvider> {
  const seen = new Set<string>();
  const reaching = new EventEmitter();
  const figures = (): Counts | undefined => {
    if (random() < 0.1) return undefined;
    const [prompt, completion] = [between(1, 5_000), between(1, 3_000)];
    const hit = between(0, prompt);
    const write = between(0, prompt - hit);
    const reasoning = between(0, completion);
    return { prompt, hit, write, write1h: 0, completion, reasoning };
  };

  async function answerWhole(res: http.ServerResponse, kind: string): Promise<void> {
    const text = openaiWire.whole("one two three", figures());
    res.writeHead(200, { "content-type": "application/json", "content-length": text.length });
    if (kind === "cut") {
      res.write(text.slice(0, between(1, 40)), () => res.socket?.resetAndDestroy());
      return;
    }
    if (kind === "slow") await pause(between(20, 1_200));
    res.end(text);
  }

  async function answerStream(res: http.ServerResponse, kind: string): Promise<void> {
    const usage = figures();
    res.writeHead(200, { "content-type": "text/event-stream" });
    for (let word = between(1, 6); word > 0 && !res.destroyed; word -= 1) {
      res.write(openaiWire.text(`word ${word} `));
      await pause(kind === "slow" ? between(20, 200) : between(0, 3));
    }
    const { finish, figures: state, end } = openaiWire;
    if (kind === "cut") res.socket?.resetAndDestroy();
    else res.end(finish(NO_COUNTS) + (usage ? state(usage) : "") + end);
  }

  async function answer(res: http.ServerResponse, streaming: boolean): Promise<void> {
    const kind = pick(["well", "well", "well", "well", "well", "slow", "fails", "cut"]);
    await pause(between(0, 15));
    if (kind === "fails") res.writeHead(pick([500, 500, 503])).end("{}");
    else await (streaming ? answerStream : answerWhole)(res, kind);
  }

  const server = http.createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
    let body = "";
    res.on("error", () => undefined);
    req.on("error", () => undefined);
    req.setEncoding("utf8").on("data", (text: string) => (body += text));
    req.on("end", () => {
      const { messages, stream } = JSON.parse(body) as {
        messages: { content: string }[];
        stream?: boolean;
      };
      const serial = messages[0]!.content;
      seen.add(serial);
      reaching.emit(serial);
      if (!serial.startsWith(UNANSWERED)) answer(res, stream === true);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async reached(serial) {
      if (!seen.has(serial))
        await within(once(reaching, serial), `${serial} at the provider`, LATE_MS);
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
