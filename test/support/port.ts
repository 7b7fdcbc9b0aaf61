// Finds a port for a test server that is killed and started again on the same port.

import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

/** A port below the range of outgoing connections, which could take it while the server is down. */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    const taken = once(server, "error").then(() => undefined);
    server.listen(15_000 + Math.floor(Math.random() * 15_000), "127.0.0.1");
    const free = await Promise.race([
      once(server, "listening").then(
        () => true,
        () => undefined,
      ),
      taken,
    ]);
    if (!free) continue;
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    return port;
  }
}
