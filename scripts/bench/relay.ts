// The baseline: the minimum work of any gateway on node:http. It parses and re-serializes both
// bodies and each event of a stream over pooled keep-alive sockets, and does nothing else.

import http, { type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

const [upstream = ""] = process.argv.slice(2);
const { hostname, port } = new URL(upstream);
const agent = new http.Agent({ keepAlive: true });

/** Parses a JSON body, and sends it re-serialized. */
function relayBody(
  stream: IncomingMessage,
  send: (body: string, headers: OutgoingHttpHeaders) => void,
): void {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    const text = (pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)).toString();
    const body = JSON.stringify(JSON.parse(text));
    send(body, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  });
}
const relayEvent = (event: string): string =>
  event === "data: [DONE]"
    ? `${event}\n\n`
    : `data: ${JSON.stringify(JSON.parse(event.slice(6)))}\n\n`;

const server = http.createServer({ noDelay: true }, (req, res) => {
  relayBody(req, (body, headers) => {
    const options = { hostname, port, path: "/chat/completions", method: "POST", agent, headers };
    const out = http.request(options, (reply) => {
      if (reply.headers["content-type"] === "application/json")
        return relayBody(reply, (answer, fields) => res.writeHead(200, fields).end(answer));
      res.writeHead(200, { "content-type": "text/event-stream" });
      let rest = "";
      reply.setEncoding("utf8");
      reply.on("data", (text: string) => {
        const events = (rest + text).split("\n\n");
        rest = events.pop()!;
        res.write(events.map(relayEvent).join(""));
      });
      reply.on("end", () => res.end());
    });
    out.on("error", () => res.destroy());
    res.on("close", () => res.writableFinished || out.destroy());
    out.end(body);
  });
});
server.listen(0, "127.0.0.1", () =>
  console.log(`listens on http://127.0.0.1:${(server.address() as AddressInfo).port}`),
);
