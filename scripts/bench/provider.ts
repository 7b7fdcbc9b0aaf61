// A provider that costs almost nothing, so that the benchmark measures the gateway: plain sockets,
// ready-made responses. The text of the request selects the reply: "bytes=300" is a whole reply
// with that much text, "events=500 every=10" a stream of 500 events, the first sent at once and the
// others 10 ms apart.

import net from "node:net";
import { chunk, completion, event } from "../../test/support/provider.ts";

const envelope = { id: "x", model: "m" };
const usage = { prompt_tokens: 20, completion_tokens: 70, total_tokens: 90 };
const chunked = (text: string) =>
  Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);

const STREAM_HEAD = Buffer.from(
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
);
const EVENT = chunked(event(chunk({ content: " happy" }, null, envelope)));
const LAST = Buffer.concat([
  chunked(event(chunk({}, "stop", { ...envelope, usage })) + event("[DONE]")),
  Buffer.from("0\r\n\r\n"),
]);

const replies = new Map<number, Buffer>();
function reply(bytes: number): Buffer {
  const known = replies.get(bytes);
  if (known) return known;
  const content = "All happy families are alike. ".repeat(Math.ceil(bytes / 30)).slice(0, bytes);
  const body = JSON.stringify(completion({ content }, "stop", { ...envelope, usage }));
  const made = Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  replies.set(bytes, made);
  return made;
}

function stream(socket: net.Socket, events: number, every: number): void {
  socket.write(Buffer.concat([STREAM_HEAD, EVENT]));
  let sent = 1;
  const stop = () => {
    clearInterval(beat);
    socket.off("close", stop);
  };
  const beat = setInterval(() => {
    socket.write(sent < events ? EVENT : LAST);
    if (sent >= events) stop();
    sent += 1;
  }, every);
  socket.once("close", stop);
}

/** The size of the first request in `bytes`, or more than their length while it is unknown. */
function sizeOf(bytes: Buffer): number {
  const body = bytes.indexOf("\r\n\r\n") + 4;
  if (body === 3) return bytes.length + 1;
  const head = bytes.toString("latin1", 0, body);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return body + Number(length);
  const last = bytes.indexOf("\r\n0\r\n\r\n", body - 2); // the end of a chunked body
  return last === -1 ? bytes.length + 1 : last + 7;
}

const server = net.createServer({ noDelay: true }, (socket) => {
  let pieces: Buffer[] = [];
  let size = 0;
  let wanted = 0;
  socket.on("error", () => socket.destroy());
  socket.on("data", (data) => {
    pieces.push(data);
    size += data.length;
    if (size < wanted) return;
    const bytes = pieces.length === 1 ? data : Buffer.concat(pieces);
    pieces = [bytes];
    wanted = sizeOf(bytes);
    if (size < wanted) return;
    [pieces, size, wanted] = [[], 0, 0];
    const [, whole, events, every] =
      /bytes=(\d+)|events=(\d+) every=(\d+)/.exec(bytes.toString("latin1", 0, 8192)) ?? [];
    if (events === undefined) socket.write(reply(Number(whole ?? 300)));
    else stream(socket, Number(events), Number(every));
  });
});
server.listen(0, "127.0.0.1", () =>
  console.log(`listens on http://127.0.0.1:${(server.address() as net.AddressInfo).port}`),
);
