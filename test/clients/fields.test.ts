// The manual's table of request fields against the types of OpenAI's own client: the table has
// every field that a program can write, and no other.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { fieldTable } from "../support/readme.ts";
import { notInstalled } from "./lab.ts";

const RESOURCES = new URL("node_modules/openai/resources/", import.meta.url);

/** The interfaces of a request, by where the table has their fields. */
const INTERFACES: Readonly<Record<string, RegExp>> = {
  "": /^ChatCompletionCreateParamsBase$/,
  "messages[].": /^ChatCompletion\w+MessageParam$/,
  "messages[].content[].": /^ChatCompletionContentPart(Text|Image|InputAudio|Refusal|\.File)$/,
  "messages[].content[].image_url.": /^ChatCompletionContentPartImage\.ImageURL$/,
  "messages[].content[].input_audio.": /^ChatCompletionContentPartInputAudio\.InputAudio$/,
  "messages[].content[].file.": /^ChatCompletionContentPart\.File\.File$/,
  "messages[].tool_calls[].": /^ChatCompletionMessage(Function|Custom)ToolCall$/,
  "messages[].tool_calls[].function.": /^ChatCompletionMessageFunctionToolCall\.Function$/,
  "tools[].": /^ChatCompletion(Function|Custom)Tool$/,
  "tools[].function.": /^FunctionDefinition$/,
  "tool_choice.": /^ChatCompletion(NamedToolChoice|NamedToolChoiceCustom|AllowedToolChoice)$/,
  "tool_choice.function.": /^ChatCompletionNamedToolChoice\.Function$/,
  "functions[].": /^ChatCompletionCreateParams\.Function$/,
  "response_format.": /^ResponseFormat(Text|JSONObject|JSONSchema)$/,
  "response_format.json_schema.": /^ResponseFormatJSONSchema\.JSONSchema$/,
  "stream_options.": /^ChatCompletionStreamOptions$/,
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

it("the manual's table of request fields has the fields of OpenAI's client, and no others", {
  skip: notInstalled(),
}, () => {
  const members = new Map(
    ["chat/completions/completions.d.ts", "shared.d.ts"].flatMap((file) => [...interfacesOf(file)]),
  );
  const published = Object.entries(INTERFACES).flatMap(([place, names]) => {
    const found = [...members].filter(([name]) => names.test(name));
    assert.ok(found.length > 0, `OpenAI's client has no ${names}`);
    return found.flatMap(([, fields]) => fields.map((field) => place + field));
  });
  assert.ok(published.length > 80, "the types of the client were not read");
  assert.deepEqual([...fieldTable().keys()].toSorted(), [...new Set(published)].toSorted());
});
