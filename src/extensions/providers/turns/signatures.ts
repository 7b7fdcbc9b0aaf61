// The memory of signed reasoning. It is bounded, because each call of a tool may add thousands of
// characters.
import type { DialectScope } from "../../../core/providers/dialect.ts";

/**
 * Keeps a provider's signed reasoning, which it wants back with the tool calls that followed
 * from it.
 */
export interface SignatureStore {
  /** By the id of a tool call. Undefined: unknown, forgotten, or the id of several calls. */
  get(id: string): string | undefined;
  set(id: string, text: string): void;
}

/** The estimated memory of an entry in addition to its texts, in characters. */
const ENTRY_CHARS = 200;

/** Forgets the least recently used entries first once all together exceed `maxChars` characters. */
export function createSignatureStore(maxChars = 64 * 1024 * 1024): SignatureStore {
  const entries = new Map<string, string>(); // in the order of their last use
  let chars = 0;

  const sizeOf = (id: string, text: string): number => id.length + text.length + ENTRY_CHARS;

  function remove(id: string): void {
    const text = entries.get(id);
    if (text === undefined) return;
    entries.delete(id);
    chars -= sizeOf(id, text);
  }

  function put(id: string, text: string): void {
    remove(id);
    entries.set(id, text);
    chars += sizeOf(id, text);
    while (chars > maxChars) remove(entries.keys().next().value!);
  }

  return {
    get(id) {
      const text = entries.get(id);
      if (text !== undefined) put(id, text);
      return text || undefined;
    },
    set(id, text) {
      // Some servers number their calls. If an id occurs with two texts, neither can be trusted.
      put(id, (entries.get(id) ?? text) === text ? text : "");
    },
  };
}

/** The signed reasoning of all providers since the process started. */
const allSignatures = createSignatureStore();
let sendToOthers: SignatureStore["set"] = () => undefined;

/**
 * Calls `send` with each text that is kept from now on. Returns the function that keeps a text from
 * another process.
 */
export function shareSignatures(send: SignatureStore["set"]): SignatureStore["set"] {
  sendToOthers = send;
  return allSignatures.set;
}

/**
 * The part for one format, provider and account: formats keep different texts, providers refuse
 * signatures of others, and other accounts must not see them.
 */
export const scopedStore = (format: string, { baseUrl, account }: DialectScope): SignatureStore =>
  partOf(
    {
      get: allSignatures.get,
      set(id, text) {
        allSignatures.set(id, text);
        sendToOthers(id, text);
      },
    },
    format,
    baseUrl,
    account,
  );

/** The part of a store for one model of a provider: other models may refuse what it signed. */
export const modelStore = (store: SignatureStore, model: string): SignatureStore =>
  partOf(store, model);

function partOf(store: SignatureStore, ...scope: readonly string[]): SignatureStore {
  // Computed once, because a conversation may have many thousands of calls.
  const prefix = JSON.stringify(scope);
  return {
    get: (id) => store.get(prefix + id),
    set: (id, text) => store.set(prefix + id, text),
  };
}
