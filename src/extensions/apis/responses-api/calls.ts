// The output items that are calls of the client's tools: of functions, of free-form tools, and of
// the client's own search for tools.
import { randomHex } from "../../../core/ids.ts";
import { isObject } from "../../../core/schema/checker.ts";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import type { BeginItem, ItemStatus, OpenItem } from "./item-events.ts";
import { freeFormInput, type ToolOrigin } from "../responses-input/index.ts";

/** How the items of each kind are called, and the field that has what the model wrote. */
const KINDS = {
  function: { prefix: "fc", type: "function_call", field: "arguments" },
  custom: { prefix: "ctc", type: "custom_tool_call", field: "input" },
  tool_search: { prefix: "tsc", type: "tool_search_call", field: "arguments" },
} as const;
/** The events of what the model wrote. A search has none. */
const EVENTS = {
  function: "response.function_call_arguments",
  custom: "response.custom_tool_call_input",
  tool_search: undefined,
} as const;

/**
 * `call_id`: the provider's, by which the client answers the call. A call of a reply that was cut
 * is complete if its arguments are.
 */
export function openCall(
  call_id: string,
  { type: kind, name, namespace }: ToolOrigin,
  begin: BeginItem,
): OpenItem<string> {
  const { prefix, type, field } = KINDS[kind];
  const events = EVENTS[kind];
  const isSearch = kind === "tool_search";
  const head = {
    id: `${prefix}_${randomHex(16)}`,
    type,
    call_id,
    ...(isSearch ? { execution: "client" } : { name, namespace }),
  };
  const item = (status: ItemStatus | "in_progress", value: unknown) => ({
    ...head,
    status,
    [field]: value,
  });
  let json = "";

  const started = begin(item("in_progress", isSearch ? {} : ""));
  function emit(step: string, fields: object): void {
    if (events !== undefined) started.emit(`${events}.${step}`, { ...started.place, ...fields });
  }
  return {
    add(text) {
      json += text;
      // The input of a free-form tool is known at the end: its JSON is around it.
      if (kind === "function" && text !== "") emit("delta", { delta: text });
    },
    end(ended) {
      const isCut = ended === "incomplete" && !isObject(parseJson(json));
      const status = isCut ? "incomplete" : "completed";
      const value = isSearch ? asObject(parseJson(json)) : textOf(kind, json, isCut);
      if (kind === "custom" || json === "") emit("delta", { delta: value });
      emit("done", { ...(kind === "function" && { name }), [field]: value });
      started.end(item(status, value));
    },
  };
}

const textOf = (kind: "function" | "custom", json: string, isCut: boolean): string =>
  kind === "custom" ? freeFormInput(json, isCut) : json || "{}";
