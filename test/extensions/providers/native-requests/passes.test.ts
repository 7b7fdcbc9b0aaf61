// What of a client's own Messages request passes to the provider by default, and what only where the
// operator lists it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Traits } from "../../../../src/core/providers/traits.ts";
import { ApiError } from "../../../../src/core/openai/errors.ts";
import {
  refuseUnlisted,
  withoutUnlisted,
} from "../../../../src/extensions/providers/native-requests/index.ts";

type Json = Record<string, any>;

const inUser = (...content: Json[]): Json => ({ messages: [{ role: "user", content }] });
const inAssistant = (...content: Json[]): Json => ({ messages: [{ role: "assistant", content }] });
const file = { type: "file", file_id: "file_1" };

const FIRST = "messages[0].content[0]";

/** What is refused, its place, and the word that allows it. */
const UNLISTED: readonly (readonly [body: Json, param: string, word: string])[] = [
  [{ speed: "fast" }, "speed", "speed"],
  [{ inference_geo: "us" }, "inference_geo", "inference_geo"],
  [{ fallbacks: [{ model: "x" }] }, "fallbacks", "fallbacks"],
  [{ billing_policy: { bill_to: "user_profile" } }, "billing_policy", "billing_policy"],
  [{ container: "container_1" }, "container", "container"],
  [{ mcp_servers: [{ type: "url", url: "https://x.example" }] }, "mcp_servers", "mcp_servers"],
  [{ thread: { type: "continue", previous_message_id: "msg_1" } }, "thread", "thread"],
  [{ compaction: { type: "summarize" } }, "compaction", "compact"],
  [{ turbo: 1 }, "turbo", "turbo"],
  [
    { tools: [{ name: "f" }, { type: "web_search_20260318", name: "web_search" }] },
    "tools[1].type",
    "web_search",
  ],
  [{ tools: [{ type: "web_fetch_20250910" }] }, "tools[0].type", "web_fetch"],
  [{ tools: [{ type: "code_execution_20260521" }] }, "tools[0].type", "code_execution"],
  [{ tools: [{ type: "tool_search_tool_regex" }] }, "tools[0].type", "tool_search"],
  [{ tools: [{ type: "advisor_20260301" }] }, "tools[0].type", "advisor"],
  [{ tools: [{ type: "mcp_toolset" }] }, "tools[0].type", "mcp_servers"],
  [{ tools: [{ type: "shell_20300101" }] }, "tools[0].type", "shell"],
  [
    {
      context_management: {
        edits: [{ type: "clear_thinking_20251015" }, { type: "compact_20260112" }],
      },
    },
    "context_management.edits[1].type",
    "compact",
  ],
  [inUser({ type: "image", source: file }), `${FIRST}.source`, "files"],
  [
    inUser({ type: "tool_result", content: [{ type: "document", source: file }] }),
    `${FIRST}.content[0].source`,
    "files",
  ],
  [
    inUser({
      type: "document",
      source: { type: "content", content: [{ type: "image", source: file }] },
    }),
    `${FIRST}.source.content[0].source`,
    "files",
  ],
  [{ system: [{ type: "document", source: file }] }, "system[0].source", "files"],
  [inUser({ type: "container_upload", file_id: "file_1" }), `${FIRST}.type`, "container"],
  [inAssistant({ type: "server_tool_use", name: "web_search" }), `${FIRST}.type`, "web_search"],
  [inAssistant({ type: "bash_code_execution_tool_result" }), `${FIRST}.type`, "code_execution"],
  [inAssistant({ type: "mcp_tool_result" }), `${FIRST}.type`, "mcp_servers"],
  [
    { messages: [{ role: "system", content: [{ type: "tool_addition" }] }] },
    `${FIRST}.type`,
    "tool_addition",
  ],
];

const refused = (body: Json, passes: readonly string[] = []): ApiError | undefined => {
  try {
    refuseUnlisted(body, passes);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ApiError);
    return error;
  }
};

/** Of the vendor's own address. */
const OWN = { passes: [], omit: [] };
/** Of a cloud. */
const CLOUD = { passes: [], omit: ["vendor_betas"] } as const;

describe("a request", () => {
  it("passes with what neither raises the price nor works or is stored at the provider", () => {
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
      context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
      system: [{ type: "text", text: "x" }],
      tools: [
        { name: "f", input_schema: {} },
        ...["custom", "bash_20250124", "text_editor_20250728", "computer_20251124"].map((type) => ({
          type,
        })),
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
          { type: "tool_result", content: [{ type: "tool_reference", tool_name: "g" }] },
          { type: "image", source: { type: "url", url: "https://x.example/i.png" } },
          { type: "document", source: { type: "base64" }, citations: { enabled: true } },
          { type: "search_result", source: "https://x.example", content: [{ type: "text" }] },
        )["messages"],
      ],
    };
    assert.equal(refused(body), undefined);
    assert.deepEqual(withoutUnlisted({ dialect: "anthropic", body, headers: {} }, OWN).body, body);
  });

  for (const [body, param, word] of UNLISTED) {
    it(`is refused with ${JSON.stringify(body)}, at its place and with the word that allows it`, () => {
      const error = refused(body, ["speech"])!;
      assert.deepEqual([error.status, error.code, error.param], [400, "unsupported_value", param]);
      assert.ok(error.message.startsWith(`Invalid '${param}': `), error.message);
      assert.ok(error.message.includes(`'passes' with "${word}"`), error.message);
      assert.equal(refused(body, [word]), undefined);
    });
  }

  it("is refused with a stored file also in the result of a tool that is listed", () => {
    const fetched = { type: "web_fetch_result", content: { type: "document", source: file } };
    const body = inAssistant({ type: "web_fetch_tool_result", content: fetched });
    assert.equal(
      refused(body, ["web_fetch"])?.param,
      "messages[0].content[0].content.content.source",
    );
    assert.equal(refused(body, ["web_fetch", "files"]), undefined);
  });

  it("passes without what is empty, and without what does not change the reply", () => {
    const body = {
      model: "m",
      service_tier: "auto",
      diagnostics: { previous_message_id: "msg_1" },
      fallback_credit_token: "x",
      speed: null,
      container: null,
      mcp_servers: [],
    };
    assert.equal(refused(body), undefined);
    const native = { dialect: "anthropic", body, headers: {} };
    assert.deepEqual(withoutUnlisted(native, OWN).body, { model: "m" });
    assert.deepEqual(withoutUnlisted(native, { ...OWN, passes: ["service_tier", "speed"] }).body, {
      model: "m",
      service_tier: "auto",
    });
  });
});

describe("what belongs to a beta that clouds do not know", () => {
  it("goes with it, in system texts, tools, messages and settings", () => {
    const plain = { cache_control: { type: "ephemeral", ttl: "1h" } };
    const scoped = { cache_control: { ...plain.cache_control, scope: "global" } };
    const bodyOf = (marks: object, extras: object, budget: object) => ({
      ...marks,
      output_config: { effort: "high", ...budget },
      system: [{ type: "text", text: "s", ...marks }],
      tools: [{ name: "f", ...marks, ...extras }],
      messages: [
        { role: "user", content: [{ type: "text", text: "hi", ...marks }] },
        { role: "assistant", content: "Hi." },
      ],
    });
    const body = bodyOf(scoped, { defer_loading: true }, { task_budget: { tokens: 1 } });
    const native = { dialect: "anthropic", headers: {}, body };
    assert.deepEqual(withoutUnlisted(native, OWN).body, body);
    assert.deepEqual(withoutUnlisted(native, CLOUD).body, bodyOf(plain, {}, {}));
  });
});

describe("headers", () => {
  const headersWith = (
    betas: string,
    passes: readonly string[] = [],
    traits: Pick<Traits, "omit"> = OWN,
  ) => {
    const headers = {
      "anthropic-version": "2023-06-01",
      "anthropic-beta": betas,
      "anthropic-user-profile-id": "profile_1",
    };
    return withoutUnlisted({ dialect: "anthropic", body: {}, headers }, { ...traits, passes })
      .headers;
  };

  it("lose betas that change the price or need what is not listed, and the profile", () => {
    const betas =
      "claude-code-20250219, interleaved-thinking-2025-05-14,fast-mode-2026-02-01," +
      "context-1m-2025-08-07,mcp-client-2025-11-20,,tomorrow";
    assert.deepEqual(headersWith(betas), {
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
    });
    assert.deepEqual(headersWith("tomorrow"), { "anthropic-version": "2023-06-01" });
    assert.equal(
      headersWith(betas, [], CLOUD)["anthropic-beta"],
      "interleaved-thinking-2025-05-14",
      "a cloud refuses what only the vendor knows",
    );
  });

  it("keep those that are listed", () => {
    const passes = ["speed", "context-1m", "mcp_servers", "user_profiles"];
    assert.deepEqual(headersWith("fast-mode-2026-02-01,context-1m-2025-08-07,x", passes), {
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "fast-mode-2026-02-01,context-1m-2025-08-07",
      "anthropic-user-profile-id": "profile_1",
    });
  });
});
