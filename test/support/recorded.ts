// Recorded traffic of providers: where it is kept, beside the project, and how it is replayed. One
// place says so: a wrong path would only skip tests.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { TestContext } from "node:test";
import { configFor, startGateway, user } from "./gateway.ts";
import { LONG } from "./long.ts";
import { inPieces, startProvider } from "./provider.ts";

/** Folders of recordings, one a vendor. */
export const RECORDINGS = process.env["RECORDINGS"] ?? resolve("../shared/fixtures");
/** Single recorded replies that showed a fault. */
export const CASES = process.env["CASES"] ?? resolve("../shared/cases");

/** Why tests on recordings are skipped. False: they are not. */
export const noRecordings = !existsSync(RECORDINGS) && `there are no recordings at ${RECORDINGS}`;

/** The sizes in bytes of the pieces that a recording is sent in. */
export const SIZES = LONG ? [Infinity, 1_000, 7, 1] : [7];

/** The bytes of a stream whose lines are the JSON of one event each, as the vendor frames them. */
export function framed(vendor: string, lines: readonly string[]): string {
  const named = (line: string) =>
    vendor === "anthropic" ? `event: ${JSON.parse(line).type}\n` : "";
  const events = lines.map((line) => `${named(line)}data: ${line}\n\n`).join("");
  return ["anthropic", "gemini"].includes(vendor) ? events : `${events}data: [DONE]\n\n`;
}

export const linesOf = (text: string): string[] =>
  text.split(/\r?\n/).filter((line) => line.trim() !== "");

interface Replayed {
  /** The row of the provider in the configuration, without its address and key. */
  readonly provider: object;
  /** Absent: 200. */
  readonly status?: number;
  readonly text: string;
  /** Of the pieces, in bytes. */
  readonly size: number;
  readonly streaming: boolean;
  /** Of the tools that the client has. */
  readonly tools?: readonly string[];
}

/** What a client gets that asks for thinking, where the model "m" answers with these bytes. */
export async function replay(
  t: TestContext,
  { provider, status = 200, text, size, streaming, tools = [] }: Replayed,
) {
  const mediaType = streaming && status === 200 ? "text/event-stream" : "application/json";
  const { url, asked } = await startProvider(t, inPieces(status, mediaType, text, size));
  const recorded = { ...provider, base_url: url, api_key: "sk-provider-secret" };
  const models = { m: { provider: "recorded" } };
  const gateway = await startGateway(t, configFor(url, ["m"], { providers: { recorded }, models }));
  const response = await gateway.chat({
    model: "m",
    messages: user("Say what you said."),
    thinking: { type: "enabled" },
    ...(tools.length > 0 && {
      tools: tools.map((name) => ({
        type: "function",
        function: { name, parameters: { type: "object" } },
      })),
      tool_choice: "auto",
    }),
    ...(streaming && { stream: true, stream_options: { include_usage: true } }),
  });
  return { response, gateway, paths: asked.map(({ path }) => path) };
}
