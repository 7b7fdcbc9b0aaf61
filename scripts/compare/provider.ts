// The provider of scripts/compare.ts: one server that speaks the three provider formats. The model that it is asked for is the name of
// a script (replies.ts), so that a configuration needs one model a script. It keeps what it was asked.
import http from "node:http";
import type { AddressInfo } from "node:net";
import { scriptFor, text, type Format } from "./replies.ts";

/** A request as it came. */
export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
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
      const format: Format = path.startsWith("/v1beta")
        ? "gemini"
        : path.startsWith("/v1/messages")
          ? "anthropic"
          : "openai";
      const streamed = body["stream"] === true || path.includes("streamGenerateContent");
      const name = String(
        format === "gemini"
          ? /models\/[^:]*__([\w-]+):/.exec(path)?.[1]
          : String(body["model"]).split("__")[1],
      );
      const known = received.get(`${format}__${name}`) ?? [];
      received.set(`${format}__${name}`, [...known, { path, headers: req.headers, body }]);
      const {
        status = 200,
        headers = {},
        events = [],
        raw,
        ending,
      } = scriptFor(format, name, streamed);
      const asStream = streamed && status === 200;
      res.writeHead(status, {
        "content-type": asStream ? "text/event-stream" : "application/json",
        ...headers,
      });
      const end =
        asStream && format === "openai" && ending === undefined && events.length > 4
          ? "data: [DONE]\n\n"
          : "";
      const said =
        raw ?? (asStream ? events.map(text).join("") + end : JSON.stringify(events[0] ?? {}));
      res.write(said, () => (ending === "cut" ? req.socket.resetAndDestroy() : res.end()));
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
