// Requests GET /healthz every 20 ms on its own connection. It is a process of its own, so that work
// of the load generator is not measured. Its parent sends it a port, and later `stop`. It does not
// wait for a response before the next request, so a late response counts for each request that it
// delayed.

import net from "node:net";

/** The milliseconds of each response, in order. `lost`: the number of requests without one. */
export interface Probed {
  readonly times: readonly number[];
  readonly lost: number;
}

const EVERY_MS = 20;
/** How long to wait for the last responses, in ms. */
const LAST_MS = 30_000;
const QUESTION = "GET /healthz HTTP/1.1\r\nHost: probe\r\n\r\n";
const ANSWER = '{"status":"ok"}';

let stop: () => unknown = () => undefined;
process.on("message", (message: number | "stop") => (message === "stop" ? stop() : begin(message)));
process.on("disconnect", () => process.exit());

function begin(port: number): void {
  const asked: number[] = [];
  const times: number[] = [];
  let text = "";
  let stopped = false;
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
  const closed = new Promise((resolve) => socket.on("close", resolve));
  const ask = () => {
    asked.push(performance.now());
    socket.write(QUESTION);
  };
  const beat = setInterval(ask, EVERY_MS);
  closed.then(() => clearInterval(beat));
  const leaveIfAnswered = () => stopped && asked.length === 0 && socket.destroy();
  stop = async () => {
    stopped = true;
    clearInterval(beat);
    const late = setTimeout(() => socket.destroy(), LAST_MS);
    leaveIfAnswered();
    await closed;
    clearTimeout(late);
    process.send!({ times, lost: asked.length } satisfies Probed);
  };
  socket.on("error", () => undefined);
  socket.on("data", (data: Buffer) => {
    text += data.toString("latin1");
    for (let end = text.indexOf(ANSWER); end !== -1; end = text.indexOf(ANSWER)) {
      text = text.slice(end + ANSWER.length);
      if (times.push(performance.now() - asked.shift()!) === 1) process.send!("begun");
    }
    leaveIfAnswered();
  });
  ask();
}
