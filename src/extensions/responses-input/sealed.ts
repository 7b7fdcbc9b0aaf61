// Reasoning that clients bring back sealed. What another service, another installation or an older
// key sealed cannot be read here. It is left out: the conversation goes on without it.
import { fail } from "../../core/schema/checker.ts";
import type { Path } from "./paths.ts";

/** Opens what was sealed. Undefined: this installation did not seal it, or it was changed. */
export type Open = (sealed: string) => string | undefined;

/** Sealed texts in one request. Each costs a decryption, however short it is. */
const MAX_SEALED = 10_000;

/** The sealed texts of one request. */
export interface SealedTexts {
  /**
   * Undefined: it cannot be read here. Throws a ValidationError at the first that is too many.
   * `path`: its place in the request.
   */
  open(sealed: string, path: Path): string | undefined;
  /** How many could not be read. */
  unread(): number;
}

export function createSealedTexts(open: Open): SealedTexts {
  let count = 0;
  let unread = 0;
  return {
    open(sealed, path) {
      count += 1;
      if (count > MAX_SEALED)
        fail("invalid_value", `is one more than the ${MAX_SEALED} sealed texts allowed`, path);
      const text = open(sealed);
      if (text === undefined) unread += 1;
      return text;
    },
    unread: () => unread,
  };
}
