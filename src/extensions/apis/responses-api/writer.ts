// Writes a reply in the format of the Responses API: as one document, or as a stream of numbered
// events.
import { randomHex } from "../../../core/ids.ts";
import type { errorBody } from "../../../core/openai/errors.ts";
import type { FinishReason } from "../../../core/openai/parts.ts";
import { RECOVERED, type ReplyWriter } from "../../../core/openai/reply.ts";
import type { Usage } from "../../../core/openai/usage.ts";
import { eventText } from "../client-apis/index.ts";
import { createOutput, type OutputOptions } from "./output.ts";

export interface ResponseOptions extends OutputOptions {
  readonly stream: boolean;
  /** The canonical name of the serving model, or the requested one if none serves. */
  readonly model: string;
  /** The wall clock, in milliseconds. */
  readonly now: number;
  /** As in ReplyFacts. */
  readonly echo: object;
}

export interface ResponseWriter extends ReplyWriter {
  /** Returns the last events of a failed stream. `error`: the member `error` of an error body. */
  fail(error: ReturnType<typeof errorBody>["error"]): string;
}

/** The reason in `incomplete_details`. Absent: the reply is complete. */
const INCOMPLETE: { readonly [reason in FinishReason]?: string } = {
  length: "max_output_tokens",
  content_filter: "content_filter",
};

/**
 * The code in `response.failed`. A refused request has OpenAI's code: after most others, Codex
 * sends the request again. After `context_length_exceeded` it compacts the conversation.
 */
const failureCode = ({ type, code }: ReturnType<typeof errorBody>["error"]): string =>
  type === "invalid_request_error" && code !== "context_length_exceeded" ? "invalid_prompt" : code;

export function createResponseWriter(options: ResponseOptions): ResponseWriter {
  const { stream, now, echo } = options;
  const head = {
    id: `resp_${randomHex(16)}`,
    object: "response",
    created_at: Math.floor(now / 1000),
  };
  let { model } = options;
  let events = "";
  let sequence = 0;

  function emit(type: string, fields: object): void {
    if (!stream) return;
    events += eventText({ type, sequence_number: sequence, ...fields });
    sequence += 1;
  }
  const output = createOutput(options, emit);

  /** Returns the events since the last take(). */
  function take(): string {
    const text = events;
    events = "";
    return text;
  }
  const response = (status: string, outcome: object = {}) => ({
    ...head,
    status,
    model,
    ...echo,
    output: output.items(),
    error: null,
    incomplete_details: null,
    usage: null,
    ...outcome,
  });
  function begin(): void {
    if (!stream || sequence > 0) return;
    emit("response.created", { response: response("in_progress") });
    emit("response.in_progress", { response: response("in_progress") });
  }

  return {
    add(parts) {
      begin();
      for (const part of parts) output.add(part);
      return take();
    },
    end(usage, finishReason) {
      begin();
      const reason = INCOMPLETE[finishReason];
      const status = reason === undefined ? "completed" : "incomplete";
      output.end(status);
      const incomplete_details = reason === undefined ? null : { reason };
      const whole = response(status, { incomplete_details, usage: usageOf(usage) });
      if (!stream) return JSON.stringify(whole);
      emit(`response.${status}`, { response: whole });
      return take();
    },
    resumed(name) {
      model = name;
      return RECOVERED;
    },
    fail(error) {
      begin();
      const { code, message, param } = error;
      // Some SDKs read the error's fields from the event itself, others from its member `error`.
      emit("error", { code, message, param, error });
      const failure = { code: failureCode(error), message };
      emit("response.failed", { response: response("failed", { error: failure }) });
      return take();
    },
  };
}

const usageOf = (usage: Usage) => ({
  input_tokens: usage.prompt_tokens,
  input_tokens_details: {
    cached_tokens: usage.prompt_cache_hit_tokens,
    cache_write_tokens: usage.prompt_tokens_details.cache_write_tokens ?? 0,
  },
  output_tokens: usage.completion_tokens,
  output_tokens_details: usage.completion_tokens_details,
  total_tokens: usage.total_tokens,
});
