// Cache hints for providers that accept one: all requests of a conversation have the same hint, so
// that they reach the machine that cached its beginning. A hint of the client's own takes
// precedence.
import { createHmac, randomBytes } from "node:crypto";
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { textOf, type ChatRequest } from "../../../core/openai/request.ts";
import type { Model } from "../../../core/routing/model.ts";

const HINT = "prompt_cache_key";
/**
 * Characters of a conversation's beginning that are hashed. Requests that share a longer system
 * prompt have one hint, and so find it cached.
 */
const MAX_CHARS = 16 * 1024;
/** Hexadecimal digits. OpenAI takes 64 characters. */
const DIGITS = 32;

/** Adds a hint to requests without one, if a candidate's provider takes it. */
export function install(gateway: Installer): void {
  gateway.around(({ config, installed, diagnose }) => {
    const readKey = installed.filled(slots.fingerprintKey);
    let key: Buffer | undefined;
    return (complete) => (chat, candidates, deliver, context) => {
      if (chat.extras?.[HINT] !== undefined || !candidates.some(takesHint))
        return complete(chat, candidates, deliver, context);
      // With the key of system_fingerprint, hints are the same in all workers and after a restart.
      key ??= readKey?.(config.data_dir, diagnose) ?? randomBytes(32);
      const extras = { ...chat.extras, [HINT]: hintOf(chat, context.account, key) };
      return complete({ ...chat, extras }, candidates, deliver, context);
    };
  });
}

const takesHint = ({ traits }: Model): boolean =>
  traits.takes.includes(HINT) || traits.cache_header !== undefined;

/**
 * The hint of a conversation: a keyed hash of its account and of its messages up to the first user
 * message, which no later turn changes.
 */
function hintOf({ messages }: ChatRequest, account: string, key: Buffer): string {
  const hash = createHmac("sha256", key).update(`prompt cache ${JSON.stringify(account)}`);
  let charsLeft = MAX_CHARS;
  for (const { role, content } of messages) {
    const text = textOf(content ?? "").slice(0, charsLeft);
    hash.update(`\n${role}:${text}`);
    charsLeft -= text.length;
    if (role === "user" || charsLeft === 0) break;
  }
  return hash.digest("hex").slice(0, DIGITS);
}
