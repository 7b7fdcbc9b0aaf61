// The actors of the world, bundled as a program of their own: the provider with its ledger, and the
// clients that keep what they sent and saw. They are those that reconcile real gateways.

import http from "node:http";
import { createCrowds } from "../reconcile/client.ts";
import { startProvider } from "../reconcile/provider.ts";

export { createCrowds, startProvider };

/** GET with this key: the status of the answer. 0: there was none. */
export const statusOf = (url: string, key: string): Promise<number> =>
  new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}` };
    const req = http.get(url, { agent: new http.Agent(), headers }, (res) => {
      res.resume();
      res.on("close", () => resolve(res.complete ? res.statusCode! : 0));
    });
    req.on("error", () => resolve(0));
  });

/** GET: the JSON of the answer. */
export const getJson = (url: string): Promise<any> =>
  new Promise((resolve, reject) => {
    const agent = new http.Agent();
    const req = http.get(url, { agent }, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      res.on("end", () => resolve(JSON.parse(text)));
    });
    req.on("error", reject);
  });
