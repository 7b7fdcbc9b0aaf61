// Providers' own messages and paths in the operator's logs, /status and the ledger, without the
// secrets that may stand in them.
import type { Extension } from "../../../core/extension/extension.ts";
import { createRedact } from "./redact.ts";
import { secretsIn } from "./secrets.ts";

export const extension: Extension = {
  name: "redaction",
  createRedact(config, extensions) {
    const { texts, digests } = secretsIn(config, extensions);
    return createRedact(texts, digests);
  },
};
