// A soak: the gateway as a process of its own, real sockets, and providers of which a part of the
// streams breaks anywhere. Each client has the exact text or an error, never both, and no byte is
// missing or doubled. It takes two seconds, 20 where LONG_TESTS is set, or RECOVERY_SOAK_S seconds:
//
//   RECOVERY_SOAK_S=600 node --import tsx --test test/extensions/routing/recovery/soak.test.ts

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { answerTo, startBroken } from "../../../support/broken-streams.ts";
import { folder } from "../../../support/folder.ts";
import { KEY } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import { launch, quickest, runToEnd } from "../../../support/program.ts";
import { createRandom } from "../../../support/random.ts";
import { PATIENCE_MS, within } from "../../../support/wait.ts";

const SECONDS = Math.min(3_600, Number(process.env["RECOVERY_SOAK_S"] ?? (LONG ? 20 : 2)));
const SHARE_BROKEN = 0.05;
const CLIENTS = 24;
const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);

const continuing = (prefill: string) => ({ provider: "lab", prefill, recovery: "continue" });
const configOf = (url: string) => ({
  server: { port: 0 },
  admin: { port: 0 },
  data_dir: "data",
  providers: { lab: { dialect: "openai", base_url: url } },
  models: {
    plain: continuing("plain"),
    prefix: continuing("prefix"),
    partial: continuing("partial"),
    final: continuing("continue_final_message"),
    cannot: continuing("none"),
    held: { provider: "lab", recovery: "hold" },
    as_ever: { provider: "lab" },
  },
  aliases: { "auto/two": { models: ["as_ever", "plain", "prefix"], recovery: "continue" } },
  keys: [{ account: "acme", key: KEY }],
  limits: { rpm: null },
  retry: { max_retries: 1, backoff_ms: 1 },
  breaker: { failures: 100_000 },
  timeouts: { connect_ms: 5_000, first_token_ms: 2_000, idle_ms: 1_000, total_ms: 60_000 },
});

const MODELS = [...Object.keys(configOf("").models), "auto/two"];

interface Seen {
  readonly text: string;
  readonly isDone: boolean;
  readonly error: unknown;
  readonly joints: number;
}

interface Chunk {
  readonly id: string;
  readonly created: number;
  readonly usage?: object | null;
  readonly choices: readonly {
    readonly delta: { readonly content?: string; readonly role?: string };
    readonly finish_reason: string | null;
  }[];
}

/** An answer, as the bytes have it. Throws where its form is wrong. */
function seenIn(bytes: string): Seen {
  const blocks = bytes.split("\n\n");
  assert.equal(blocks.pop(), "", "the stream ends with a blank line");
  const data = blocks.filter((block) => !block.startsWith(":")).map((block) => block.slice(6));
  const isDone = data.at(-1) === "[DONE]";
  const events = (isDone ? data.slice(0, -1) : data).map((json) => JSON.parse(json));
  const errors = events.filter((event) => event.error);
  assert.ok(errors.length === 0 || (errors.length === 1 && events.at(-1) === errors[0]));
  const chunks: Chunk[] = events.filter((event) => !event.error);
  const choices = chunks.flatMap((each) => each.choices);
  const once = isDone ? 1 : 0;
  assert.equal(choices.filter(({ finish_reason }) => finish_reason !== null).length, once);
  assert.equal(chunks.filter(({ usage }) => usage).length, once);
  const ids = new Set(chunks.map(({ id, created }) => `${id} ${created}`));
  assert.ok(ids.size <= 1, "one id");
  assert.equal(choices.filter(({ delta }) => "role" in delta).length, ids.size, "one role");
  return {
    text: choices.map(({ delta }) => delta.content ?? "").join(""),
    isDone,
    error: errors[0]?.error,
    joints: blocks.filter((block) => block === ": recovered").length,
  };
}

it(`no byte is missing or doubled: ${SECONDS} s, seed ${seed}`, async (t) => {
  const random = createRandom(seed);
  const dir = folder();
  const provider = await startBroken(t, random, SHARE_BROKEN);
  writeFileSync(join(dir, "gateway.json"), JSON.stringify(configOf(provider.url)));
  const program = quickest(dir);
  const gateway = launch(program, ["serve"]);
  t.after(() => gateway.child.kill("SIGKILL"));
  const url = await within(gateway.address, "the gateway's address");
  const outcomes: Record<string, number> = {};
  let questions = 0;

  async function ask(): Promise<void> {
    questions += 1;
    const question = `${seed}-${questions}`;
    const model = random.pick(MODELS);
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({
        model,
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: "user", content: question }],
      }),
    });
    const outcome = judge(question, model, response.status, await response.text());
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }

  function judge(question: string, model: string, status: number, bytes: string): string {
    const whole = answerTo(question);
    const where = `${model} ${question}: ${bytes.slice(-2_000)}`;
    if (status !== 200) {
      assert.equal(typeof JSON.parse(bytes).error.code, "string", where);
      return `status ${status}`;
    }
    const { text, isDone, error, joints } = seenIn(bytes);
    assert.notEqual(isDone, error !== undefined, `both or neither: ${where}`);
    if (isDone) assert.equal(text, whole, where);
    else assert.ok(whole.startsWith(text), where);
    return `${isDone ? "whole" : "error"}${joints > 0 ? ", joined" : ""}`;
  }

  const end = performance.now() + SECONDS * 1_000;
  const isOver = (): boolean => {
    const late = performance.now() - end;
    return late > (outcomes["whole"] === undefined ? PATIENCE_MS : 0);
  };
  const client = async (): Promise<void> => {
    while (!isOver()) await ask();
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  gateway.child.kill("SIGTERM");
  const { code, stderr } = await within(gateway.ended, "the gateway's end");
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /internal_error/);
  const audit = await runToEnd(program, ["audit"]);
  assert.equal(audit.code, 0, audit.stdout + audit.stderr);
  const figures = { questions, outcomes, broken: provider.broken, streams: provider.streams };
  t.diagnostic(JSON.stringify(figures));
  assert.ok(outcomes["whole"]! > 0);
  if (SECONDS >= 30) assert.ok(outcomes["whole, joined"]! > 0, JSON.stringify(outcomes));
});
