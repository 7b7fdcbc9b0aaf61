// Whether the installation can take requests, as GET /readyz of the public listener says it of one
// process.
import { shuttingDown } from "../../../core/error-responses.ts";
import { ledgerUnavailable } from "../../../core/ledger/ledger.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { Status } from "../../scale/installation/index.ts";

/**
 * Throws the 503 of an installation that cannot. With several processes the worst counts: one that
 * drains, one whose spend log cannot be written, and of each model the one where its breaker is
 * most open.
 */
export function assertReady(status: Status): void {
  if (status.status === "draining") throw shuttingDown();
  const spend = status["spend"];
  if (spend !== undefined && asObject(spend)["fault"] !== null) throw ledgerUnavailable();
  if (status.models.every(({ breaker }) => breaker.retry_ms > 0))
    throw new ApiError("model_unavailable", "No model can serve at the moment.");
}
