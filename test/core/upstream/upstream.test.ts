// The request to a provider, and what remains of its response if that is rejected.
// ../routing/faults.test.ts tests how each provider fault is reported. Then the body of the
// response, read piece by piece, and stored pieces.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { type Fetch, fetchTransport } from "../../../src/core/upstream/fetch.ts";
import { VERSION } from "../../../src/core/version.ts";
import {
  configFor,
  json,
  POOLED_ONLY,
  startWith,
  startGateway,
  user,
} from "../../support/gateway.ts";
import { type Behaviour, chunk, completion, speak, status } from "../../support/provider.ts";
import { keepBusy } from "../../support/effort.ts";
import { waitFor, within } from "../../support/wait.ts";
import { Readable } from "node:stream";
import { setImmediate as turnEnd } from "node:timers/promises";
import { addPiece } from "../../../src/core/pieces.ts";
import { consume as consumeTo } from "../../../src/core/upstream/body.ts";
import type { TakePiece, UpstreamBody } from "../../../src/core/upstream/transport.ts";

it("fetch gets the request after it is reported as sent, and rejects with the cancel reason", async () => {
  const order: string[] = [];
  const cancel = new Cancel();
  const request = {
    method: "POST" as const,
    redirect: "manual" as const,
    headers: { "Content-Type": "application/json" },
    body: "{}",
    cancel,
    connectMs: 1_000,
    sent: () => order.push("sent"),
  };
  const response = { status: 200, headers: { get: () => null }, body: null };
  const fake: Fetch = async (url, init) => {
    order.push(`${init.method} ${url} ${init.body} ${init.redirect} ${init.signal.aborted}`);
    return response;
  };
  assert.equal(await fetchTransport(fake)("http://lab.test/v1", request), response);
  assert.deepEqual(order, ["sent", "POST http://lab.test/v1 {} manual false"]);

  const reason = new Error("left");
  cancel.abort(reason);
  const refused = fetchTransport()("http://127.0.0.1:9/", request);
  await assert.rejects(refused, (error) => error === reason);
});

async function answered(t: TestContext, behaviour: Behaviour, over: object = {}) {
  const { provider, ...gateway } = await startWith(t, { m: behaviour }, over);
  const asking = gateway.chat({ model: "m", messages: user("hi") });
  return { provider, response: await within(asking, "the answer") };
}

describe("a call", () => {
  it(
    "carries the provider's key, asks for identity encoding, and forwards no header of the client",
    POOLED_ONLY,
    async (t) => {
      const { provider } = await answered(t, speak("Hi."));
      const { headers, path } = provider.asked[0]!;
      assert.equal(path, "/chat/completions");
      const { host, "content-length": length, ...rest } = headers;
      assert.ok(host && length);
      assert.deepEqual(rest, {
        accept: "application/json",
        "accept-encoding": "identity",
        authorization: "Bearer sk-provider-secret",
        connection: "keep-alive",
        "content-type": "application/json",
        "user-agent": `chat-gateway/${VERSION}`,
      });
    },
  );

  it("has no half of a character, which many providers refuse, but texts that look like one", async (t) => {
    const { chat, provider } = await startWith(t, { m: speak("Hi.") });
    for (const [content, sent = content] of [
      ["cut \ud83d", "cut \ufffd"],
      ["\ude00 \ud83d\ud83d\ude00\\\\\ud83d", "\ufffd \ufffd\ud83d\ude00\\\\\ufffd"],
      ["whole \ud83d\ude00"],
      ["an escape: \\ud83d, \\\\ud83d"],
    ] as const) {
      await chat({ model: "m", messages: user(content) });
      assert.deepEqual(provider.asked.at(-1)!.body["messages"], user(sent));
    }
  });

  it("has the configured user agent only", async (t) => {
    const headers = { "User-Agent": "agent/1" };
    const { provider } = await answered(t, speak("Hi."), { providers: { lab: { headers } } });
    assert.equal(provider.asked[0]!.headers["user-agent"], "agent/1");
  });

  for (const [mediaType, encoding] of [
    ["text/html", "identity"],
    ["application/json", "gzip"],
  ] as const)
    it(`whose response, a 200 of ${mediaType}, is rejected stops reading it`, async (t) => {
      const begins: Behaviour = ({ res }) => {
        res.writeHead(200, { "content-type": mediaType, "content-encoding": encoding });
        res.write("<html>");
      };
      const { response, provider } = await answered(t, begins);
      assert.equal(response.status, 503);
      await waitFor(() => provider.asked[0]!.closed(), "the provider's connection to close");
    });

  const REPLY = JSON.stringify(completion({ content: "Hi." }));
  const EVENT = JSON.stringify(chunk({ content: "Hi." }, "stop"));
  for (const [mediaType, text] of [
    ["Application/JSON; charset=UTF-8", `\ufeff${REPLY}`],
    ["Text/Event-Stream;charset=utf-8", `\ufeffdata: ${EVENT}\n\n`],
  ] as const)
    it(`whose response is ${mediaType}, with a byte order mark and no encoding, is read`, async (t) => {
      const headers = { "content-type": mediaType, "content-encoding": "" };
      const { response } = await answered(t, status(200, text, headers));
      assert.equal((await json(response)).choices[0].message.content, "Hi.");
    });

  it("that meets a bug of the gateway is a bare 500, with the detail in the log", async (t) => {
    const fetch: Fetch = () => Promise.reject(new TypeError("a bug that names sk-provider-secret"));
    const gateway = await startGateway(t, configFor("http://127.0.0.1:1", ["m"]), { fetch });
    const response = await gateway.chat({ model: "m", messages: user("hi") });
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [500, "internal_error"]);
    assert.equal(response.headers.get("x-should-retry"), "false");
    assert.ok(!error.message.includes("bug"));
    await waitFor(
      () => gateway.diagnostics.find((line) => String(line["detail"]).includes("a bug that names")),
      "the diagnostic line",
    );
  });
});

it("addPiece joins many small pieces into few, in order", () => {
  const pieces: Uint8Array[] = [];
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7) % 251));
  for (const byte of bytes) addPiece(pieces, Buffer.from([byte]));
  assert.ok(pieces.length < 30, `${pieces.length}`);
  assert.deepEqual(Buffer.concat(pieces), bytes);
});

it("addPiece keeps large pieces unchanged", () => {
  const pieces: Uint8Array[] = [];
  const large = Buffer.alloc(64 * 1024, 1);
  for (const piece of [large, Buffer.from("a"), large]) addPiece(pieces, piece);
  assert.equal(pieces[0], large);
  assert.equal(pieces[2], large);
  assert.deepEqual(pieces[1], Buffer.from("a"));
});

const bytesOf = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text));

/** Resolves with "end" at the end of the body. */
const consume = (body: UpstreamBody, take: TakePiece): Promise<string> =>
  consumeTo(body, take, () => "end");

async function* iterable(...texts: string[]): AsyncGenerator<Uint8Array> {
  yield* bytesOf(...texts);
}

async function* failing(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("a");
  throw new Error("broken off");
}

const rejects = (promise: Promise<unknown>, message: string) =>
  assert.rejects(within(promise, "the rejection"), { message });

describe("consume", () => {
  it("passes nothing on while there is no room", async () => {
    let makeRoom = (): void => undefined;
    let taken = 0;
    const done = consume(Readable.from(bytesOf("a", "b")), () => {
      taken += 1;
      return taken === 1 ? new Promise<void>((resolve) => (makeRoom = resolve)) : undefined;
    });
    for (let turns = 0; turns < 5; turns += 1) await turnEnd();
    assert.equal(taken, 1);
    makeRoom();
    await within(done, "the end");
    assert.equal(taken, 2);
  });

  it("gives the pieces of all bodies together a time budget per pass of the event loop", async () => {
    const order: string[] = [];
    const reading = ["a", "b", "c"].map((name) =>
      consume(iterable("1", "2", "3"), () => {
        order.push(name);
        keepBusy(12);
      }),
    );
    let passes = 0;
    let most = 0;
    let before = 0;
    const look = (): void => {
      passes += 1;
      most = Math.max(most, order.length - before);
      before = order.length;
      if (order.length < 9) setImmediate(look);
    };
    setImmediate(look);
    await within(Promise.all(reading), "the end of all");
    // The first piece of each body may come before the budget is known to be spent.
    assert.ok(passes >= 6, `${order.length} pieces in ${passes} passes`);
    assert.deepEqual(order.slice(-3), ["a", "b", "c"], "bodies take turns");
  });

  it("passes on a piece that waits for its turn before the failure that follows it", async () => {
    /** Passes on a piece, and fails before its reader has had a turn. */
    const passed = {
      each: (take: (bytes: Uint8Array) => unknown) => {
        take(Buffer.from("a"));
        return Promise.reject(new Error("broken off"));
      },
    };
    for (const body of [passed, failing()]) {
      const before = consume(iterable("1"), () => keepBusy(12));
      const taken: string[] = [];
      const take = (bytes: Uint8Array) => {
        taken.push(String(bytes));
      };
      await rejects(
        before.then(() => consume(body, take)),
        "broken off",
      );
      assert.deepEqual(taken, ["a"]);
    }
  });

  it("rejects with the reader's error, abandons the body, and passes nothing more on", async () => {
    let abandoned = false;
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        yield* bytesOf("a", "b");
      } finally {
        abandoned = true;
      }
    }
    let taken = 0;
    const refuse = () => {
      taken += 1;
      throw new Error("refused");
    };
    await rejects(consume(body(), refuse), "refused");
    assert.ok(abandoned);
    await rejects(consume(Readable.from(bytesOf("a", "b")), refuse), "refused");
    await turnEnd();
    assert.equal(taken, 2);
  });
});
