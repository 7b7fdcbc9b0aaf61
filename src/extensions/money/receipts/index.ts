// GET /v1/requests/{request_id}: the outcome and the cost of an account's requests with this id. A
// lookup reads files or queries a database, so the limiter bounds how many there are.
import type { AdmissionDecision } from "../../../core/accounts/limiter.ts";
import { authenticate } from "../../../core/chat/admission.ts";
import type { GatewayContext, Installer } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { ApiError, SOON } from "../../../core/openai/errors.ts";
import { shareBooks, type SharedBooks } from "../usage/index.ts";
import { findReceipts } from "./receipts.ts";

export { receiptsOf } from "./receipts.ts";

/** The most receipts in an answer: those of the requests that ended last. */
const MAX_RECEIPTS = 100;
/** The most lookups of an account in a minute, in all processes of a gateway together. */
const MAX_PER_MINUTE = 600;
/** The most lookups of all accounts at once, in all processes of a gateway together. */
const MAX_AT_ONCE = 100;

export function install(gateway: Installer): void {
  gateway.route("GET", "/v1/requests/{request_id}", (context) => {
    const books = shareBooks(context.config, context);
    context.on("open", async () => {
      // Loads what the first search needs. If this fails, that search meets the same error. The
      // books open first, and have copied what was settled.
      books.files.store.find({ requestId: "", limit: 1 }).catch(() => undefined);
    });
    context.on("close", books.close);
    return receiptHandler(books, context);
  });
}

const receiptHandler =
  (books: SharedBooks, { current, limiter }: GatewayContext): Handler =>
  async (exchange, requestId) => {
    const { account } = authenticate(exchange, current().keyring);
    // Lookups do not count as chat requests. Together they share the concurrency slots of the empty
    // account name, which no account has.
    const limits = [{ name: `receipts ${account}`, rpm: MAX_PER_MINUTE }];
    const lookup = { account: "", limits, maxInFlight: MAX_AT_ONCE };
    assertAdmitted(await limiter.admit(lookup));
    const data = await findReceipts(books, { requestId, account, limit: MAX_RECEIPTS })
      .catch(throwUnavailable)
      .finally(() => limiter.release(lookup));
    if (data.length === 0)
      throw new ApiError("unknown_url", "This account has no settled request with this id.");
    sendJson(exchange.res, 200, { object: "list", data }, { "Cache-Control": "no-store" });
  };

/** Throws the 429 of an account that asks too often, or the 503 of too many lookups at once. */
function assertAdmitted({ admitted, rejectedBy, resetMs }: AdmissionDecision): void {
  if (admitted) return;
  const tooMany = "Too many receipts are being looked up. Retry in a second.";
  if (rejectedBy) throw new ApiError("server_overloaded", tooMany, SOON);
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  const tooOften =
    `An account may ask for the receipts of ${MAX_PER_MINUTE} request ids a minute. ` +
    `Retry after ${seconds} seconds.`;
  const headers = { "Retry-After": String(seconds) };
  throw new ApiError("rate_limit_exceeded", tooOften, { headers });
}

/** Throws the 503 for a failed search: the database is down, or closing a day takes long. */
function throwUnavailable(cause: unknown): never {
  const headers = { "Retry-After": "5" };
  const text = "The books cannot be read at the moment.";
  throw new ApiError("server_overloaded", text, { headers, cause });
}
