// The manual's table of request fields against the types of OpenAI's own client: the table has every
// field that a program can write, and no other.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fieldTable } from "../support/readme.ts";
import { notInstalled } from "./lab.ts";

const RESOURCES = new URL("node_modules/openai/resources/", import.meta.url);

/** The interfaces of a request, by where the table has their fields. */
const INTERFACES: Readonly<Record<string, readonly string[]>> = {
  "": ["ChatCompletionCreateParamsBase"],
  "messages[].": [
    "ChatCompletionDeveloperMessageParam",
    "ChatCompletionSystemMessageParam",
    "ChatCompletionUserMessageParam",
    "ChatCompletionAssistantMessageParam",
    "ChatCompletionToolMessageParam",
    "ChatCompletionFunctionMessageParam",
  ],
  "messages[].content[].": [
    "ChatCompletionContentPartText",
    "ChatCompletionContentPartImage",
    "ChatCompletionContentPartInputAudio",
    "ChatCompletionContentPartRefusal",
    "ChatCompletionContentPart.File",
  ],
  "messages[].content[].image_url.": ["ChatCompletionContentPartImage.ImageURL"],
  "messages[].content[].input_audio.": ["ChatCompletionContentPartInputAudio.InputAudio"],
  "messages[].content[].file.": ["ChatCompletionContentPart.File.File"],
  "messages[].tool_calls[].": [
    "ChatCompletionMessageFunctionToolCall",
    "ChatCompletionMessageCustomToolCall",
  ],
  "messages[].tool_calls[].function.": ["ChatCompletionMessageFunctionToolCall.Function"],
  "tools[].": ["ChatCompletionFunctionTool", "ChatCompletionCustomTool"],
  "tools[].function.": ["FunctionDefinition"],
  "tool_choice.": [
    "ChatCompletionNamedToolChoice",
    "ChatCompletionNamedToolChoiceCustom",
    "ChatCompletionAllowedToolChoice",
  ],
  "tool_choice.function.": ["ChatCompletionNamedToolChoice.Function"],
  "functions[].": ["ChatCompletionCreateParams.Function"],
  "response_format.": [
    "ResponseFormatText",
    "ResponseFormatJSONObject",
    "ResponseFormatJSONSchema",
  ],
  "response_format.json_schema.": ["ResponseFormatJSONSchema.JSONSchema"],
  "stream_options.": ["ChatCompletionStreamOptions"],
};

/** The members of every interface of a file, by its name with those of the namespaces around it. */
function interfacesOf(file: string): ReadonlyMap<string, readonly string[]> {
  const text = readFileSync(new URL(file, RESOURCES), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
  const members = new Map<string, string[]>();
  /** What each open brace belongs to. An object within an interface has no name. */
  const open: { readonly name: string; readonly isInterface: boolean }[] = [];
  for (const line of text.split("\n")) {
    const around = open.at(-1);
    const [, member] = /^\s+(\w+)\??: /.exec(line) ?? [];
    const name = open.map((each) => each.name).join(".");
    if (member && around?.isInterface) members.set(name, [...(members.get(name) ?? []), member]);
    const [, kind, declared = ""] = /(interface|namespace) (\w+)/.exec(line) ?? [];
    for (const brace of line.match(/[{}]/g) ?? [])
      if (brace === "}") open.pop();
      else open.push({ name: declared, isInterface: kind === "interface" });
  }
  return members;
}

describe("the manual's table of request fields", { skip: notInstalled() }, () => {
  it("has the fields of OpenAI's client, and no others", () => {
    const members = new Map(
      ["chat/completions/completions.d.ts", "shared.d.ts"].flatMap((file) => [
        ...interfacesOf(file),
      ]),
    );
    const published = Object.entries(INTERFACES).flatMap(([place, names]) =>
      names.flatMap((name) => {
        const fields = members.get(name) ?? assert.fail(`OpenAI's client has no ${name}`);
        return fields.map((field) => place + field);
      }),
    );
    assert.ok(published.length > 80, "the types of the client were not read");
    assert.deepEqual([...fieldTable().keys()].toSorted(), [...new Set(published)].toSorted());
  });
});
