// How Anthropic is told a conversation: messages written down by hand from wire.md "Anthropic
// requests". Random ones are in compatible/conversations.test.ts.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { anthropic } from "../../../support/fake-anthropic.ts";
import { askedBy, calling, callOf, resultOf, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;

const TARGET = targetOf({ vendor: "anthropic" }, { upstream_model: "claude-4-5-m" });

/** What the provider is asked, which must break none of its rules. */
function ask(messages: readonly Json[]): Json {
  const asked = askedBy(createAnthropicDialect(createSignatureStore()), { messages }, TARGET);
  anthropic.understand(asked);
  return asked.body;
}

describe("a conversation", () => {
  const text = (said: string) => ({ type: "text", text: said });
  const u = (...content: object[]) => ({ role: "user", content });
  const a = (...content: object[]) => ({ role: "assistant", content });
  const use = (id: string, input: Json = {}, name = "f") => ({ type: "tool_use", id, name, input });
  const answer = (tool_use_id: string, content: string) => ({
    type: "tool_result",
    tool_use_id,
    content,
  });
  const F = { name: "f", input_schema: { type: "object" } };
  const said = (role: string, content: unknown) => ({ role, content });
  const image = (url: string) => ({ type: "image_url", image_url: { url } });
  const file = (file_data: string) => ({ type: "file", file: { filename: "a", file_data } });
  const source = (type: string, form: string, media_type: string, data: string) => ({
    type,
    source: { type: form, media_type, data },
  });
  const base64 = (words: string): string => Buffer.from(words).toString("base64");
  const CONVERSATIONS: [name: string, messages: Json[], out: Json[], system?: string][] = [
    [
      "system texts, wherever they stood",
      [
        said("system", "A"),
        said("user", "hi"),
        said("developer", [text("B"), text("C")]),
        said("assistant", "yes"),
        said("system", " \n"),
        said("user", "so"),
      ],
      [u(text("hi")), a(text("yes")), u(text("so"))],
      "A\n\nBC",
    ],
    [
      "no user at the beginning",
      [said("assistant", "Welcome."), said("user", "hi")],
      [u(text("(The conversation begins.)")), a(text("Welcome.")), u(text("hi"))],
    ],
    [
      "images and files among texts",
      [
        said("user", [
          text("x"),
          image("data:image/jpeg;base64,/9j/"),
          image("https://pictures.invalid/a.png"),
          text("y"),
          file(`data:Text/Plain;charset=utf-8;base64,${base64("\u{feff}Gr\u00fc\u00dfe\n")}`),
          file("data:Application/PDF;base64,JVBE"),
        ]),
      ],
      [
        u(
          text("x"),
          source("image", "base64", "image/jpeg", "/9j/"),
          { type: "image", source: { type: "url", url: "https://pictures.invalid/a.png" } },
          text("y"),
          source("document", "text", "text/plain", "Gr\u00fc\u00dfe\n"),
          source("document", "base64", "application/pdf", "JVBE"),
        ),
      ],
    ],
    [
      "results out of order and late",
      [
        said("user", "hi"),
        calling(callOf("x"), callOf("y")),
        resultOf("y", "2"),
        said("user", "wait"),
        said("assistant", "Yes."),
        resultOf("x", "1"),
        said("user", "well?"),
      ],
      [
        u(text("hi")),
        a(use("x"), use("y")),
        u(answer("x", "1"), answer("y", "2"), text("wait")),
        a(text("Yes.")),
        u(text("well?")),
      ],
    ],
    [
      "two calls with one id, whose results come in their order, and one more for the last",
      [
        said("user", "hi"),
        calling(callOf("0"), callOf("0")),
        ...["a", "b", "c"].map((it) => resultOf("0", it)),
      ],
      [
        u(text("hi")),
        a(use("0"), use("repeated_1")),
        u(answer("0", "a"), answer("repeated_1", "b\nc")),
      ],
    ],
    [
      "arguments that are no object",
      [
        said("user", "hi"),
        calling(
          ...['{"a":[1]}', "", '{"a":', "[1]", "null", '"x"'].map((args, at) =>
            callOf(`c${at}`, "f", args),
          ),
        ),
      ],
      [
        u(text("hi")),
        a(
          use("c0", { a: [1] }),
          use("c1"),
          ...['{"a":', "[1]", "null", '"x"'].map((_raw, at) => use(`c${at + 2}`, { _raw })),
        ),
        u(...[0, 1, 2, 3, 4, 5].map((at) => answer(`c${at}`, ""))),
      ],
    ],
  ];
  for (const [name, messages, out, system] of CONVERSATIONS)
    it(name, () => {
      const calls = messages.some((message) => "tool_calls" in message);
      // Tools that were called must be declared, although nobody may call them now.
      assert.deepEqual(ask(messages), {
        model: "claude-4-5-m",
        max_tokens: 8_192,
        messages: out,
        ...(system && { system }),
        ...(calls && { tools: [F], tool_choice: { type: "none" } }),
      });
    });
});
