// The self-test of scripts/fuzz.ts: a small server gives correct answers, in which the judge must
// find nothing, and wrong answers of every kind, which it must find.
import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { chunk, completion, event } from "../../test/support/provider.ts";
import { runCase } from "./run-case.ts";

const ID = "X-Request-Id: self-test\r\n";
const ERROR = {
  message: "no",
  type: "invalid_request_error",
  code: "unknown_url",
  param: null,
  request_id: "self-test",
};
const answer = (
  status: string,
  body: string,
  { headers = `${ID}Content-Type: application/json\r\n`, length = body.length, close = true } = {},
) =>
  `HTTP/1.1 ${status}\r\n${headers}Content-Length: ${length}\r\n${close ? "Connection: close\r\n" : ""}\r\n${body}`;
const failed = (error: object, status = "404 Not Found") =>
  answer(status, JSON.stringify({ error }));
const OK = '{"status":"ok"}';
const created = 1_700_000_000;
const CHUNK: object = chunk({ role: "assistant" }, null, { created });
const USAGE = {
  prompt_tokens: 1,
  completion_tokens: 1,
  total_tokens: 2,
  prompt_cache_hit_tokens: 0,
  prompt_cache_miss_tokens: 1,
};
const CHOICE = { index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" };
const REPLY = completion({}, "stop", {
  created,
  system_fingerprint: "f",
  choices: [CHOICE],
  usage: USAGE,
});
const RESPONSE = { object: "response", status: "completed", usage: { total_tokens: 2 } };
const json = (value: object) => answer("200 OK", JSON.stringify(value));
const FINISH = chunk({}, "stop", { created });
const STREAM = [
  "Content-Type: text/event-stream; charset=utf-8",
  "Cache-Control: no-cache, no-transform",
  "X-Accel-Buffering: no",
  "Transfer-Encoding: chunked",
  "Connection: close",
].join("\r\n");
const streamed = (...events: string[]) => {
  const chunks = events.map((event) => `${event.length.toString(16)}\r\n${event}\r\n`).join("");
  return `HTTP/1.1 200 OK\r\n${ID}${STREAM}\r\n\r\n${chunks}0\r\n\r\n`;
};
const DONE = event("[DONE]");

/**
 * Answers, each with a pattern of the fault that the judge must find; undefined: none. They break
 * one of the suite's rules of each kind; test/conformance.test.ts breaks the others.
 */
const ANSWERS: readonly [answer: string, noticed: RegExp | undefined][] = [
  [answer("200 OK", OK), undefined],
  [failed(ERROR), undefined],
  [streamed(event(CHUNK), event(FINISH), DONE), undefined],
  [answer("200 OK", OK, { close: false }) + failed(ERROR), undefined],
  [json(REPLY), undefined],
  [json(RESPONSE), undefined],
  [json({ ...RESPONSE, status: "incomplete" }), undefined],
  [json({ ...REPLY, choices: [CHOICE, { ...CHOICE, index: 1 }] }), /one choice/],
  [json({ ...REPLY, usage: { ...USAGE, total_tokens: 3 } }), /total_tokens to be prompt/],
  [json({ ...RESPONSE, status: "complete" }), /status to be/],
  [json({ ...RESPONSE, usage: { total_tokens: 0 } }), /total_tokens to be above 0/],
  [failed({ ...ERROR, type: "server_error" }, "500 Internal Server Error"), /status 500/],
  [answer("503 Service Unavailable", "{}"), /status 503/],
  [
    answer("200 OK", OK, { headers: "Content-Type: application/json\r\n" }),
    /X-Request-Id undefined/,
  ],
  [answer("200 OK", OK, { headers: ID + ID }), /comes twice/],
  [answer("200 OK", OK, { length: 99 }), /a body of 15 bytes, 99 were announced/],
  [answer("200 OK", `${OK}x`, { length: 15 }), /after an answer with Connection: close/],
  [answer("200 OK", "ok"), /200 with/],
  [answer("200 OK", '{"hello":1}'), /id to be/],
  [failed({ ...ERROR, request_id: undefined }), /request_id to be/],
  [failed({ ...ERROR, request_id: "another" }), /expected "self-test", got another/],
  [failed({ ...ERROR, stack: "at" }), /404 with/],
  [failed({ ...ERROR, type: "server_error" }), /type to be/],
  [answer("404 Not Found", "<html>", { headers: `${ID}Content-Type: text/html\r\n` }), /a body \{/],
  [streamed(event(CHUNK), event(FINISH)), /\[DONE\]/],
  [streamed(event(CHUNK)).slice(0, -5), /chunks that do not end/],
  ["HTTP/1.1 200 OK\r\nno header\r\n\r\n", /not a header/],
  [`HTTP/1.1 404 Not Found\r\n${ID}X: a\nb\r\n\r\n`, /not a header/],
  ["HTTP/1.1 200 OK\r\nX-Req", /a head that does not end/],
  ["hello\r\n\r\n", /not a status line/],
  [`HTTP/1.1 100 Continue\r\n\r\n${answer("200 OK", OK)}`, /nobody expected it/],
  [answer("200 OK", OK, { close: false }).repeat(4), /4 answers to at most 3/],
];

/** For cases that would otherwise wait long. */
const SHORT = { idleMs: 50, deadlineMs: 500 };

/** Returns the mistakes of the judge. */
export async function selfTest(): Promise<string[]> {
  let current = "";
  let [silent, staysOpen] = [false, false];
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("end", () => staysOpen && socket.resetAndDestroy());
    socket.once("data", () => silent || (staysOpen ? socket.write(current) : socket.end(current)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const pieces = [Buffer.from("GET / HTTP/1.1\r\n\r\n".repeat(2))];
  const sent = { pieces, ending: "server", patience: 0 } as const;
  const mistakes: string[] = [];
  /** Runs a case against the server, and compares the fault that the judge finds. */
  async function check(
    what: string,
    expected: RegExp | undefined,
    statuses?: readonly number[],
    limits?: typeof SHORT,
  ): Promise<void> {
    const { fault } = await runCase(port, { ...sent, expected: statuses }, limits);
    if (expected ? !expected.test(fault ?? "") : fault !== undefined)
      mistakes.push(`expected ${expected ?? "nothing"}, found ${fault ?? "nothing"}: ${what}`);
  }
  for (const [text, expected] of ANSWERS) {
    current = text;
    await check(JSON.stringify(text), expected);
  }
  current = failed(ERROR);
  await check("another status than the known one", /the first answer is 404, not 200/, [200]);
  [current, staysOpen] = ["HTTP/1.1 200 OK\r\nX-Req", true];
  await check("an incomplete answer until the client leaves", /no whole answer/, undefined, SHORT);
  silent = true;
  await check("a server that says nothing", /no answer within/, undefined, SHORT);
  server.close();
  return mistakes;
}
