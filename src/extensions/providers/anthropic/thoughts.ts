// The thinking blocks of a stream, gathered so that they can be sent back unchanged with the call
// that they led to.
import { asString } from "../../../core/schema/untrusted-json.ts";

/**
 * The most characters of the thoughts before one call: a provider may think without end. More are
 * not kept.
 */
const MAX_CHARS = 4 * 1024 * 1024;

/** Collects the thoughts before each call. */
export function createThoughtCollector() {
  let thoughts: Record<string, unknown>[] = [];
  let chars = 0; // of their JSON

  function extend(field: "thinking" | "signature", more: string): void {
    const thought = thoughts.at(-1);
    if (!thought) return;
    thought[field] = `${asString(thought[field]) ?? ""}${more}`;
    chars += more.length;
  }

  return {
    /** Reads a content block or a delta. Ignores what is no thought. */
    read(piece: Record<string, unknown>): void {
      const { type, thinking, signature } = piece;
      if (type === "thinking" || type === "redacted_thinking") {
        thoughts.push({ ...piece });
        chars += JSON.stringify(piece).length;
      }
      if (type === "thinking_delta") extend("thinking", asString(thinking) ?? "");
      if (type === "signature_delta") extend("signature", asString(signature) ?? "");
      if (chars > MAX_CHARS) thoughts = [];
    },
    /** Returns the thoughts so far, and begins anew. Undefined: they were more than is kept. */
    take(): readonly object[] | undefined {
      const taken = chars > MAX_CHARS ? undefined : thoughts;
      thoughts = [];
      chars = 0;
      return taken;
    },
  };
}
