// A process that calls URLs through the pooled client, one after the other, and prints the result
// of each. NODE_EXTRA_CA_CERTS, which Node reads at start, names the authorities that it trusts.

import { Cancel } from "../../src/core/http/cancel.ts";
import { readAll } from "../../src/core/upstream/body.ts";
import { createPooledClient } from "../../src/extensions/providers/pooled-client/client.ts";

const client = createPooledClient();
for (const url of process.argv.slice(2)) {
  try {
    const { status, body } = await client.send(url, {
      method: "POST",
      redirect: "manual",
      headers: {},
      body: "{}",
      cancel: new Cancel(),
      connectMs: 5_000,
      sent: () => undefined,
    });
    console.log(`${status} ${body ? await readAll(body, Infinity) : ""}`);
  } catch (error) {
    console.log((error as NodeJS.ErrnoException).code);
  }
}
client.close();
