// The actors of the world, bundled as a program of their own: the provider with its ledger, and the
// clients that keep what they sent and saw. They are those that reconcile real gateways.

import { createCrowds } from "../reconcile/client.ts";
import { startProvider } from "../reconcile/provider.ts";

export { createCrowds, startProvider };
