// The provider of scripts/compare.ts: one server that speaks the three provider formats. The model
// that it is asked for is the name of a script (replies.ts), so that a configuration needs one
// model a script. It keeps what it was asked.
import http from "node:http";
import type { AddressInfo } from "node:net";
import { scriptFor, text, type Format, type Script } from "./replies.ts";

/** A request as it came. */
export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

function formatOf(path: string): Format {
  if (path.startsWith("/v1beta")) return "gemini";
  return path.startsWith("/v1/messages") ? "anthropic" : "openai";
}

/**
 * The script's name: what follows the two underscores in the model's name, which Gemini has in its
 * path.
 */
function nameOf(format: Format, path: string, model: unknown): string {
  const name =
    format === "gemini" ? /models\/[^:]*__([\w-]+):/.exec(path)?.[1] : String(model).split("__")[1];
  return String(name);
}

interface Reply {
  readonly format: Format;
  /** Whether a stream was asked for. */
  readonly streamed: boolean;
  readonly script: Script;
}

function answer(res: http.ServerResponse, { format, streamed, script }: Reply): void {
  const { status = 200, headers = {}, events = [], raw, ending } = script;
  const asStream = streamed && status === 200;
  res.writeHead(status, {
    "content-type": asStream ? "text/event-stream" : "application/json",
    ...headers,
  });
  const isDone = format === "openai" && ending === undefined && events.length > 4;
  const stream = () => events.map(text).join("") + (isDone ? "data: [DONE]\n\n" : "");
  const said = raw ?? (asStream ? stream() : JSON.stringify(events[0] ?? {}));
  res.write(said, () => {
    if (ending === "cut") res.req.socket.resetAndDestroy();
    else res.end();
  });
}

export async function startProvider() {
  const received = new Map<string, Received[]>();
  const server = http.createServer({ noDelay: true }, (req, res) => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      const body = JSON.parse(Buffer.concat(pieces).toString()) as Readonly<
        Record<string, unknown>
      >;
      const path = req.url ?? "";
      const format = formatOf(path);
      const streamed = body["stream"] === true || path.includes("streamGenerateContent");
      const name = nameOf(format, path, body["model"]);
      const known = received.get(`${format}__${name}`) ?? [];
      received.set(`${format}__${name}`, [...known, { path, headers: req.headers, body }]);
      answer(res, { format, streamed, script: scriptFor(format, name, streamed) });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
