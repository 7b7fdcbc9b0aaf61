// Which parts of a client's own Messages request pass to the provider by default, and which only if
// the operator lists them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Traits } from "../../../../src/core/providers/traits.ts";
import { pathText } from "../../../../src/core/schema/checker.ts";
import {
  allowedParts,
  firstUnlisted,
} from "../../../../src/extensions/providers/native-requests/index.ts";

type Json = Record<string, any>;

const said = (role: string, ...content: Json[]): Json => ({ messages: [{ role, content }] });
const inUser = (...content: Json[]) => said("user", ...content);
const inAssistant = (...content: Json[]) => said("assistant", ...content);
const file = { type: "file", file_id: "file_1" };
const IMAGE = { type: "image", source: file };
const DOCUMENT = { type: "document", source: file };
const tool = (type: string) => ({ type });
const EDITS = "context_management.edits";
const editing = (...types: string[]) => ({ context_management: { edits: types.map(tool) } });

const FIRST = "messages[0].content[0]";

/** What is rejected, its path, and the word that allows it. */
const UNLISTED: readonly (readonly [body: Json, param: string, word: string])[] = [
  [{ speed: "fast" }, "speed", "speed"],
  [{ inference_geo: "us" }, "inference_geo", "inference_geo"],
  [{ fallbacks: [{ model: "x" }] }, "fallbacks", "fallbacks"],
  [{ billing_policy: { bill_to: "user_profile" } }, "billing_policy", "billing_policy"],
  [{ container: "container_1" }, "container", "container"],
  [{ mcp_servers: [{ type: "url", url: "https://x.example" }] }, "mcp_servers", "mcp_servers"],
  [{ thread: { type: "continue", previous_message_id: "msg_1" } }, "thread", "thread"],
  [{ compaction: { type: "summarize" } }, "compaction", "compact"],
  [{ safeguards: [tool("dangerous_tool_use")] }, "safeguards", "safeguards"],
  [{ turbo: 1 }, "turbo", "turbo"],
  [{ tools: [{ name: "f" }, tool("web_search_20260318")] }, "tools[1].type", "web_search"],
  [{ tools: [tool("web_fetch_20250910")] }, "tools[0].type", "web_fetch"],
  [{ tools: [tool("code_execution_20260521")] }, "tools[0].type", "code_execution"],
  [{ tools: [tool("tool_search_tool_regex")] }, "tools[0].type", "tool_search"],
  [{ tools: [tool("advisor_20260301")] }, "tools[0].type", "advisor"],
  [{ tools: [tool("mcp_toolset")] }, "tools[0].type", "mcp_servers"],
  [editing("clear_thinking_20251015", "compact_20260112"), `${EDITS}[1].type`, "compact"],
  [inUser(IMAGE), `${FIRST}.source`, "files"],
  [inUser({ type: "tool_result", content: [DOCUMENT] }), `${FIRST}.content[0].source`, "files"],
  [
    inUser({ type: "document", source: { type: "content", content: [IMAGE] } }),
    `${FIRST}.source.content[0].source`,
    "files",
  ],
  [{ system: [DOCUMENT] }, "system[0].source", "files"],
  [inUser({ type: "container_upload", file_id: "file_1" }), `${FIRST}.type`, "container"],
  [inAssistant({ type: "server_tool_use", name: "web_search" }), `${FIRST}.type`, "web_search"],
  [inAssistant({ type: "bash_code_execution_tool_result" }), `${FIRST}.type`, "code_execution"],
  [inAssistant({ type: "mcp_tool_result" }), `${FIRST}.type`, "mcp_servers"],
  [said("system", { type: "tool_addition" }), `${FIRST}.type`, "tool_addition"],
];

/** The path of the first part that may not pass, and the message about it. */
function refused(body: Json, passes: readonly string[] = []) {
  const { path, message } = firstUnlisted(body, passes)!;
  return { param: pathText(path), message };
}
const assertPasses = (body: Json, passes: readonly string[]) =>
  assert.equal(firstUnlisted(body, passes), undefined);

/** The traits of the vendor's own address. */
const OWN = { passes: [], omit: [] };
/** The traits of a cloud. */
const CLOUD = { passes: [], omit: ["vendor_betas"] } as const;

/** What remains of a body at a provider with these traits. */
const bodyAt = (traits: Pick<Traits, "omit" | "passes">, body: Json) =>
  allowedParts({ dialect: "anthropic", body, headers: {} }, traits).body;

describe("a request", () => {
  it("passes with what neither raises the price nor acts or is stored at the provider", () => {
    const use = { type: "tool_use", name: "f", input: { type: "web_search", source: file } };
    const body = {
      model: "m",
      max_tokens: 1,
      stream: true,
      temperature: 1,
      top_k: 2,
      stop_sequences: ["x"],
      metadata: { user_id: "u" },
      cache_control: { type: "ephemeral", ttl: "1h" },
      thinking: { type: "adaptive" },
      output_config: { effort: "low" },
      ...editing("clear_tool_uses_20250919"),
      system: [{ type: "text", text: "x" }],
      tools: [
        { name: "f", input_schema: {} },
        ...["custom", "bash_20250124", "text_editor_20250728", "computer_20251124"].map(tool),
        { type: "memory_20250818", name: "memory" },
      ],
      tool_choice: { type: "auto" },
      messages: [
        { role: "user", content: "Hi" },
        ...inAssistant(
          { type: "thinking", thinking: "Hm.", signature: "x" },
          { type: "redacted_thinking", data: "x" },
          { type: "text", text: "So.", citations: [{ type: "char_location" }] },
          use,
        )["messages"],
        ...inUser(
          { type: "tool_result", content: [{ type: "tool_reference" }, { type: "browser_state" }] },
          { type: "image", source: { type: "url", url: "https://x.example/i.png" } },
          { type: "document", source: { type: "base64" }, citations: { enabled: true } },
          { type: "search_result", source: "https://x.example", content: [{ type: "text" }] },
        )["messages"],
      ],
    };
    assertPasses(body, []);
    assert.deepEqual(bodyAt(OWN, body), body);
  });

  for (const [body, param, word] of UNLISTED) {
    it(`is rejected with ${JSON.stringify(body)}, with its path and the word that allows it`, () => {
      const error = refused(body, ["speech"]);
      assert.equal(error.param, param);
      assert.ok(error.message.includes(`'passes' with "${word}"`), error.message);
      assertPasses(body, [word]);
    });
  }

  it("is rejected with a stored file even in the result of a listed tool", () => {
    const fetched = { type: "web_fetch_result", content: DOCUMENT };
    const body = inAssistant({ type: "web_fetch_tool_result", content: fetched });
    assert.equal(refused(body, ["web_fetch"]).param, `${FIRST}.content.content.source`);
    assertPasses(body, ["web_fetch", "files"]);
  });

  it("loses empty fields, and fields that do not change the reply", () => {
    const body = {
      model: "m",
      service_tier: "auto",
      diagnostics: { previous_message_id: "msg_1" },
      fallback_credit_token: "x",
      speed: null,
      container: null,
      mcp_servers: [],
    };
    assertPasses(body, []);
    assert.deepEqual(bodyAt(OWN, body), { model: "m" });
    const listed = { ...OWN, passes: ["service_tier", "speed"] };
    assert.deepEqual(bodyAt(listed, body), { model: "m", service_tier: "auto" });
    const usual = { model: "m", speed: "standard" };
    assertPasses(usual, []);
    assert.deepEqual([bodyAt(OWN, usual), bodyAt(listed, usual)], [{ model: "m" }, usual]);
  });
});

it("loses the fields of a beta that clouds do not know, in system texts, tools, messages and settings", () => {
  const plain = { cache_control: { type: "ephemeral", ttl: "1h" } };
  const scoped = { cache_control: { ...plain.cache_control, scope: "global" } };
  const found = { type: "tool_reference", tool_name: "f" };
  const words = { type: "text", text: "The tool f can be called now." };
  const bodyOf = (marks: object, tool: object, part: object, [budget, turn]: object[] = []) => ({
    ...marks,
    output_config: { effort: "high", ...budget },
    system: [{ type: "text", text: "s", ...marks }],
    tools: [{ name: "f", ...marks, ...tool }],
    messages: [
      { role: "user", content: [{ type: "text", text: "hi", ...marks }] },
      { role: "assistant", content: "Hi." },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [part] }] },
      { role: "system", content: "Hurry.", ...turn },
    ],
  });
  const configs = [{ task_budget: { tokens: 1 } }, { output_config: { effort: "low" } }];
  const body = bodyOf(scoped, { defer_loading: true }, found, configs);
  assert.deepEqual(bodyAt(OWN, body), body);
  assert.deepEqual(bodyAt(CLOUD, body), bodyOf(plain, {}, words));
});

const VERSION = { "anthropic-version": "2023-06-01" };
const PROFILE = { "anthropic-user-profile-id": "profile_1" };
const sent = (betas: string) => ({ ...VERSION, "anthropic-beta": betas, ...PROFILE });
const headersWith = (betas: string, traits: Pick<Traits, "omit" | "passes"> = OWN) =>
  allowedParts({ dialect: "anthropic", body: {}, headers: sent(betas) }, traits).headers;

it("the headers of a request lose the profile, and betas that change the price or need unlisted features", () => {
  const betas =
    "claude-code-20250219, interleaved-thinking-2025-05-14,fast-mode-2026-02-01," +
    "context-1m-2025-08-07,per-turn-control-2026-07-01,mcp-client-2025-11-20,,tomorrow";
  const kept = "claude-code-20250219,interleaved-thinking-2025-05-14,per-turn-control-2026-07-01";
  assert.deepEqual(headersWith(betas), { ...VERSION, "anthropic-beta": kept });
  assert.deepEqual(headersWith("tomorrow"), VERSION);
  // Nor is the client's version known to all models of a cloud.
  const known = { "anthropic-beta": "interleaved-thinking-2025-05-14" };
  assert.deepEqual(headersWith(betas, CLOUD), known, "what every vendor knows");
  // Without these a provider refuses what they stand for in `thinking`.
  const ofThinking = "thinking-binding-controls-2026-08-01,thinking-display-updates-2026-08-18";
  assert.equal(headersWith(ofThinking, CLOUD)["anthropic-beta"], ofThinking);
});

it("the headers of a request keep the listed betas", () => {
  const words =
    "speed context-1m user_profiles advisor billing_policy fallback_credit_token tool_addition " +
    "safeguards";
  const kept =
    "fast-mode-2026-02-01,context-1m-2025-08-07,advisor-tool-2026-03-01," +
    "user-profiles-billing-2026-10-01,inline-tools-2026-09-15,fallback-credit-2026-07-01," +
    "dangerous-tool-use-2026-09-03";
  assert.deepEqual(headersWith(`${kept},x`, { ...OWN, passes: words.split(" ") }), sent(kept));
});
