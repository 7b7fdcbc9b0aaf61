// The spend log: a line before a provider is called and one before the reply's last byte leaves,
// what they say of every way in which a request can end, and the segments in which they stand.

import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import { describe, it } from "node:test";
import type { Fetch } from "../../../src/core/upstream/fetch.ts";
import { createPooledClient } from "../../../src/extensions/pooled-client/client.ts";
import {
  costOf,
  COUNTED,
  entries,
  linesOf,
  NO_USAGE,
  only,
  PRICE,
  priced,
  segmentPath,
  segments,
  settled,
  spendLines,
  usageRecords,
  type Line,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import {
  configFor,
  demo,
  KEY,
  merge,
  readStream,
  startGateway,
  user,
} from "../../support/gateway.ts";
import {
  chunk,
  completion,
  event,
  held,
  reset,
  silent,
  speak,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../support/provider.ts";
import { waitFor, within } from "../../support/wait.ts";

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const OPEN = [
  "type",
  "spend_id",
  "time",
  "gateway_request_id",
  "account",
  "key_id",
  "model_requested",
  "stream",
];
const SETTLE = [
  "type",
  "spend_id",
  "time",
  "gateway_request_id",
  "account",
  "key_id",
  "model_requested",
  "model_served",
  "provider",
  "status",
  "http_status",
  "error_code",
  "finish_reason",
  "attempts",
  "usage",
  "usage_source",
  "cost",
  "currency",
  "first_token_ms",
  "duration_ms",
  "prices",
];

const fail = (code: number): Behaviour => status(code, { error: { message: "no" } });
const part = (text: string) => chunk({ content: text });
const outcomes = (settle: Line) =>
  settle["attempts"].map(({ model, provider, outcome }: Line) => [model, provider, outcome]);

/** Reads an answer; what is in the spend log at the moment at which its end is here. */
async function linesAtTheEnd(response: Response, ending: string, dir: string): Promise<Line[]> {
  let text = "";
  let lines: Line[] = [];
  const decoder = new TextDecoder();
  for await (const piece of response.body!) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.includes(ending) && lines.length === 0) lines = spendLines(dir);
  }
  return lines;
}

describe("the two lines of a request", () => {
  for (const streaming of [false, true]) {
    it(`opened before the provider is called, settled before the last byte${streaming ? ", streaming" : ""}`, async (t) => {
      let before: Line[] = [];
      const client = createPooledClient();
      t.after(() => client.close());
      const calling: Fetch = (...call) => {
        before = spendLines(dir); // nothing has gone to the provider yet, not even a connection
        return client.send(...call);
      };
      const { dir, gw } = await priced(
        t,
        { m: speak("Once upon a time.") },
        {},
        { fetch: calling },
      );
      const response = await gw.chat(
        { model: "m", stream: streaming, messages: user("hi") },
        { "x-request-id": 'mine, "1"' },
      );
      const ending = streaming ? "data: [DONE]\n\n" : '"total_tokens":27';
      const [open, settle] = (await linesAtTheEnd(response, ending, dir)) as [Line, Line];
      assert.deepEqual(before, [open], "the open line was there, and nothing else");
      assert.deepEqual([Object.keys(open), Object.keys(settle)], [OPEN, SETTLE]);
      const { key_id } = await gw.accessOf('mine, "1"');
      const about = {
        gateway_request_id: 'mine, "1"',
        account: "acme",
        key_id,
        model_requested: "m",
      };
      const { spend_id, time } = open;
      assert.match(spend_id, /^sp_[0-9a-f]{32}$/);
      assert.match(String(key_id), /^key_[0-9a-f]{16}$/);
      for (const each of [open, settle]) assert.match(each["time"], TIME);
      assert.deepEqual(open, { type: "open", spend_id, time, ...about, stream: streaming });
      const { time: ended, attempts, first_token_ms, duration_ms } = settle;
      assert.deepEqual(settle, {
        type: "settle",
        spend_id,
        time: ended,
        ...about,
        model_served: "m",
        provider: "lab",
        status: "completed",
        http_status: 200,
        error_code: null,
        finish_reason: "stop",
        attempts,
        usage: COUNTED,
        usage_source: "provider",
        cost: costOf(COUNTED, PRICE),
        currency: "USD",
        first_token_ms,
        duration_ms,
        prices: PRICE,
      });
      assert.deepEqual(Object.keys(settle["usage"]), Object.keys(COUNTED));
      assert.deepEqual(attempts.map(Object.keys), [
        ["model", "provider", "outcome", "duration_ms"],
      ]);
      assert.deepEqual(outcomes(settle), [["m", "lab", "completed"]]);
      for (const ms of [first_token_ms, duration_ms, attempts[0].duration_ms])
        assert.ok(Number.isInteger(ms) && ms >= 0, `${ms} ms`);
      assert.equal(Date.parse(ended) - Date.parse(time), duration_ms);
    });
  }

  it("the segment is for its owner only, and has its day's name", async (t) => {
    const { dir, ask } = await priced(
      t,
      { m: speak("Hi.") },
      {},
      { now: () => Date.parse("2031-02-03T23:59:59.500Z") },
    );
    await ask();
    assert.deepEqual(segments(dir), ["2031-02-03.0001.jsonl"]);
    assert.equal(statSync(segmentPath(dir)).mode & 0o777, 0o600);
    assert.equal(only(dir).settle["time"], "2031-02-03T23:59:59.500Z");
  });
});

describe("how a request ended", { concurrency: 4 }, () => {
  const SHORT = { timeouts: { first_token_ms: 60 } };
  const half: Behaviour = ({ res, socket }) => {
    res.writeHead(200, { "content-type": "application/json", "content-length": "999" });
    res.write('{"choices":[{', () => socket.resetAndDestroy());
  };
  const tool = {
    tool_calls: [
      { index: 0, id: "c1", type: "function", function: { name: "f", arguments: "{}" } },
    ],
  };

  /**
   * Before any output: what the client gets is in the books, nothing was used, and nothing is owed.
   */
  const FAILED: [name: string, behaviour: Behaviour, http: number, code: string, over?: object][] =
    [
      ["a provider's 500", fail(500), 503, "upstream_error"],
      ["a provider's 400", fail(400), 400, "upstream_rejected"],
      ["a provider's 401", fail(401), 503, "model_unavailable"],
      ["a provider's 429", fail(429), 503, "model_overloaded"],
      ["a reset", reset, 503, "upstream_error"],
      ["a whole reply that is cut", half, 503, "upstream_error"],
      [
        "a provider that gave up",
        status(200, completion({ content: "x" }, "insufficient_system_resource")),
        503,
        "upstream_error",
      ],
      [
        "an error inside a stream, before output",
        stream([{ error: { message: "no" } }]),
        503,
        "upstream_error",
      ],
      [
        "usage, but no output, and a cut",
        stream(
          [chunk({ content: "" }, null, { usage: { prompt_tokens: 20, completion_tokens: 0 } })],
          "cut",
        ),
        503,
        "upstream_error",
      ],
      ["silence", silent, 503, "upstream_timeout", SHORT],
      [
        "silence until the request's time is up",
        silent,
        503,
        "upstream_timeout",
        { timeouts: { total_ms: 60 } },
      ],
    ];
  for (const [name, behaviour, http, code, over = {}] of FAILED) {
    for (const streaming of [false, true]) {
      it(`${name}${streaming ? ", streaming" : ""}: failed, ${http} ${code}, and costs nothing`, async (t) => {
        const { dir, ask } = await priced(t, { m: behaviour }, over);
        const answer = await ask({ stream: streaming });
        const { open, settle } = only(dir);
        assert.equal(answer.status, http);
        assert.equal(open["gateway_request_id"], answer.id);
        assert.deepEqual(
          [
            settle["status"],
            settle["http_status"],
            settle["error_code"],
            settle["finish_reason"],
            settle["usage_source"],
            settle["cost"],
            settle["first_token_ms"],
            settle["model_served"],
            settle["provider"],
          ],
          ["failed", http, code, null, "none", "0", null, null, null],
        );
        assert.deepEqual(settle["usage"], NO_USAGE);
        assert.deepEqual(outcomes(settle), [["m", "lab", code]]);
      });
    }
  }

  it("a breaker that is open: failed, without an attempt", async (t) => {
    const { dir, ask, provider } = await priced(t, { m: fail(401) });
    await ask();
    assert.equal((await ask()).status, 503);
    assert.equal(provider.asked.length, 1);
    const { settle } = entries(dir)[1]!;
    assert.deepEqual(
      [settle["status"], settle["error_code"], settle["attempts"], settle["cost"]],
      ["failed", "model_unavailable", [], "0"],
    );
  });

  const CUT: [name: string, behaviour: Behaviour, code: string][] = [
    ["the provider", stream([part("Once"), part(" upon a time")], "cut"), "upstream_error"],
    [
      "the provider's end without a finish_reason",
      stream([part("Once"), part(" upon a time")], "eof"),
      "upstream_error",
    ],
    [
      "[DONE] without a finish_reason",
      stream([part("Once"), part(" upon a time")]),
      "upstream_error",
    ],
    [
      "an error of the provider's",
      stream([part("Once"), part(" upon a time"), { error: { message: "no" } }]),
      "upstream_error",
    ],
    ["silence", stream([part("Once"), part(" upon a time")], "open"), "upstream_timeout"],
    [
      "the provider, after hidden thinking and before a word",
      stream([chunk({ reasoning_content: "Once upon a time" })], "cut"),
      "upstream_error",
    ],
  ];
  for (const [name, behaviour, code] of CUT) {
    it(`a stream cut by ${name}: failed, with an estimate of what was generated`, async (t) => {
      const { dir, ask } = await priced(
        t,
        { m: behaviour },
        code === "upstream_timeout" ? { timeouts: { idle_ms: 60 } } : {},
      );
      const answer = await ask({ stream: true });
      const { settle } = only(dir);
      assert.deepEqual(
        [
          settle["status"],
          settle["http_status"],
          settle["error_code"],
          settle["finish_reason"],
          settle["usage_source"],
        ],
        ["failed", answer.status, code, null, "estimated"],
      );
      assert.equal(
        answer.status,
        name.includes("hidden") ? 503 : 200,
        "status 200 is sent with the first word",
      );
      assert.deepEqual(outcomes(settle), [["m", "lab", code]]);
      assert.equal(settle["model_served"], "m");
      const { usage, cost } = settle;
      assert.equal(usage.completion_tokens, 4, "16 bytes");
      assert.ok(usage.prompt_tokens > 0);
      assert.equal(cost, costOf(usage, PRICE));
    });
  }

  it("a stream that calls a tool: completed, tool_calls", async (t) => {
    const { dir, ask } = await priced(t, { m: stream([chunk(tool), chunk({}, "stop")]) });
    await ask({
      stream: true,
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: "auto",
    });
    const { settle } = only(dir);
    assert.deepEqual(
      [settle["status"], settle["finish_reason"], settle["usage_source"]],
      ["completed", "tool_calls", "estimated"],
    );
    assert.ok(settle["usage"].completion_tokens > 0);
  });

  it("a gateway that stops: what was on its way is failed, and the log is complete", async (t) => {
    const { dir, gw } = await priced(t, { a: stream([part("Once upon")], "open"), b: silent });
    const cut = await gw.chat({ model: "a", stream: true, messages: user("hi") });
    const none = gw.chat({ model: "b", messages: user("hi") });
    await waitFor(() => spendLines(dir).length === 2, "both open lines");
    await within(gw.gateway.close(0), "the gateway to close");
    assert.deepEqual(
      [(await readStream(cut)).error?.code, (await none).status],
      ["server_overloaded", 503],
    );
    const found = entries(dir)
      .map(({ settle }) => settle)
      .sort((a, b) => (a["model_requested"] < b["model_requested"] ? -1 : 1));
    assert.deepEqual(
      found.map((each) => [
        each["status"],
        each["http_status"],
        each["error_code"],
        each["usage_source"],
      ]),
      [
        ["failed", 200, "server_overloaded", "estimated"],
        ["failed", 503, "server_overloaded", "none"],
      ],
    );
    assert.deepEqual(readdirSync(`${dir}/spend`), segments(dir), "no socket is left");
  });
});

describe("a client that leaves", { concurrency: 4 }, () => {
  /** Asks, reads until `words` pieces of text are there, and leaves. */
  async function leave(
    { url }: { url: string },
    words: number,
    streaming: boolean,
    asked: Promise<unknown>,
  ): Promise<void> {
    const gone = new AbortController();
    const body = JSON.stringify({
      model: "m",
      stream: streaming,
      messages: user("Tell me a story."),
    });
    const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
    const response = fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body,
      signal: gone.signal,
    });
    response.catch(() => undefined);
    await asked;
    let text = "";
    const decoder = new TextDecoder();
    const enough = () => text.split(/"content":"[^"]/).length > words;
    if (words > 0) {
      for await (const piece of (await response).body!) {
        text += decoder.decode(piece as Uint8Array);
        if (enough()) break; // which also leaves
      }
    }
    gone.abort();
  }

  const story = (words: number): Behaviour =>
    stream(
      Array.from({ length: words }, (_, at) => part(`word${at} `)),
      "open",
    );
  const LEFT: [
    name: string,
    behaviour: Behaviour,
    words: number,
    streaming: boolean,
    completion: number,
    source: string,
  ][] = [
    ["before an answer", silent, 0, false, 0, "estimated"],
    ["before an answer, streaming", silent, 0, true, 0, "estimated"],
    [
      "after the provider's headers",
      ({ res }) => {
        res.writeHead(200, { "content-type": "application/json" });
        res.write('{"choices":');
      },
      0,
      false,
      0,
      "estimated",
    ],
    [
      "after a role without text",
      stream([chunk({ role: "assistant", content: "" })], "open"),
      0,
      true,
      0,
      "estimated",
    ],
    ["after one word", story(1), 1, true, 2, "estimated"],
    ["after 40 words", story(40), 40, true, 68, "estimated"],
    [
      "after one word, of which the provider gave the usage",
      stream(
        [chunk({ content: "word" }, null, { usage: { prompt_tokens: 9, completion_tokens: 5 } })],
        "open",
      ),
      1,
      true,
      5,
      "provider",
    ],
    [
      "after words that came after a figure",
      stream(
        [
          chunk({ content: "word" }, null, { usage: { prompt_tokens: 9, completion_tokens: 1 } }),
          part("wordwordword"),
        ],
        "open",
      ),
      2,
      true,
      4,
      "estimated",
    ],
    [
      "after words, the first of which had a usage without them",
      stream(
        [
          chunk({ role: "assistant" }, null, { usage: { prompt_tokens: 9, completion_tokens: 0 } }),
          part("wordword"),
        ],
        "open",
      ),
      1,
      true,
      2,
      "estimated",
    ],
  ];
  for (const [name, behaviour, words, streaming, completionTokens, source] of LEFT) {
    it(`${name}: cancelled once, with ${completionTokens} tokens (${source})`, async (t) => {
      const { dir, gw, provider } = await priced(t, { m: behaviour });
      await within(leave(gw, words, streaming, provider.nth(0)), "the client to leave");
      await settled(dir);
      await within(gw.gateway.close(0), "the gateway to close"); // whatever else it would have written is written now
      const { settle } = only(dir);
      assert.deepEqual(
        [
          settle["status"],
          settle["http_status"],
          settle["error_code"],
          settle["finish_reason"],
          settle["usage_source"],
        ],
        ["cancelled", 499, null, null, source],
      );
      assert.deepEqual(outcomes(settle), [["m", "lab", "cancelled"]]);
      const { usage, cost } = settle;
      assert.equal(usage.completion_tokens, completionTokens);
      assert.ok(usage.prompt_tokens > 0);
      assert.equal(cost, costOf(usage, PRICE));
      assert.notEqual(cost, "0");
      await waitFor(() => provider.asked[0]!.closed(), "the provider's connection to close");
    });
  }

  it("before the first delta, but after a figure of the provider's: that figure", async (t) => {
    let written = () => {};
    const sent = new Promise<void>((resolve) => (written = resolve));
    const figures = event(
      chunk({ role: "assistant" }, null, { usage: { prompt_tokens: 500, completion_tokens: 0 } }),
    );
    const behaviour: Behaviour = ({ res }) => {
      res.writeHead(200, { "content-type": "text/event-stream" }).write(figures, () => written());
    };
    const { dir, gw } = await priced(t, { m: behaviour }, { server: { keep_alive_ms: 20 } });
    const response = await gw.chat({ model: "m", stream: true, messages: user("hi") }); // with a first comment
    await sent;
    const reader = response.body!.getReader();
    for (let comments = 0; comments < 3; comments += 1) await within(reader.read(), "a comment");
    await reader.cancel();
    const [settle] = await settled(dir);
    assert.deepEqual(
      [
        settle!["status"],
        settle!["model_served"],
        settle!["usage_source"],
        settle!["usage"].total_tokens,
      ],
      ["cancelled", "m", "provider", 500],
    );
    assert.equal(settle!["cost"], costOf(settle!["usage"], PRICE));
  });

  it("while a second attempt waits for its turn: cancelled, nothing owed", async (t) => {
    const { dir, gw, provider } = await priced(
      t,
      { m: fail(500) },
      { retry: { max_retries: 1, backoff_ms: 3_000 } },
    );
    await leave(
      gw,
      0,
      false,
      waitFor(
        () => gw.diagnostics.find((line) => line["event"] === "attempt_failed"),
        "the first attempt to fail",
      ),
    );
    const [settle] = await settled(dir);
    assert.deepEqual(
      [settle!["status"], settle!["cost"], outcomes(settle!), provider.asked.length],
      ["cancelled", "0", [["m", "lab", "upstream_error"]], 1],
    );
  });
});

describe("segments", { concurrency: 4 }, () => {
  it("by size: a full one is followed by another; both lines of a request stand in the same", async (t) => {
    const { behaviour, finish } = held();
    const { dir, gw, ask } = await priced(
      t,
      { m: speak("Hi."), slow: behaviour },
      { spend: { segment_bytes: 1_024 } },
    );
    const slow = await gw.chat({ model: "slow", stream: true, messages: user("hi") });
    for (let i = 0; i < 3; i += 1) await ask();
    await waitFor(() => segments(dir).length === 2, "the second segment");
    for (let i = 0; i < 3; i += 1) await ask();
    finish();
    assert.ok((await readStream(slow)).done);
    assert.equal(entries(dir).length, 7); // which looks into each segment by itself
    const models = linesOf(segmentPath(dir)).map((line) => line["model_requested"]);
    assert.deepEqual(
      [models[0], models.at(-1)],
      ["slow", "slow"],
      "opened first and settled last in the first segment",
    );
    const later = segments(dir).slice(1);
    const lines = later.flatMap((name) => linesOf(segmentPath(dir, name)));
    assert.ok(lines.length >= 6, "what was asked after the first segment was full");
    await waitFor(
      () => !existsSync(segmentPath(dir).replace("jsonl", "sock")),
      "the first segment to be let go",
    );
  });

  it("by day: a new day has its own, what was opened before it is settled before it", async (t) => {
    const clock = { now: Date.parse("2031-12-31T23:59:59.900Z") };
    const { behaviour, finish } = held();
    const { dir, gw, ask } = await priced(
      t,
      { m: speak("Hi."), slow: behaviour },
      {},
      { now: () => clock.now },
    );
    const slow = await gw.chat({ model: "slow", stream: true, messages: user("hi") });
    clock.now += 1_000;
    await waitFor(() => segments(dir).length === 2, "the new day's segment");
    await ask();
    finish();
    await slow.text();
    assert.deepEqual(segments(dir), ["2031-12-31.0001.jsonl", "2032-01-01.0001.jsonl"]);
    assert.deepEqual(
      entries(dir).map(({ settle }) => [settle["model_served"], settle["time"]]),
      [
        ["slow", "2032-01-01T00:00:00.900Z"],
        ["m", "2032-01-01T00:00:00.900Z"],
      ],
    );
  });

  it("a gateway that starts anew begins another segment, and leaves no empty one", async (t) => {
    const dir = folder();
    const provider = await startProvider(t, { m: speak("Hi.") });
    for (let i = 0; i < 3; i += 1) {
      const gw = await startGateway(t, configFor(provider.url, ["m"], { data_dir: dir }));
      if (i !== 1) await (await gw.chat({ model: "m", messages: user("hi") })).text();
      await gw.gateway.close(0);
    }
    assert.deepEqual(
      segments(dir).map((name) => name.slice(10)),
      [".0001.jsonl", ".0002.jsonl"],
    );
    assert.equal(entries(dir).length, 2);
  });
});

describe("many at once", () => {
  it("200 parallel requests: every line is whole, every request is there once", async (t) => {
    const { dir, ask } = await priced(t, { m: speak("Once upon a time."), bad: fail(500) });
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        ask({
          model: at % 5 === 0 ? "bad" : "m",
          stream: at % 2 === 0,
          messages: user("x".repeat(at * 10)),
        }),
      ),
    );
    const found = new Map(entries(dir).map((each) => [each.settle["gateway_request_id"], each]));
    assert.equal(found.size, 200);
    assert.equal(new Set([...found.values()].map(({ open }) => open["spend_id"])).size, 200);
    for (const [at, { id, status }] of answers.entries()) {
      const { open, settle } = found.get(id)!;
      assert.deepEqual(
        [open["stream"], settle["http_status"], settle["cost"]],
        [at % 2 === 0, status, at % 5 === 0 ? "0" : costOf(COUNTED, PRICE)],
      );
    }
  });

  it("300 requests with one X-Request-Id from two accounts: 300 records, each with its own account", async (t) => {
    const dir = folder();
    const keys = [
      { account: "one", key: "sk-1" },
      { account: "two", key: "sk-2" },
    ];
    const gw = await startGateway(t, merge(demo({ data_dir: dir }), { keys }) as object);
    const asking = async (at: number) => {
      const [key, model] = at % 3 === 0 ? ["sk-1", "demo-chat"] : ["sk-2", "demo-reasoner"];
      const response = await gw.chat(
        { model, messages: user("hi") },
        { authorization: `Bearer ${key}`, "x-request-id": "the same" },
      );
      assert.deepEqual([response.status, response.headers.get("x-request-id")], [200, "the same"]);
      await response.text();
    };
    for (let at = 0; at < 300; at += 50)
      await Promise.all(Array.from({ length: 50 }, (_, each) => asking(at + each)));
    const found = entries(dir);
    const of = (account: string) => found.filter(({ settle }) => settle["account"] === account);
    assert.deepEqual([found.length, of("one").length, of("two").length], [300, 100, 200]);
    assert.ok(
      of("one").every(
        ({ open, settle }) => open["account"] === "one" && settle["model_served"] === "demo-chat",
      ),
      "each key asked for its own model",
    );
    assert.ok(found.every(({ settle }) => settle["gateway_request_id"] === "the same"));
    assert.equal(new Set(found.map(({ settle }) => settle["spend_id"])).size, 300);
    await gw.gateway.close(0);
    assert.deepEqual(
      usageRecords(dir)
        .map(({ usage_id, account }) => [usage_id, account])
        .sort(),
      found.map(({ settle }) => [settle["spend_id"], settle["account"]]).sort(),
    );
  });
});
