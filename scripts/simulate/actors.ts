// The actors of a simulation, which are bundled as a program of their own: the provider with its
// ledger, and the clients. scripts/reconcile uses the same with real gateways.

import http from "node:http";
import { createClientLoad } from "../reconcile/client.ts";
import { startProvider } from "../reconcile/provider.ts";

export { createClientLoad, startProvider };

/** Sends a GET request. Returns the status and the text. Status 0: no complete response came. */
export const get = (url: string, key = ""): Promise<{ status: number; text: string }> =>
  new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}` };
    const req = http.get(url, { agent: new http.Agent(), headers }, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      res.on("close", () => resolve({ status: res.complete ? res.statusCode! : 0, text }));
    });
    req.on("error", () => resolve({ status: 0, text: "" }));
  });
