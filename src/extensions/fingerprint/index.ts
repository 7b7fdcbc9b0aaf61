// A system_fingerprint that stays the same after a restart and in every worker: its key is a secret
// of data_dir. Without this extension the key is random, and lives as long as the process.
import type { Extension } from "../../core/extension/extension.ts";
import { fingerprintSecretOf } from "../data-files/index.ts";

export const extension: Extension = { name: "fingerprint", fingerprintSecret: fingerprintSecretOf };
