// GET /v1/requests/{request_id}: what an account's requests with this id came to, and what they
// cost.
import { ApiError } from "../../../core/openai/errors.ts";
import { authenticate } from "../../../core/chat/admission.ts";
import type { Extension } from "../../../core/extension/extension.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import type { Snapshot } from "../../../core/chat/context.ts";
import { shareBooks } from "../usage/index.ts";
import { createLookups, type Lookups } from "./lookups.ts";
import { createReceipts, type Receipts } from "./receipts.ts";

export type { Receipt } from "./receipt.ts";
export { receiptsOf } from "./receipts.ts";

/** The most receipts of an answer: those of the requests that ended last. */
const MOST_RECEIPTS = 100;

export const extension: Extension = {
  name: "receipts",
  start({ config, current, clock, diagnose, extensions, limiter }) {
    const books = shareBooks(config, { clock, diagnose, extensions });
    const receipts = createReceipts(books);
    return {
      routes: receiptRoutes(receipts, createLookups(limiter, clock), current),
      open: async () => receipts.warmUp(),
      close: books.close,
    };
  },
};

const receiptRoutes = (receipts: Receipts, lookups: Lookups, current: () => Snapshot): Routes => ({
  "/v1/requests/{request_id}": {
    async GET(exchange, requestId) {
      const { account } = authenticate(exchange, current().keyring);
      await lookups.admit(account);
      const query = { requestId, account, limit: MOST_RECEIPTS };
      const data = await lookups.run(exchange.cancel, () =>
        receipts.find(query).catch(refuseSearch),
      );
      if (data.length === 0)
        throw new ApiError("unknown_url", "This account has no settled request with this id.");
      sendJson(exchange.res, 200, { object: "list", data }, { "Cache-Control": "no-store" });
    },
  },
});

/** The books may be out of reach for a while: a database that is down, a day that closes. */
function refuseSearch(cause: unknown): never {
  throw new ApiError("server_overloaded", "The books cannot be read at the moment.", {
    headers: { "Retry-After": "5" },
    cause,
  });
}
