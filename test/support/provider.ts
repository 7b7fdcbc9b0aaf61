// A provider for tests, on a real socket. The model's name in a request selects its behaviour, from
// a table that the test makes of the behaviours below. A test may also give one behaviour for all
// models.

import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { listening } from "./listening.ts";
import type { Scope } from "./scope.ts";
import { waitFor } from "./wait.ts";

export interface Asked {
  readonly body: Record<string, any>;
  readonly headers: IncomingMessage["headers"];
  readonly path: string;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly socket: Socket;
  /** Whether the connection was closed before the answer was complete. */
  closed(): boolean;
}

export type Behaviour = (asked: Asked) => void | Promise<void>;

/** Behaviours by the name of the requested model, or one for all models. */
export type Behaviours = Readonly<Record<string, Behaviour>> | Behaviour;

/** The behaviour for a request. A model that is not listed gets a 404. */
function behaviourFor(behaviours: Behaviours, { body }: Asked): Behaviour {
  if (typeof behaviours === "function") return behaviours;
  const unknown = { error: { message: `no model ${body["model"]}` } };
  return behaviours[body["model"]] ?? status(404, unknown);
}

export type Provider = Awaited<ReturnType<typeof startProvider>>;

export async function startProvider(t: Scope, behaviours: Behaviours) {
  const asked: Asked[] = [];
  let connections = 0;
  const server = http.createServer({ noDelay: true }, (req, res) => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      const body = JSON.parse(Buffer.concat(pieces).toString("utf8"));
      let closed = false;
      res.on("close", () => (closed = !res.writableFinished));
      const record: Asked = {
        body,
        headers: req.headers,
        path: req.url ?? "",
        req,
        res,
        socket: req.socket,
        closed: () => closed,
      };
      asked.push(record);
      behaviourFor(behaviours, record)(record);
    });
  });
  server.on("connection", () => (connections += 1));
  return {
    url: await listening(t, server),
    asked,
    /** The number of connections made so far. */
    connections: () => connections,
    /** Waits for the n-th request, from 0. */
    nth: (n: number) => waitFor(() => asked[n], `request ${n} at the provider`),
    server,
  };
}

export const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 7,
  total_tokens: 27,
  prompt_tokens_details: { cached_tokens: 8 },
  completion_tokens_details: { reasoning_tokens: 3 },
};

/** A chunk as a provider sends it. */
export const chunk = (delta: object, finish: string | null = null, more: object = {}): object => ({
  id: "upstream-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "upstream-model-2026-01-01",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

export const usageChunk = (usage: object = USAGE): object => ({
  id: "upstream-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "u",
  choices: [],
  usage,
});

export const event = (json: unknown): string =>
  `data: ${typeof json === "string" ? json : JSON.stringify(json)}\n\n`;

/** A whole reply as a provider sends it. */
export const completion = (message: object, finish: string | null = "stop", more: object = {}) => ({
  id: "upstream-1",
  object: "chat.completion",
  created: 1,
  model: "upstream-model-2026-01-01",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }],
  usage: USAGE,
  ...more,
});

const SSE = { "content-type": "text/event-stream" };

/** Answers with a status. A body that is not a string becomes JSON. */
export const status =
  (
    code: number,
    body: unknown = {},
    headers: Record<string, string> = { "content-type": "application/json" },
  ): Behaviour =>
  ({ res }) => {
    res.writeHead(code, headers);
    res.end(typeof body === "string" ? body : JSON.stringify(body));
  };

/** Sends events. "eof": ends without [DONE]. "cut": resets the connection. "open": stays open. */
export const stream =
  (events: readonly unknown[], ending: "done" | "eof" | "cut" | "open" = "done"): Behaviour =>
  ({ res, socket }) => {
    res.writeHead(200, SSE);
    const text = events.map(event).join("");
    const after = () => {
      if (ending === "cut") socket.resetAndDestroy();
      else if (ending !== "open") res.end();
    };
    if (text === "" && ending === "open") res.flushHeaders();
    else res.write(ending === "done" ? `${text}${event("[DONE]")}` : text, after);
  };

/** Sends raw bytes as the body, in pieces of `pieceSize` bytes, one write for each. */
export const inPieces =
  (code: number, mediaType: string, bytes: Buffer | string, pieceSize: number): Behaviour =>
  async ({ res }) => {
    const all = Buffer.from(bytes as string);
    res.writeHead(code, { "content-type": mediaType });
    for (let at = 0; at < all.length; at += pieceSize)
      await new Promise((resolve) => res.write(all.subarray(at, at + pieceSize), resolve));
    res.end();
  };
export const rawStream = (bytes: Buffer | string, pieceSize = Infinity): Behaviour =>
  inPieces(200, "text/event-stream", bytes, pieceSize);

/** The pieces in which a text is streamed. */
export const wordsIn = (text: string): string[] => text.match(/\s*\S+|\s+$/g) ?? [];

/** Answers whole or streamed, as requested. The deltas are the words of `text`. */
export const speak =
  (text: string, { reasoning = "" }: { reasoning?: string } = {}): Behaviour =>
  (asked) => {
    if (!asked.body["stream"])
      return status(
        200,
        completion({ content: text, ...(reasoning && { reasoning_content: reasoning }) }),
      )(asked);
    return stream([
      chunk({ role: "assistant", content: "" }),
      ...wordsIn(reasoning).map((word) => chunk({ reasoning_content: word })),
      ...wordsIn(text).map((word) => chunk({ content: word })),
      chunk({}, "stop"),
      usageChunk(),
    ])(asked);
  };

/** One behaviour for each request, in order. The last one is repeated. */
export function inTurn(...behaviours: readonly Behaviour[]): Behaviour {
  let turn = 0;
  return (asked) => {
    turn += 1;
    return behaviours[Math.min(turn, behaviours.length) - 1]!(asked);
  };
}

/** Accepts the request and never answers. */
export const silent: Behaviour = () => undefined;

/** Resets the connection before any byte of an answer. */
export const reset: Behaviour = ({ socket }) => {
  socket.resetAndDestroy();
};

/** Sends the same piece without end, as fast as the reader reads. */
export const endless =
  (mediaType: string, piece: string | Buffer): Behaviour =>
  ({ res }) => {
    res.writeHead(200, { "content-type": mediaType });
    const fill = () => {
      while (!res.destroyed && res.write(piece));
    };
    res.on("drain", fill);
    fill();
  };

/** A stream that sends "Fi" and waits. finish() makes it send the rest, "ne.". */
export function held(): { readonly behaviour: Behaviour; finish(): void } {
  let finish = () => {};
  return {
    behaviour: ({ res }) => {
      res.writeHead(200, SSE);
      res.write(event(chunk({ content: "Fi" })));
      finish = () => {
        res.end(event(chunk({ content: "ne." }, "stop")));
      };
    },
    finish: () => finish(),
  };
}
