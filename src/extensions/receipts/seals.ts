// The proof of a receipt. An extension that seals the books offers it; without one there is none.
import type { Config } from "../../core/config.ts";
import type { Extension } from "../../core/extension/extension.ts";

/** Which settled request to prove. */
export interface SealedRequest {
  /** The spend_id of its lines in the spend log. */
  readonly spend_id: string;
  /** ISO 8601 in UTC: the time of its settle line. */
  readonly ended_at: string;
}

/** What proves the books of a data_dir. */
export interface Proofs {
  /** The proof of a request, to be sent as JSON. Null: there is none, or not yet. */
  proofOf(request: SealedRequest): Promise<object | null>;
}

/** An extension that proves the books. At most one does. */
export interface SealExtension extends Extension {
  /** Undefined: in this configuration nothing is proved. */
  openProofs(config: Config): Proofs | undefined;
}

const provesBooks = (extension: Extension): extension is SealExtension => "openProofs" in extension;

/** What proves the books of a configuration. Undefined: nothing does. */
export const proofsOf = (config: Config, extensions: readonly Extension[]): Proofs | undefined =>
  extensions.find(provesBooks)?.openProofs(config);
