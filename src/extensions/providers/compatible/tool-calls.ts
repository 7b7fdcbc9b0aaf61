// Tool calls that arrive in fragments. Providers disagree on which fragments belong to one call,
// and on what a fragment repeats.
import { randomHex } from "../../../core/ids.ts";
import type { Part } from "../../../core/openai/parts.ts";
import { namelessCall, textOf } from "../../../core/providers/decoding.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asCount, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** The most calls whose name has not arrived: a stream may never end. */
const MAX_NAMELESS = 1_000;
/** The most characters of arguments that are held back until their call has a name. */
const MAX_HELD_CHARS = 1024 * 1024;

interface OpenCall {
  readonly id: string;
  /** Undefined: it has not arrived. */
  name: string | undefined;
  /** The call's index in the reply. It means nothing before the name has arrived. */
  index: number;
  /** Arguments that have not become a part: all of them until the name has arrived. */
  held: string;
}

/** Reads tool calls from fragments. Providers disagree on which fragments belong to one call. */
export function createToolCallReader() {
  /** By the index that the provider states, else by its id. */
  const openCalls = new Map<unknown, OpenCall>();
  let nameless = 0;
  let named = 0;
  /**
   * The key of the latest fragment. A fragment without index, id and name belongs to the same call.
   */
  let lastKey: unknown;

  /** The call that a fragment with this key belongs to. */
  function callOf(key: unknown, id: string | undefined, name: string | undefined): OpenCall {
    lastKey = key ?? (name === undefined ? lastKey : Symbol());
    const current = openCalls.get(lastKey);
    if (current && !startsAnother(current, id, name)) return current;
    const started = { id: id ?? `call_${randomHex(12)}`, name: undefined, index: 0, held: "" };
    openCalls.set(lastKey, started);
    nameless += 1;
    return started;
  }

  /** The parts of one fragment. Throws a ProviderError if the bounds are exceeded. */
  function read(fragment: Record<string, unknown>, choice = 0): Part[] {
    const { name: statedName, arguments: piece } = asObject(fragment["function"]);
    const id = asString(fragment["id"]) || undefined;
    const name = asString(statedName) || undefined;
    const call = callOf(keyIn(choice, asCount(fragment["index"]) ?? id), id, name);
    call.held += textOf(piece); // some servers send the arguments as an object
    const parts: Part[] = [];
    if (call.name === undefined && name !== undefined) {
      call.name = name;
      call.index = named;
      named += 1;
      nameless -= 1;
      parts.push({ type: "tool_call", call: call.index, id: call.id, name });
    }
    if (call.name === undefined) {
      if (nameless > MAX_NAMELESS || call.held.length > MAX_HELD_CHARS)
        throw new ProviderError("upstream_error", "too much without a call's name");
    } else if (call.held !== "") {
      parts.push({ type: "tool_arguments", call: call.index, text: call.held });
      call.held = "";
    }
    return parts;
  }

  /** Throws a ProviderError if a call has no name although the reply is complete. */
  function end(): void {
    if (nameless > 0) throw namelessCall();
  }

  /** The calls that have a name. */
  const count = (): number => named;

  return { read, end, count };
}

/** Each choice numbers its own calls. */
const keyIn = (choice: number, key: number | string | undefined) =>
  choice === 0 || key === undefined ? key : `${choice} ${key}`;

/**
 * Some providers give all parallel calls the index 0. Another name, or a name with another id,
 * starts another call.
 */
function startsAnother({ id, name }: OpenCall, otherId?: string, otherName?: string): boolean {
  if (name === undefined || otherName === undefined) return false;
  return otherName !== name || (otherId !== undefined && otherId !== id);
}
